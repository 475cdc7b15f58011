package tsql

import (
	"container/list"
	"sync"
)

// batchCache keeps parsed batches by text, least recently used first out.
type batchCache struct {
	mu    sync.Mutex
	limit int
	byKey map[string]*list.Element
	order *list.List
}

type cachedBatch struct {
	text string
	b    *batch
}

// maxCachedText keeps very long texts (bulk inserts) out of the cache.
const maxCachedText = 64 << 10

func newBatchCache(limit int) *batchCache {
	return &batchCache{limit: limit, byKey: map[string]*list.Element{}, order: list.New()}
}

// parse gives the parsed form of text; syntax errors are cached too.
func (c *batchCache) parse(text string) (*batch, *stmtError) {
	c.mu.Lock()
	if e, ok := c.byKey[text]; ok {
		c.order.MoveToFront(e)
		b := e.Value.(*cachedBatch).b
		c.mu.Unlock()
		return b, b.err
	}
	c.mu.Unlock()
	b, err := parseBatch(text)
	if b == nil {
		b = &batch{err: err}
	}
	if len(text) > maxCachedText {
		return b, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[text]; ok {
		b = e.Value.(*cachedBatch).b
		return b, b.err
	}
	c.byKey[text] = c.order.PushFront(&cachedBatch{text: text, b: b})
	if c.order.Len() > c.limit {
		old := c.order.Back()
		c.order.Remove(old)
		delete(c.byKey, old.Value.(*cachedBatch).text)
	}
	return b, err
}

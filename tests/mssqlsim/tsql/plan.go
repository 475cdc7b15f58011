package tsql

// bindCached binds a query. It runs inside do.
func (ex *exec) bindCached(q *query) (*boundQuery, error) {
	b := &binder{ex: ex}
	return b.query(nil, q, nil)
}

func (ex *exec) reconfigure() error { return nil }

package engine

import (
	"encoding/binary"
	"time"
)

// random is a splitmix64 stream: small, seeded and the same everywhere.
type random struct{ s uint64 }

func (r *random) next() uint64 {
	r.s += 0x9e3779b97f4a7c15
	z := r.s
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// guid makes a version 4 GUID.
func (r *random) guid() GUID {
	var g GUID
	binary.BigEndian.PutUint64(g[:8], r.next())
	binary.BigEndian.PutUint64(g[8:], r.next())
	g[6] = g[6]&0x0f | 0x40
	g[8] = g[8]&0x3f | 0x80
	return g
}

func (r *random) bytes(n int) []byte {
	b := make([]byte, 0, n+8)
	for len(b) < n {
		b = binary.BigEndian.AppendUint64(b, r.next())
	}
	return b[:n]
}

// between draws from [lo, hi].
func (r *random) between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(r.next()%uint64(hi-lo+1))
}

// mix joins two seeds into one.
func mix(a, b uint64) uint64 {
	r := random{s: a ^ b*0xd6e8feb86659fd93}
	return r.next()
}

// hashName turns a name into a seed (FNV-1a).
func hashName(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := 0; i < len(s); i++ {
		h ^= uint64(s[i])
		h *= 1099511628211
	}
	return h
}

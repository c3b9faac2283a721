package auth

import (
	"strings"
	"sync"
)

// Seen remembers what the examinations of tokens have found, so that a token
// that a client sends with each request is parsed only once. It knows tokens by
// their hashes, and contains neither tokens nor signatures. Tokens in it are not
// verified. The zero Seen is empty, and a nil Seen remembers nothing.
type Seen struct {
	mu     sync.Mutex // guards claims
	claims map[hash]Claims
}

// Limits of a Seen, which then takes at most 2 MiB. Any client can fill it.
const (
	maxSeen      = 4096
	maxSeenKeyID = 128 // bytes; a user name has at most maxName
)

func (s *Seen) get(key hash) (c Claims, ok bool) {
	if s == nil {
		return Claims{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok = s.claims[key]
	return c, ok
}

func (s *Seen) add(key hash, c Claims) {
	if s == nil || len(c.KeyID) > maxSeenKeyID {
		return
	}
	c.KeyID = strings.Clone(c.KeyID) // not a part of the token's text
	c.User, c.ActFor = strings.Clone(c.User), strings.Clone(c.ActFor)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claims == nil || len(s.claims) >= maxSeen {
		s.claims = map[hash]Claims{} // tokens that are still in use come back with the next request
	}
	s.claims[key] = c
}

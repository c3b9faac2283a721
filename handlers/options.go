package handlers

import (
	"net/http"
	"slices"
)

// matchServer sets m for a request with the target "*", which is valid only
// with the method OPTIONS. The target stands for the whole server (RFC 9110,
// 9.3.7). The answer lists the methods that any path supports.
func (rt *router) matchServer(m *match) {
	m.allow = []string{http.MethodGet, http.MethodHead}
	for _, p := range rt.routes {
		if !slices.Contains(m.allow, p.Method) {
			m.allow = append(m.allow, p.Method)
		}
	}
	m.allow = append(m.allow, http.MethodOptions)
}

package handlers

import (
	"net/http"
	"slices"
)

// matchServer sets m for a request with the target "*", which stands for the
// whole server (RFC 9110, 9.3.7) and supports the methods of all paths. The
// target "*" is valid only with OPTIONS.
func (rt *router) matchServer(m *match) {
	m.allow = []string{http.MethodGet, http.MethodHead}
	for _, p := range rt.routes {
		if !slices.Contains(m.allow, p.Method) {
			m.allow = append(m.allow, p.Method)
		}
	}
	m.allow = append(m.allow, http.MethodOptions)
}

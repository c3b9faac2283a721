package handlers

import (
	"net/http"
	"slices"
)

// matchServer makes m the match of "*", which stands for the server as a whole
// (RFC 9110, 9.3.7): it has the methods of all paths. Only OPTIONS may name it.
func (rt *router) matchServer(m *match) {
	m.allow = []string{http.MethodGet, http.MethodHead}
	for _, p := range rt.routes {
		if !slices.Contains(m.allow, p.Method) {
			m.allow = append(m.allow, p.Method)
		}
	}
	m.allow = append(m.allow, http.MethodOptions)
}

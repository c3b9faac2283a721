package rest

import (
	"cmp"
	"fmt"
	"strings"

	"schedrestd/api/scope"
	"schedrestd/auth"
	"schedrestd/internal/errs"
)

// scopesOf returns the scopes of a listener. It panics if the setting is wrong,
// which must not permit everything; package plan checks it.
func (s *Server) scopesOf(listener string) scope.Set {
	text, limited := s.Config.ScopesOf(listener)
	if !limited {
		return scope.All
	}
	scopes, err := scope.Parse(text)
	if err != nil {
		panic(err)
	}
	return scopes
}

// neededScope returns the scope of what the request is for.
func (q *request) neededScope() scope.Set {
	switch {
	case q.page != nil:
		return q.page.Scope
	case q.route != nil:
		return q.route.Scope
	}
	return scope.None
}

// permitted returns what the listener of the connection permits, and what the
// token does.
func (q *request) permitted() (listener, token scope.Set) {
	peer, _ := auth.PeerFrom(q.r.Context())
	return q.server.scopesOf(peer.Listener), scope.All &^ q.client.Claims.Withheld
}

// Permits reports whether the client may also do something else than the operation
// of the request.
func (q *request) Permits(needed scope.Set) bool {
	listener, token := q.permitted()
	return (listener & token).Permit(needed)
}

// scopesField is a header of answers. It lists the client's scopes, separated by
// commas, as in GitHub's API. Clients with all scopes do not get it.
const scopesField = "X-OAuth-Scopes"

// checkScope returns an error if the listener of the connection, or the token,
// does not permit the operation. The answer names the scope that the operation
// needs (RFC 6750, 3.1), and those that the client has.
func (c *Call) checkScope() error {
	listener, token := c.permitted()
	if has := listener & token; has != scope.All {
		c.Header().Set(scopesField, strings.ReplaceAll(has.String(), "+", ", "))
	}
	return c.CheckScope(c.neededScope())
}

// CheckScope returns an error if the client has not a scope that the request needs.
func (c *Call) CheckScope(needed scope.Set) error {
	listener, token := c.permitted()
	if c.Permits(needed) {
		return nil
	}
	c.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s"`, needed))
	if !token.Permit(needed) {
		return errs.New(errs.Denied, "the token permits %s, and the operation needs %s", cmp.Or(token.String(), "nothing"), needed).
			WithHint("get a token with the scope %s, from the identity provider or with schedctl token create", needed)
	}
	return errs.New(errs.Denied, "this address of the gateway permits only %s, and the operation needs %s", listener, needed).
		WithHint("send the request to another address of the gateway")
}

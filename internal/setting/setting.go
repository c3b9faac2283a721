// Package setting declares what the administrator can choose for the parts of
// a worker that know nothing of its messages, such as the REST server. Package
// plan sets the fields, the worker's setup carries the structs as they are, and
// each part embeds its own struct in its configuration. So a new setting is a
// field here, a row among plan's variables, and the code that heeds it.
//
// A field is a flag, a number, a time, a text or a list of these: package work
// encodes the structs by the types of their fields.
package setting

import (
	"strings"
	"time"
)

// REST holds the settings of the REST server.
type REST struct {
	Strict        bool          // a body with an unknown field is refused, even with +fast
	Origins       []string      // origins whose web pages may read the answers; nil for none
	Scopes        []string      // what clients of a listener may do, such as "compute.read=127.0.0.1:6822"; a listener that is not in the list permits everything
	SearchKeys    bool          // the job of an earlier request with the same Idempotency-Key is looked for in the cluster
	MaxAge        time.Duration // age of lists that is accepted if a request does not say; 0 for none
	MaxWait       time.Duration // maximum time for which a request waits for a change; 0 if none waits
	WatchInterval time.Duration // minimum time between two requests to the controller for all that wait; 0 for a second
}

// ScopesOf returns the text of the scopes of a listener, and whether it has an
// entry in Scopes. If the machine has no IPv6, a listener on [::] listens on
// 0.0.0.0. An entry with the listener's own address precedes.
func (r *REST) ScopesOf(listener string) (scopes string, limited bool) {
	for _, entry := range r.Scopes {
		switch text, at, _ := strings.Cut(entry, "="); {
		case at == listener:
			return text, true
		case Covers(at, listener):
			scopes, limited = text, true
		}
	}
	return scopes, limited
}

// Covers reports whether the address in an entry of REST.Scopes is that of a
// listener.
func Covers(address, listener string) bool {
	port, isIPv4 := strings.CutPrefix(listener, "0.0.0.0:")
	return address == listener || isIPv4 && address == "[::]:"+port
}

// Tokens holds the rules for tokens that the daemons do not have. Issuer, Audience
// and ScopeClaim are about the tokens that a key of the key set signs.
type Tokens struct {
	Issuer     string // the claim iss of a token; "" for any
	Audience   string // a value of the claim aud of a token; "" for any
	ScopeClaim string // the claim with the scopes that a token permits; "": it permits everything
	Register   string // path of the register of gateway tokens; "": none is accepted
	MinUID     uint32 // a gateway token that acts for the members of a group acts for no user with a lower uid
	OneUser    bool   // the claims that name the user must name the same one

	TokenLifetime time.Duration // for how long a gateway token that a client creates may be valid; 0: it ends with the client's token
}

// Pages holds the settings of what is served besides the endpoints.
type Pages struct {
	Docs     bool     // the page at /docs is served
	Status   bool     // the page at /status is served
	Clusters []string // other clusters to which the page at /status links, as NAME=ADDRESS
	Statuses []string // responses that the OpenAPI document lists, such as "200" or "default"; nil for feature.DefaultStatuses
}

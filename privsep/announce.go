package privsep

import (
	"slices"

	"schedrestd/privsep/identity"
	"schedrestd/privsep/listen"
)

// announce logs, once, which identity serves.
func announce(c Config, who identity.Service, listeners []*listen.Listener) {
	switch {
	case c.Switches.BecomeUser:
		c.Log.Info("serving each user with a worker of their own", "most", c.Identities, "connections", c.Connections,
			"worker_per_connection", c.Switches.WorkerPerConnection, "listen", listen.Names(listeners))
	default:
		c.Log.Info("starting workers", "user", who.Name, "uid", who.UID, "gid", who.GID, "workers", c.Workers,
			"worker_per_connection", c.Switches.WorkerPerConnection, "connections", c.Connections, "listen", listen.Names(listeners))
	}
	for _, l := range listeners {
		if l.ExposesTokens() {
			c.Log.Warn("listener accepts plain HTTP from other machines", "listen", l.Name,
				"hint", "anyone who can read the traffic can use its tokens; listen on 127.0.0.1 behind a proxy with TLS, or on https://")
		}
	}
}

// where returns the log attributes of the listeners. Those in another network
// namespace get an attribute of their own.
func where(c Config, list []*listen.Listener) []any {
	attrs := []any{"listen", listen.Names(list)}
	if c.Netns != "" {
		there := slices.DeleteFunc(slices.Clone(list), func(l *listen.Listener) bool { return !l.Elsewhere })
		attrs = append(attrs, "netns", c.Netns, "netns_listen", listen.Names(there))
	}
	return attrs
}

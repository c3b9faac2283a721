package privsep

import (
	"os"

	"schedrestd/ipc"
)

// visitKeys is what the worker of an inetd run verifies tokens with: the key set alone. A keeper would
// have to be started for each client, which takes longer than to have a daemon vouch.
type visitKeys struct{ set *os.File }

// newVisitKeys opens the key set, and refuses a key that lies open.
func newVisitKeys(c Config, who service) (v visitKeys, err error) {
	tokens, err := c.tokens(who)
	if err != nil {
		return v, err
	}
	if err := judged(openTokenKey(tokens.Key, who)); err != nil {
		return v, err
	}
	v.set, err = openKeySet(tokens.JWKS, who)
	if isAbsent(err) {
		c.Log.Info("there is no key set for this gateway: RS256 tokens are vouched for by the daemons", "file", tokens.JWKS, "because", err)
		err = nil
	}
	return v, err
}

// give gives it to the worker, before its one connection. Nobody looks at the file again.
func (v visitKeys) give(worker *ipc.Channel) error {
	if v.set == nil {
		return nil
	}
	return worker.TrySend(new(ipc.JWKSFD), int(v.set.Fd()))
}

func (v visitKeys) close() {
	if v.set != nil {
		v.set.Close()
	}
}

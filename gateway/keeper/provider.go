package keeper

import (
	"io"
	"log/slog"
	"os"
	"strings"

	"schedrestd/auth/jose"
)

// provider verifies tokens of an identity provider. Workers do this themselves, because
// the keys are public. The keeper does it again before it vouches for a user, because
// it must not believe a worker.
type provider struct {
	keys   *jose.KeySet
	claims []string // one of them names the user: the first that the token has
}

// readProvider reads the key set. It returns nil if there is none, if the keeper vouches
// for no users of its tokens, or if it can't be used: workers refuse such a set, too.
func readProvider(f *os.File, claims string) *provider {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, jose.MaxKeySet))
	if claims == "" || err == nil && len(text) == 0 {
		return nil
	}
	var keys *jose.KeySet
	if err == nil {
		keys, err = jose.ParseKeySet(text)
	}
	if err != nil {
		slog.Warn("key set of RS256 tokens can't be used; no output is read for their users", "error", err)
		return nil
	}
	return &provider{keys, strings.Split(claims, ",")}
}

// verifies reports whether one of the keys has signed a token. The kid of its header has
// no effect, because nothing is parsed before the signature has been verified.
func (p *provider) verifies(signed, signature []byte) bool {
	return p != nil && p.keys.Verify("", string(signed), signature) == nil
}

// cost returns the cost of verifying a signature with all keys.
func (p *provider) cost() (cost float64) {
	if p != nil {
		for _, key := range p.keys.Keys() {
			size := float64(key.N.BitLen()) / 2048
			cost += verifyRSACost * size * size
		}
	}
	return cost
}

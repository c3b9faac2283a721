package keeper

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"os"

	"schedrestd/hmackey"
	"schedrestd/ipc/query"
)

// tokenKey is the key of HS256 tokens. It is looked at to compare, and never leaves.
type tokenKey struct {
	secret   []byte
	followed bool // there is no newer one
}

// readTokenKey reads all bytes of f, which are the key when the daemons would take them, too.
func readTokenKey(f *os.File, followed bool) (*tokenKey, error) {
	secret, err := io.ReadAll(io.NewSectionReader(f, 0, hmackey.Most+1))
	if err != nil {
		return nil, errors.New("cannot be read")
	}
	if err := hmackey.Check(secret); err != nil {
		return nil, err
	}
	return &tokenKey{secret, followed}, nil
}

// judge says whether the signature is this key's. It parses nothing: what a token says is for
// those who don't have the key. So HS256 is verified in two places, here and in auth for the daemons, and both are
// held to the same vectors.
func (k *tokenKey) judge(v *query.Verify) query.Verdict {
	if k == nil {
		return query.NoVerdict
	}
	mac := hmac.New(sha256.New, k.secret)
	mac.Write(v.Signed)
	switch {
	case hmac.Equal(mac.Sum(nil), v.MAC[:]):
		return query.Genuine
	case k.followed:
		return query.Forged
	}
	return query.NoVerdict
}

// judge says what the key that is kept says of a signature.
func (k *keeper) judge(v *query.Verify) *query.Verified {
	return &query.Verified{ID: v.ID, Verdict: k.token.Load().judge(v)}
}

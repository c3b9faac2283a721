package keeper

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"os"

	"schedrestd/auth/gatewaytoken"
	"schedrestd/internal/hmackey"
	"schedrestd/ipc/query"
)

// tokenKey is the key of HS256 tokens. It never leaves the process.
type tokenKey struct {
	secret   []byte
	gateway  []byte // the key of gateway tokens, which is derived from it
	followed bool   // the parent sends the key again whenever its file changes, so there is no newer key
}

// readTokenKey reads the key for HS256 tokens, which is the whole content of f.
// It refuses the same keys as the bundled daemons do.
func readTokenKey(f *os.File, followed bool) (*tokenKey, error) {
	secret, err := io.ReadAll(io.NewSectionReader(f, 0, hmackey.MaxSize+1))
	if err != nil {
		return nil, errors.New("cannot be read")
	}
	if err := hmackey.Check(secret); err != nil {
		return nil, err
	}
	return &tokenKey{secret, gatewaytoken.Key(secret), followed}, nil
}

// verify verifies a signature with this key. A worker has already split the
// token into its parts, because a process that has the key must not parse
// tokens. For this reason HS256 is implemented twice: here, and in package auth
// for the bundled daemons. Both implementations are tested with the same
// vectors.
func (k *tokenKey) verify(v *query.Verify) query.Verdict {
	if k == nil {
		return query.NoVerdict
	}
	return k.verifyWith(k.secret, v.Signed, v.MAC)
}

// verifyWith verifies a signature that was made with the secret.
func (k *tokenKey) verifyWith(secret, signed []byte, want [sha256.Size]byte) query.Verdict {
	mac := hmac.New(sha256.New, secret)
	mac.Write(signed)
	switch {
	case hmac.Equal(mac.Sum(nil), want[:]):
		return query.Genuine
	case k.followed:
		return query.Forged
	}
	return query.Outdated
}

// signHS256 returns a token (JWT) with this header and these claims.
func signHS256(secret, header, claims []byte) []byte {
	encode := base64.RawURLEncoding.AppendEncode
	text := encode(append(encode(nil, header), '.'), claims)
	mac := hmac.New(sha256.New, secret)
	mac.Write(text)
	return encode(append(text, '.'), mac.Sum(nil))
}

// verifyToken verifies a signature with the current key.
func (k *keeper) verifyToken(v *query.Verify) *query.Verified {
	return &query.Verified{ID: v.ID, Verdict: k.token.Load().verify(v)}
}

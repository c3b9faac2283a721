package keeper

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"io"
	"os"

	"schedrestd/hmackey"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// tokenKey is the key of HS256 tokens. It is looked at to compare, and never leaves.
type tokenKey struct {
	secret   []byte
	followed bool // a newer one in the file's place is brought here, too
}

// readTokenKey reads all bytes of f, which are the key when the daemons would take them, too.
func readTokenKey(f *os.File, followed bool) (*tokenKey, error) {
	secret, err := io.ReadAll(io.NewSectionReader(f, 0, hmackey.Most+1))
	if err != nil {
		return nil, errors.New("can't be read")
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

// keepTokenKey reads the key of tokens, and answers whether it is in use from now on in place of
// the one before. When it is not, that one stays, and a signature that is not its may be one of those
// that the daemons know already.
func (k *keeper) keepTokenKey(m *ipc.TokenKeyFD, fd int) *ipc.Kept {
	f := os.NewFile(uintptr(fd), "key")
	defer f.Close()
	key, err := readTokenKey(f, m.Followed)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		if k.token != nil { // what stays is not the newest any more
			k.token = &tokenKey{secret: k.token.secret}
		}
		return &ipc.Kept{Number: m.Number, Reason: ipc.Refuse(err.Error()).Reason}
	}
	k.token = key
	return &ipc.Kept{Number: m.Number, OK: true}
}

// judge says what the key that is kept now says of a signature.
func (k *keeper) judge(v *query.Verify) *query.Verified {
	k.mu.Lock()
	key := k.token
	k.mu.Unlock()
	return &query.Verified{ID: v.ID, Verdict: key.judge(v)}
}

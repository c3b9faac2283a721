package privsep

import (
	"os"

	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/ipc"
)

// Secrets is where the keys are.
type Secrets struct {
	TLS    TLS
	Tokens Tokens
}

// TLS is where the secrets of https:// listeners are.
type TLS ipc.TLS

// Tokens is where the keys are that tokens are verified with.
type Tokens ipc.Tokens

// Reloader reads the configuration anew and checks it. What it returns replaces what Config had, when
// workers can serve by it: then it is told so, if it has a method Accepted.
type Reloader interface {
	Reload() (ipc.Setup, Secrets, error)
}

// check refuses https without its files.
func (t TLS) check() error {
	if t.Certificate == "" || t.Key == "" {
		return errs.New(errs.Invalid, "https:// without a certificate and a key").
			WithHint("TLSParameters=restd_cert_file=…,restd_cert_key_file=… in the configuration names them")
	}
	return nil
}

// stamp tells one state of t's files from another.
func (t TLS) stamp() string { return guard.Stamp(t.Key, t.Certificate, t.ClientCA) }

// tokens are the keys of tokens that are to be used. Where no tokens are served there are none, but a
// key that lies open is refused all the same: whoever finds that out should say so.
func (c Config) tokens(who service) (Tokens, error) {
	if c.Setup.JWT {
		return c.Tokens, nil
	}
	if err := judged(openTokenKey(c.Tokens.Key, who)); err != nil {
		return Tokens{}, err
	}
	return Tokens{}, judged(openKeySet(c.Tokens.JWKS, who))
}

// judged closes a file that was opened to see whether it is protected, and tells why it must not be used.
func judged(f *os.File, err error) error {
	if f != nil {
		f.Close()
	}
	if isAbsent(err) {
		return nil
	}
	return err
}

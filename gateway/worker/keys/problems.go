package keys

import (
	"crypto/x509"
	"time"
)

// Problems returns the reasons why this worker can't use keys that it should
// have, or why clients reject its certificate.
func (k *Keys) Problems(now time.Time) (list []string) {
	if k.certUnusable.Load() {
		list = append(list, "the certificate can't be used; see the log")
	}
	if s := k.tls.Load(); s != nil {
		list = append(list, validityProblems(s.leaf, now)...)
	}
	if k.keeper.IsLost() {
		list = append(list, "the keeper exited; see the log")
	}
	if k.keeper.IsOutdated() {
		list = append(list, "the file of jwt_key can't be used any more; see the log")
	}
	if public := k.public.Load(); public != nil && !public.followed && !k.SingleClient {
		list = append(list, "the file of jwks can't be used any more; see the log")
	}
	return list
}

// validityProblems returns the reason why clients reject the certificate at the
// given time: it is not valid yet, or it has expired. The result is nil if the
// certificate is valid.
func validityProblems(c *x509.Certificate, now time.Time) []string {
	switch {
	case now.Before(c.NotBefore):
		return []string{"the certificate is not valid before " + c.NotBefore.UTC().Format(time.RFC3339)}
	case now.After(c.NotAfter):
		return []string{"the certificate expired at " + c.NotAfter.UTC().Format(time.RFC3339)}
	}
	return nil
}

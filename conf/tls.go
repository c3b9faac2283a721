package conf

import (
	"path/filepath"
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// TLS holds the TLSParameters for the gateway's https:// listeners. Only the
// first two, restd_cert_file and restd_cert_key_file, are parameters of Slurm.
type TLS struct {
	Certificate string // restd_cert_file: certificates in PEM, the server's own first; "" for none
	Key         string // restd_cert_key_file: its private key in PEM
	ClientCA    string // CAs of the clients that may connect; "" to admit all clients
	TLS12       bool   // restd_min_version=1.2
}

// RestdTLS returns the TLSParameters of the gateway. An unknown parameter that
// starts with restd_ is an error: if a misspelled restd_ca_file were ignored,
// every client would be admitted. A certificate without a key is accepted, and
// so is a key without a certificate, because Slurm's daemons have defaults for
// both. A gateway with https:// listeners must check that both are set.
func (c *Cluster) RestdTLS() (t TLS, err error) {
	paths := map[string]*string{"restd_cert_file": &t.Certificate, "restd_cert_key_file": &t.Key, "restd_ca_file": &t.ClientCA}
	names := make([]string, 0, len(c.TLS))
	for name := range c.TLS {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		value := c.TLS[name]
		switch to, path := paths[name]; {
		case path && !filepath.IsAbs(value):
			return TLS{}, c.tlsError("%s: want an absolute path", name)
		case path:
			*to = filepath.Clean(value)
		case name == "restd_min_version" && (value == "1.2" || value == "1.3"):
			t.TLS12 = value == "1.2"
		case name == "restd_min_version":
			return TLS{}, c.tlsError("%s: want 1.2 or 1.3", name)
		case strings.HasPrefix(name, "restd_"):
			return TLS{}, c.tlsError("unknown parameter %s: allowed are restd_ca_file, restd_cert_file, "+
				"restd_cert_key_file and restd_min_version", name)
		}
	}
	return t, nil
}

func (c *Cluster) tlsError(format string, args ...any) error {
	return errs.New(errs.Invalid, "%s: TLSParameters: "+format, append([]any{c.Path}, args...)...)
}

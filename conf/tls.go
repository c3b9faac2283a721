package conf

import (
	"path/filepath"
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// TLSParameters holds the elements of TLSParameters=, by name.
type TLSParameters map[string]string

// setTLSParameters adds a list of name=value pairs. A sched.conf with parameters
// of the gateway may include a slurm.conf with those of the daemons. So, unlike
// in Slurm, a repeated key adds to the earlier ones.
func setTLSParameters(to *TLSParameters, v string) error {
	if *to == nil {
		*to = TLSParameters{}
	}
	for _, p := range splitList(v) {
		name, value, _ := strings.Cut(p, "=")
		if name == "" {
			return wantError("name=value pairs, separated by commas")
		}
		(*to)[fold(name)] = value
	}
	return nil
}

// setTLSType sets whether the daemons and their clients use TLS. The name of the
// only type is that of the library of Slurm's daemons. The protocol is that of
// every other library.
func setTLSType(to *bool, v string) error {
	switch pluginName(v, "tls/") {
	case "none":
		*to = false
	case "s2n":
		*to = true
	default:
		return wantError("tls/none or tls/s2n")
	}
	return nil
}

// CheckNames parses SCHEDRESTD_TLS_NAMES: whether a certificate of a daemon must
// contain one of the daemon's names in the configuration.
func CheckNames(v string) (bool, error) {
	switch v {
	case "check", "ignore", "":
		return v == "check", nil
	}
	return false, errs.New(errs.Invalid, "environment: SCHEDRESTD_TLS_NAMES=%s", v).WithHint("allowed values: check, ignore")
}

// A Certificate holds the paths of a daemon's certificate chain and of its
// private key, both in PEM.
type Certificate struct{ Chain, Key string }

// ca returns the path of the certificates of the CAs that sign the daemons'
// certificates. A configuration that a controller sent has no directory in which
// ca_cert.pem could be.
func (c *Cluster) ca() (string, error) {
	if c.Sent == nil || c.TLS["ca_cert_file"] != "" {
		return c.TLS.path("ca_cert_file", c.main(), "ca_cert.pem")
	}
	if c.SentCA == "" {
		return "", errs.New(errs.Invalid, "%s: TLSType=tls/s2n needs the file of the cluster's CA", c.Path).
			WithHint("name it in SCHEDRESTD_CONF_CA; it is also needed to fetch the configuration with TLS")
	}
	return c.SentCA, nil
}

// main returns the path of the file beside which certificates are by default. It
// is that of a slurm.conf that the file at Path includes.
func (c *Cluster) main() string {
	for _, path := range c.Files {
		if filepath.Base(path) == "slurm.conf" {
			return path
		}
	}
	return c.Path
}

// Certificate returns the paths of the controller's own certificate.
func (c *Cluster) Certificate() (Certificate, error) {
	return c.TLS.certificate("ctld_cert", c.main())
}

// Certificate returns the paths of the accounting daemon's own certificate.
func (d *Dbd) Certificate() (Certificate, error) { return d.TLS.certificate("dbd_cert", d.Path) }

func (p TLSParameters) certificate(name, file string) (c Certificate, err error) {
	if c.Chain, err = p.path(name+"_file", file, name+".pem"); err == nil {
		c.Key, err = p.path(name+"_key_file", file, name+"_key.pem")
	}
	return c, err
}

// path returns the path in a parameter of a configuration file. Without the
// parameter, it returns the path of the file with the default name beside the
// configuration, as in Slurm.
func (p TLSParameters) path(name, file, fallback string) (string, error) {
	value, ok := p[name]
	switch {
	case !ok:
		return filepath.Join(filepath.Dir(file), fallback), nil
	case !filepath.IsAbs(value):
		return "", tlsError(file, "%s: want an absolute path", name)
	}
	return filepath.Clean(value), nil
}

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
			return TLS{}, tlsError(c.Path, "%s: want an absolute path", name)
		case path:
			*to = filepath.Clean(value)
		case name == "restd_min_version" && (value == "1.2" || value == "1.3"):
			t.TLS12 = value == "1.2"
		case name == "restd_min_version":
			return TLS{}, tlsError(c.Path, "%s: want 1.2 or 1.3", name)
		case strings.HasPrefix(name, "restd_"):
			return TLS{}, tlsError(c.Path, "unknown parameter %s: allowed are restd_ca_file, restd_cert_file, "+
				"restd_cert_key_file and restd_min_version", name)
		}
	}
	return t, nil
}

func tlsError(file, format string, args ...any) error {
	return errs.New(errs.Invalid, "%s: TLSParameters: "+format, append([]any{file}, args...)...)
}

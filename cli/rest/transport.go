package rest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/fdpass/unixconn"
)

// newHTTPClient returns an HTTP client for one address.
func newHTTPClient(cfg Config, addr *address) (*http.Client, error) {
	t := &http.Transport{
		MaxIdleConns:        8,
		MaxIdleConnsPerHost: 8,
		IdleConnTimeout:     time.Minute,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 20 * time.Second,
	}
	if cfg.CACert != "" {
		text, err := os.ReadFile(cfg.CACert)
		if err != nil {
			return nil, errs.Wrap(err, errs.Malformed, "read certificates")
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, errs.New(errs.Malformed, "%s has no certificate in PEM form", cfg.CACert)
		}
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	if addr.secure { // only with TLS, because without it a proxy would see the token
		t.Proxy = http.ProxyFromEnvironment
	}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if cfg.Direct != nil {
			return cfg.Direct(ctx)
		}
		if addr.socket != "" {
			network, address = "unix", addr.socket
		}
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		conn, err := unixconn.DialContext(ctx, network, address)
		if err != nil || cfg.Token == "" || addr.secure {
			return conn, err
		}
		if err := checkServerUser(conn, cfg.ServerUsers); err != nil {
			conn.Close()
			return nil, err
		}
		return conn, nil
	}
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: t, CheckRedirect: noRedirect}, nil
}

// unreachable returns an error that explains why a request got no answer within
// the limit.
func (c *Client) unreachable(ctx context.Context, err error, limit time.Duration) error {
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return e
	}
	if errors.Is(context.Cause(ctx), errTooSlow) {
		return errs.New(errs.Timeout, "%s did not answer within %s", c.addr, limit).
			WithHint("--timeout sets another limit")
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	return &errs.Error{Kind: errs.Unavailable, Message: "connect to " + c.addr.String(), Err: err, Hint: hint(err)}
}

// hint returns a hint that says how to fix a connection error.
func hint(err error) string {
	var (
		unknown x509.UnknownAuthorityError
		host    x509.HostnameError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		dnsErr  *net.DNSError
	)
	switch {
	case errors.As(err, &unknown):
		return "the certificate is not signed by an authority that this machine trusts; name the authority with --cacert FILE"
	case errors.As(err, &host):
		return "in --url, use the name that the server's certificate contains"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server needs a new certificate; or this machine's clock is wrong"
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "the server does not use TLS: use http:// instead of https://"
	case strings.Contains(err.Error(), "malformed HTTP response \"\\x15"):
		return "the server expects TLS: use https:// instead of http://"
	case errors.As(err, &dnsErr):
		return "check the host name in --url"
	case errors.Is(err, fs.ErrNotExist):
		return "the socket does not exist: is the gateway running? --url or SCHED_URL selects another address"
	case errors.Is(err, fs.ErrPermission):
		return "you may not connect to this socket"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "is the gateway running? --url or SCHED_URL selects another address"
	}
	return ""
}

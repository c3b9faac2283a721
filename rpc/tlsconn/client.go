package tlsconn

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"schedrestd/internal/errs"
)

// ErrHandshake is in the chain of every error of Connect.
var ErrHandshake = errors.New("TLS handshake")

// A Client opens TLS connections to daemons. It is safe for concurrent use.
type Client struct {
	roots      *x509.CertPool
	checkNames bool
	sessions   tls.ClientSessionCache

	mu       sync.Mutex                      // guards verified
	verified map[[sha256.Size]byte]time.Time // by the hash of a chain that leads to a CA, when its first certificate expires
}

// Limits on the sessions that can be resumed, one for each address of a daemon,
// and on the chains of certificates that need not be verified again.
const (
	maxSessions = 64
	maxVerified = 64
)

// NewClient returns a Client that accepts certificates of the CAs in der, which
// ParseCA returned. If checkNames is set, a certificate must also contain a name
// of the daemon.
//
// Sessions are shared by all users whom this process serves: they belong to the
// daemon, and say nothing about a user.
func NewClient(der []byte, checkNames bool) (*Client, error) {
	list, err := x509.ParseCertificates(der)
	if err != nil {
		return nil, errs.Wrap(err, errs.Internal, "parse the cluster's CA")
	}
	c := &Client{roots: x509.NewCertPool(), checkNames: checkNames, sessions: tls.NewLRUClientSessionCache(maxSessions),
		verified: map[[sha256.Size]byte]time.Time{}}
	for _, ca := range list {
		c.roots.AddCert(ca)
	}
	return c, nil
}

// ReadClient returns a Client for the CAs in the PEM text of the file at path.
func ReadClient(path string, text []byte, checkNames bool) (*Client, error) {
	der, err := ParseCA(path, text, time.Now())
	if err != nil {
		return nil, err
	}
	return NewClient(der, checkNames)
}

// curves are those that every policy of s2n has, so that a handshake takes one
// round trip. With an offer that begins with another curve, the policy
// that Slurm sets by default would take two.
var curves = []tls.CurveID{tls.CurveP256, tls.CurveP384, tls.CurveP521}

// Connect begins the TLS stream on nc, a connection to a daemon with the given
// names, or addresses, in the configuration. It returns when the daemon has
// proven that it has a certificate of the CA. If ctx ends before, or the
// handshake fails, Connect closes nc, and returns an *errs.Error.
func (c *Client) Connect(ctx context.Context, nc net.Conn, names []string) (*Conn, error) {
	l := &lower{Conn: nc}
	t := tls.Client(l, &tls.Config{
		MinVersion:         tls.VersionTLS12,
		CurvePreferences:   curves,
		ClientSessionCache: c.sessions,
		InsecureSkipVerify: true, // VerifyConnection does that, also for resumed sessions, but without a name
		VerifyConnection:   func(s tls.ConnectionState) error { return c.verify(s.PeerCertificates, names) },
	})
	if err := t.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, explain(err, nc.RemoteAddr().String())
	}
	return &Conn{t, l}, nil
}

// A certificateError is the reason why a certificate is refused.
type certificateError struct{ error }

func (e certificateError) Unwrap() error { return e.error }

// A nameError means that a certificate contains no name of the daemon.
type nameError struct{ want, have []string }

func (e nameError) Error() string {
	return fmt.Sprintf("the certificate is for %s, not for %s", strings.Join(e.have, ", "), strings.Join(e.want, ", "))
}

// verify checks the certificates of a daemon. The address of the connection is
// not one of the names: DNS may have supplied it, and any other machine of the
// cluster may have a certificate for its own address.
func (c *Client) verify(chain []*x509.Certificate, names []string) error {
	if len(chain) == 0 {
		return errors.New("no certificate")
	}
	if err := c.verifyChain(chain); err != nil || !c.checkNames {
		return err
	}
	for _, name := range names {
		if name != "" && chain[0].VerifyHostname(name) == nil {
			return nil
		}
	}
	have := chain[0].DNSNames
	for _, ip := range chain[0].IPAddresses {
		have = append(have, ip.String())
	}
	return nameError{names, have}
}

// verifyChain checks that a chain of certificates leads to a CA. Daemons send the
// same chain with each handshake, and verifying it takes a third of the client's
// time. So a chain is verified only once, until one of its certificates expires:
// nothing else can change the result.
func (c *Client) verifyChain(chain []*x509.Certificate) error {
	hash := sha256.New()
	for _, cert := range chain {
		hash.Write(cert.Raw) // DER contains its own length
	}
	key, now := [sha256.Size]byte(hash.Sum(nil)), time.Now()
	c.mu.Lock()
	expires, ok := c.verified[key]
	c.mu.Unlock()
	if ok && now.Before(expires) {
		return nil
	}
	opts := x509.VerifyOptions{Roots: c.roots, Intermediates: x509.NewCertPool(), CurrentTime: now}
	for _, cert := range chain[1:] {
		opts.Intermediates.AddCert(cert)
	}
	chains, err := chain[0].Verify(opts)
	if err != nil {
		return certificateError{err}
	}
	expires = chains[0][0].NotAfter
	for _, cert := range chains[0] {
		if cert.NotAfter.Before(expires) {
			expires = cert.NotAfter
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.verified) >= maxVerified {
		clear(c.verified)
	}
	c.verified[key] = expires
	return nil
}

// sameType is the hint where a peer speaks no TLS, or may speak none.
const sameType = "TLSType must have the same value for the daemons and for their clients"

// explain returns the error for a handshake that failed with err.
func explain(err error, address string) error {
	kind, text, hint := errs.Unavailable, "the TLS handshake with %s failed (TLSType=tls/s2n)", "the log has the reason"
	var (
		unknown x509.UnknownAuthorityError
		invalid x509.CertificateInvalidError
		record  tls.RecordHeaderError
		remote  *net.OpError
		refused certificateError
		name    nameError
	)
	switch {
	case errors.As(err, &name):
		text, hint = "the certificate of %s does not contain the daemon's name", "SCHEDRESTD_TLS_NAMES=check requires one of the names in the configuration"
	case errors.As(err, &unknown):
		text, hint = "the certificate of %s is not from the cluster's CA (ca_cert_file)", "ca_cert_file= in TLSParameters must be the CA that signed it"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		text, hint = "the certificate of %s, or that of its CA, has expired or is not valid yet", "renew it, and check the clocks"
	case errors.As(err, &refused):
		text, hint = "the certificate of %s can't be used", "it must be a certificate for a server, from the cluster's CA"
	case errors.As(err, &record), errors.Is(err, io.EOF), errors.Is(err, ErrCutOff), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		text, hint = "%s does not speak TLS (TLSType=tls/s2n)", sameType
		if !errors.As(err, &record) {
			text = "%s closed the connection in the TLS handshake (TLSType=tls/s2n)"
		}
	case errors.As(err, &remote) && remote.Op == "remote error": // an alert
		hint = "the daemon refuses TLS: its certificate may be missing; its log has the reason"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		kind, hint, text = errs.Timeout, sameType, "%s does not answer the TLS handshake in time (TLSType=tls/s2n)"
	}
	return &errs.Error{Kind: kind, Message: fmt.Sprintf(text, address), Hint: hint, Err: fmt.Errorf("%w: %w", ErrHandshake, err)}
}

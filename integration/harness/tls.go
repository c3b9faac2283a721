package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"schedrestd/bundled/demo/site"
	"strings"
	"testing"
	"time"
)

// TLSLab is a lab whose gateway also listens for https.
type TLSLab struct {
	*Lab
	Addr              string // HOST:PORT of the https:// listener
	CertFile, KeyFile string // paths
	leaf              *x509.Certificate
}

// NewTLSLab starts a TLSLab. It adds the given TLSParameters to those that name
// the certificate.
func NewTLSLab(t *testing.T, parameters ...string) *TLSLab {
	t.Helper()
	s := &TLSLab{}
	s.Lab = NewLab(t, func(l *Lab) {
		s.Lab = l
		s.CertFile, s.KeyFile = filepath.Join(l.Dir, "etc", "cert.pem"), filepath.Join(l.Dir, "etc", "key.pem")
		s.RenewCert()
		port, err := site.FreePorts(1)
		Must(t, err)
		s.Addr = fmt.Sprintf("127.0.0.1:%d", port[0])
		l.Restd.Args = append(l.Restd.Args, "https://"+s.Addr)
		l.Restd.Env = append(l.Restd.Env, "SCHEDRESTD_DEBUG=debug") // otherwise a worker does not log every request
		files := []string{"restd_cert_file=" + s.CertFile, "restd_cert_key_file=" + s.KeyFile}
		s.Extra = "TLSParameters=" + strings.Join(append(files, parameters...), ",") + "\n"
	})
	return s
}

// Identity is a key and its certificate.
type Identity struct {
	key     *ecdsa.PrivateKey
	leaf    *x509.Certificate
	KeyPEM  []byte
	CertPEM []byte
}

// NewIdentity creates an identity. The certificate is signed by issuer, or
// self-signed if issuer is nil.
func NewIdentity(t *testing.T, issuer *Identity) *Identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Must(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<60))
	Must(t, err)
	c := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "lab"},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		BasicConstraintsValid: true, IsCA: issuer == nil,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := c, key
	if issuer != nil {
		parent, signer = issuer.leaf, issuer.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	Must(t, err)
	leaf, err := x509.ParseCertificate(der)
	Must(t, err)
	text, err := x509.MarshalPKCS8PrivateKey(key)
	Must(t, err)
	return &Identity{key: key, leaf: leaf,
		KeyPEM:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text}),
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// ReplaceFile replaces a file by renaming a new file to its path. Programs that
// renew certificates also do this.
func ReplaceFile(t *testing.T, path string, text []byte, mode os.FileMode) {
	t.Helper()
	Must(t, os.WriteFile(path+".new", text, mode))
	Must(t, os.Rename(path+".new", path))
}

// RenewCert replaces key and certificate.
func (s *TLSLab) RenewCert() {
	s.T.Helper()
	id := NewIdentity(s.T, nil)
	ReplaceFile(s.T, s.KeyFile, id.KeyPEM, 0o600)
	ReplaceFile(s.T, s.CertFile, id.CertPEM, 0o644)
	s.leaf = id.leaf
}

// ServesCurrentCert reports whether the gateway presents the current
// certificate on a new connection.
func (s *TLSLab) ServesCurrentCert() bool {
	c, err := tls.Dial("tcp", s.Addr, &tls.Config{InsecureSkipVerify: true})
	Must(s.T, err)
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].Equal(s.leaf)
}

// Curl runs curl, with s.CertFile as its trusted certificate, and returns
// curl's output.
func (s *TLSLab) Curl(args ...string) (string, error) {
	s.T.Helper()
	tool, err := exec.LookPath("curl")
	if err != nil {
		s.T.Skip("curl is not installed")
	}
	args = append([]string{"-sS", "--max-time", "60", "--cacert", s.CertFile}, args...)
	out, err := exec.Command(tool, args...).CombinedOutput()
	return string(out), err
}

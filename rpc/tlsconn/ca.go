package tlsconn

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"

	"schedrestd/internal/errs"
)

// maxCA is the maximum length of the certificates of the CAs, in bytes of DER.
// A certificate with an elliptic curve has about 500 bytes, one with RSA and
// 4096 bits has about 1400.
const maxCA = 6 << 10

// ParseCA returns the certificates in the PEM text of a file of CAs, as
// concatenated DER. It returns an error if there are none, if they are too
// long, or if all of them have expired. The path is only for errors.
func ParseCA(path string, text []byte, now time.Time) ([]byte, error) {
	var der []byte
	var expired, usable *x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errs.Wrap(err, errs.Invalid, "ca_cert_file %s", path)
		}
		if der = append(der, block.Bytes...); now.After(c.NotAfter) {
			expired = c
		} else {
			usable = c
		}
	}
	switch {
	case bytes.Contains(text, []byte("PRIVATE KEY-----")):
		return nil, errs.New(errs.Invalid, "ca_cert_file %s: the file contains a private key", path).
			WithHint("the key of a CA must be in a file of its own, which the daemons and the gateway don't need")
	case len(der) == 0:
		return nil, errs.New(errs.Invalid, "ca_cert_file %s: the file contains no certificate in PEM", path)
	case len(der) > maxCA:
		return nil, errs.New(errs.Invalid, "ca_cert_file %s: certificates of %d bytes", path, len(der)).
			WithHint("at most %d bytes are possible; only the CA that signed the daemons' certificates is needed", maxCA)
	case usable == nil:
		return nil, errs.New(errs.Invalid, "ca_cert_file %s: expired on %s", path, expired.NotAfter.Format(time.DateOnly))
	}
	return der, nil
}

// DescribeCA returns the subjects of the certificates that ParseCA returned, and
// the times until which they are valid.
func DescribeCA(der []byte) string {
	list, err := x509.ParseCertificates(der)
	if err != nil {
		return err.Error()
	}
	text := ""
	for i, c := range list {
		if i > 0 {
			text += "; "
		}
		text += fmt.Sprintf("%q, valid until %s", c.Subject.String(), c.NotAfter.Format(time.DateOnly))
	}
	return text
}

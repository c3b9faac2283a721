package tlsconn

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/rpc/tlsconn/tlstest"
)

// TestParseCA checks what is accepted as a file of CAs.
func TestParseCA(t *testing.T) {
	t.Parallel()
	ca, expired := tlstest.NewCA(t), tlstest.NewCA(t, tlstest.Expired)
	later := tlstest.NewCA(t, func(c *x509.Certificate) { c.NotBefore = time.Now().Add(time.Hour) })
	_, key := tlstest.EncodePEM(t, ca.Issue(t))
	garbled := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Certificate.Raw[:100]})
	tests := []struct {
		name    string
		text    []byte
		want    []*tlstest.Issuer
		problem string
	}{
		{name: "one", text: ca.PEM(), want: []*tlstest.Issuer{ca}},
		{name: "text around it", text: slices.Concat([]byte("# the CA\n"), ca.PEM(), []byte("\nend\n")), want: []*tlstest.Issuer{ca}},
		{name: "an expired one beside it", text: slices.Concat(expired.PEM(), ca.PEM()), want: []*tlstest.Issuer{expired, ca}},
		{name: "not valid yet", text: later.PEM(), want: []*tlstest.Issuer{later}}, // the clock may be wrong after a start
		{name: "expired", text: expired.PEM(), problem: "/ca.pem: expired on " + expired.Certificate.NotAfter.Format(time.DateOnly)},
		{name: "empty", problem: "contains no certificate in PEM"},
		{name: "DER", text: ca.Certificate.Raw, problem: "contains no certificate in PEM"},
		{name: "a key", text: key, problem: "contains a private key"},
		{name: "a key beside it", text: slices.Concat(ca.PEM(), key), problem: "contains a private key"},
		{name: "garbled", text: garbled, problem: "ca_cert_file /ca.pem"},
		{name: "too long", text: bytes.Repeat(ca.PEM(), 30), problem: "certificates of"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			der, err := ParseCA("/ca.pem", tt.text, time.Now())
			if tt.problem != "" {
				if err == nil || errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("error %v, want %q", err, tt.problem)
				}
				return
			}
			var want []byte
			for _, i := range tt.want {
				want = append(want, i.Certificate.Raw...)
			}
			if err != nil || !bytes.Equal(der, want) {
				t.Errorf("%d bytes, want %d; %v", len(der), len(want), err)
			}
			if text := DescribeCA(der); strings.Count(text, "valid until") != len(tt.want) {
				t.Errorf("description %q", text)
			}
		})
	}
}

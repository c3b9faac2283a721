package tlsconn

import (
	"crypto/tls"
	"net"
	"testing"

	"schedrestd/internal/socket/sockettest"
	"schedrestd/rpc/tlsconn/tlstest"
)

// BenchmarkConnect measures a connection with one request, both ends together.
func BenchmarkConnect(b *testing.B) {
	ca := tlstest.NewCA(b)
	for _, bb := range []struct {
		name    string
		tickets bool
	}{{"whole", false}, {"resumed", true}} {
		b.Run(bb.name, func(b *testing.B) {
			address := sockettest.Serve(b, "tcp", answering(&tls.Config{Certificates: []tls.Certificate{ca.Issue(b)}, SessionTicketsDisabled: !bb.tickets}))
			client := newClient(b, false, ca)
			for b.Loop() {
				raw, err := net.Dial("tcp", address)
				if err != nil {
					b.Fatal(err)
				}
				nc, err := client.Connect(b.Context(), raw, nil)
				if err != nil {
					b.Fatal(err)
				}
				nc.Write([]byte{1})
				nc.Read(make([]byte, 1))
				nc.Close()
			}
		})
	}
}

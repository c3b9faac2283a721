package tlsconn

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"schedrestd/rpc/tlsconn/tlstest"
)

// FuzzConnect sends a client something instead of a handshake, and then closes
// the connection. The handshake must fail.
func FuzzConnect(f *testing.F) {
	for _, text := range []string{"", "HTTP/1.1 400 Bad Request\r\n\r\n", "\x15\x03\x03\x00\x02\x02\x28", "\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03", "\x00\x00\x00\x10\x2a\x00"} {
		f.Add([]byte(text))
	}
	client := newClient(f, true, tlstest.NewCA(f))
	f.Fuzz(func(t *testing.T, text []byte) {
		ours, theirs := net.Pipe()
		go func() {
			theirs.SetDeadline(time.Now().Add(time.Minute))
			theirs.Read(make([]byte, 4<<10))
			go io.Copy(io.Discard, theirs) // the client may send an alert before it has read all of the text
			theirs.Write(text)
			theirs.Close()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := client.Connect(ctx, ours, []string{"ctl"}); err == nil {
			t.Error("the handshake succeeded")
		}
	})
}

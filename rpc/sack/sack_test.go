package sack

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/rpc/munge"
)

const credential = "eyJhbGciOiJIUzI1NiJ9.eyJ1aWQiOjF9.c2ln-_"

// kiosk serves a new socket and returns its path. It calls act(nc, request) for
// each request.
func kiosk(t testing.TB, act func(nc net.Conn, request []byte)) string {
	t.Helper()
	return sockettest.Serve(t, "unix", func(nc net.Conn) {
		head := make([]byte, 6)
		if _, err := io.ReadFull(nc, head); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[2:])-4) // the length includes itself, but not the version
		if _, err := io.ReadFull(nc, body); err == nil {
			act(nc, append(head, body...))
		}
	})
}

func clientOf(sockets ...string) *Client {
	var d net.Dialer
	return &Client{
		Sockets: sockets,
		Trusted: func(int, uint32) bool { return true },
		Dial:    func(ctx context.Context, i int) (net.Conn, error) { return d.DialContext(ctx, "unix", sockets[i]) },
	}
}

func answer(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// TestRequest compares a request with the bytes that sackd accepts in Slurm
// 24.11 and 26.05.
func TestRequest(t *testing.T) {
	var got []byte
	socket := kiosk(t, func(nc net.Conn, request []byte) {
		got = request
		nc.Write(answer(credential + "\x00"))
	})
	text, err := clientOf(socket).Encode(t.Context(), []byte("pay"), 64030)
	if err != nil || text != credential {
		t.Fatalf("got %q, %v", text, err)
	}
	want := []byte("\x28\x00" + "\x00\x00\x00\x13" + "\x00\x00\xfa\x01" + "\x00\x00\xfa\x1e" + "\x00\x00\x00\x03pay")
	if !bytes.Equal(got, want) {
		t.Errorf("asked %x, want %x", got, want)
	}
	if _, err := clientOf(socket).Encode(t.Context(), nil, munge.Anyone); errs.KindOf(err) != errs.Internal {
		t.Errorf("a credential that all can use: %v", err)
	}
	public := clientOf(socket)
	public.Public = true
	if _, err := public.Encode(t.Context(), nil, munge.Anyone); err != nil || !bytes.Equal(got[10:14], []byte("\xff\xff\xff\xff")) {
		t.Errorf("a public credential: %v, asked %x", err, got)
	}
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer []byte
		want   errs.Kind
	}{
		{"closed", nil, errs.Unavailable},
		{"cut short", answer(credential + "\x00")[:20], errs.Unavailable},
		{"empty", answer(""), errs.BadAnswer},
		{"endless", []byte("\xff\xff\xff\xff"), errs.BadAnswer},
		{"without its end", answer(credential), errs.BadAnswer},
		{"no token", answer("MUNGE:AwQ=:\x00"), errs.BadAnswer},
		{"two parts", answer("a.b\x00"), errs.BadAnswer},
		{"an empty part", answer("a..b\x00"), errs.BadAnswer},
		{"an extra line", answer("a.b.c\n\x00"), errs.BadAnswer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			socket := kiosk(t, func(nc net.Conn, _ []byte) { nc.Write(tt.answer) })
			if text, err := clientOf(socket).Encode(t.Context(), []byte("pay"), 1); errs.KindOf(err) != tt.want || text != "" {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
}

// TestSockets checks that a socket is skipped if it does not exist or if an
// untrusted user serves it. If all sockets are skipped, the error must contain
// their paths, for the log. The error's Message must not contain them, because
// HTTP clients get it.
func TestSockets(t *testing.T) {
	socket := kiosk(t, func(nc net.Conn, _ []byte) { nc.Write(answer(credential + "\x00")) })
	none := filepath.Join(t.TempDir(), "none")
	if text, err := clientOf(none, socket).Encode(t.Context(), nil, 1); err != nil || text != credential {
		t.Errorf("got %q, %v", text, err)
	}
	c := clientOf(socket, socket)
	c.Trusted = func(i int, uid uint32) bool { return i == 1 && uid == uint32(os.Geteuid()) }
	if text, err := c.Encode(t.Context(), nil, 1); err != nil || text != credential {
		t.Errorf("a false one comes first: %q, %v", text, err)
	}
	_, err := clientOf(none).Encode(t.Context(), nil, 1)
	if errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), none) || !strings.Contains(errs.HintOf(err), "sackd") {
		t.Errorf("none: %v, hint %q", err, errs.HintOf(err))
	}
	if e, ok := err.(*errs.Error); !ok || strings.Contains(e.Message, none) {
		t.Errorf("a client is shown %v", err)
	}
	c.Trusted = func(int, uint32) bool { return false }
	if _, err := c.Encode(t.Context(), nil, 1); errs.KindOf(err) != errs.Unavailable || !strings.Contains(errs.HintOf(err), "owner") {
		t.Errorf("false ones: %v, hint %q", err, errs.HintOf(err))
	}
}

// TestSilence checks that the caller waits no longer than its time limit
// permits.
func TestSilence(t *testing.T) {
	ended := make(chan struct{})
	socket := kiosk(t, func(net.Conn, []byte) { <-ended })
	t.Cleanup(func() { close(ended) })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := clientOf(socket).Encode(ctx, nil, 1); errs.KindOf(err) != errs.Timeout {
		t.Error(err)
	}
}

// FuzzAnswer parses arbitrary bytes as answers. The parser must not panic, and
// every credential that it returns must be well-formed.
func FuzzAnswer(f *testing.F) {
	f.Add(answer(credential + "\x00"))
	f.Add(answer("a.b.c"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if text, err := receive(bytes.NewReader(b)); err == nil && (strings.Count(text, ".") != 2 || len(text) > len(b)) {
			t.Errorf("%q is taken for a credential", text)
		}
	})
}

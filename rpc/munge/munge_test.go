package munge

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
)

const credential = "MUNGE:AwQFAAB+/w==:"

// munged runs a fake munged. For each request, it calls act with the connection
// and the request, including its header.
func munged(t testing.TB, act func(nc net.Conn, request []byte)) *Client {
	t.Helper()
	return &Client{Socket: sockettest.Serve(t, "unix", func(nc net.Conn) {
		request := make([]byte, headerLength)
		if _, err := io.ReadFull(nc, request); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(request[7:]))
		if _, err := io.ReadFull(nc, body); err == nil {
			act(nc, append(request, body...))
		}
	})}
}

// respondWith returns a function that sends the same answer to every request.
func respondWith(answer []byte) func(net.Conn, []byte) {
	return func(nc net.Conn, _ []byte) { nc.Write(answer) }
}

func framed(k kind, body []byte) []byte {
	b := header(k)
	binary.BigEndian.PutUint32(b[7:], uint32(len(body)))
	return append(b, body...)
}

func words(number byte, text string) []byte {
	return append([]byte{number, byte(len(text))}, text...)
}

func long(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func encoded(text string) []byte { return framed(encodeResponse, append(words(0, ""), long(text)...)) }

func decoded(uid uint32, payload string) []byte {
	b := append(words(0, ""), 4, 5, 0, 2, 'r', 0)
	b = binary.BigEndian.AppendUint32(b, 300)
	b = append(b, 4, 127, 0, 0, 1)
	for _, n := range []uint32{1000, 1001, uid, 20, 30, Anyone} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return framed(decodeResponse, append(b, long(payload)...))
}

// TestEncodeRequest compares a request with the bytes that munged 0.5.16
// accepts.
func TestEncodeRequest(t *testing.T) {
	var got []byte
	c := munged(t, func(nc net.Conn, request []byte) {
		got = request
		nc.Write(encoded(credential + "\x00"))
	})
	for ttl, seconds := range map[time.Duration]string{0: "\x00\x00\x00\x00", 5 * time.Minute: "\x00\x00\x01\x2c", 1 << 62: "\x00\x00\x0e\x10"} {
		c.TTL = ttl
		text, err := c.Encode(t.Context(), []byte("pay"), 64030)
		if err != nil || text != credential {
			t.Fatalf("got %q, %v", text, err)
		}
		want := []byte("\x00\x60\x6d\x4b\x04\x02\x00\x00\x00\x00\x17" + "\x01\x01\x00\x00" + seconds +
			"\x00\x00\xfa\x1e" + "\xff\xff\xff\xff" + "\x00\x00\x00\x03pay")
		if !bytes.Equal(got, want) {
			t.Errorf("asked %x, want %x", got, want)
		}
	}
}

func TestDecodeRequest(t *testing.T) {
	var got []byte
	c := munged(t, func(nc net.Conn, request []byte) {
		got = request
		nc.Write(decoded(10, "pay"))
	})
	d, err := c.Decode(t.Context(), credential)
	if err != nil {
		t.Fatal(err)
	}
	want := Decoded{UID: 10, GID: 20, Payload: []byte("pay"), Encoded: time.Unix(1000, 0), TTL: 5 * time.Minute}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
	if want := append([]byte("\x00\x60\x6d\x4b\x04\x04\x00\x00\x00\x00\x18"+"\x00\x00\x00\x14"), credential+"\x00"...); !bytes.Equal(got, want) {
		t.Errorf("asked %x, want %x", got, want)
	}
}

// TestBadMunged checks that every invalid answer from munged results in an
// error with a reason, and never in a credential.
func TestBadMunged(t *testing.T) {
	good := encoded(credential + "\x00")
	edit := func(at int, b byte) []byte {
		c := bytes.Clone(good)
		c[at] = b
		return c
	}
	tests := []struct {
		name   string
		answer []byte
		kind   errs.Kind
		want   string // expected part of the error's text
	}{
		{"closes at once", nil, errs.Unavailable, "before its answer was complete"},
		{"closes within the header", good[:10], errs.Unavailable, "before its answer was complete"},
		{"closes after the header", good[:11], errs.Unavailable, "before its answer was complete"},
		{"closes within the credential", good[:len(good)-1], errs.Unavailable, "before its answer was complete"},
		{"other magic", edit(0, 1), errs.BadAnswer, "begins with 01606d4b"},
		{"other version", edit(4, 5), errs.BadAnswer, "version 5 instead of 4"},
		{"other message", decoded(1, ""), errs.BadAnswer, "message 5 instead of 3"},
		{"HTTP", []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), errs.BadAnswer, "begins with 48545450"},
		{"huge answer", append(header(encodeResponse)[:7], 0xff, 0xff, 0xff, 0xff), errs.BadAnswer, "4294967295 bytes exceeds the limit"},
		{"a byte over the limit", append(header(encodeResponse)[:7], 0, 1, 0, 1), errs.BadAnswer, "65537 bytes exceeds the limit"},
		{"empty answer", framed(encodeResponse, nil), errs.BadAnswer, "1 bytes where 0 are left"},
		{"text longer than the answer", framed(encodeResponse, []byte{0, 9, 'x'}), errs.BadAnswer, "9 bytes where 1 are left"},
		{"huge credential", framed(encodeResponse, append(words(0, ""), 0xff, 0xff, 0xff, 0xff, 'M')), errs.BadAnswer, "4294967295 bytes where 1 are left"},
		{"leftovers", framed(encodeResponse, append(good[11:len(good):len(good)], 0)), errs.BadAnswer, "1 bytes left over"},
		{"no NUL", encoded(credential), errs.BadAnswer, "malformed credential"},
		{"a NUL inside", encoded("MUNGE:AA\x00AA:\x00"), errs.BadAnswer, "malformed credential"},
		{"a line end inside", encoded("MUNGE:AA\nAA:\x00"), errs.BadAnswer, "malformed credential"},
		{"an empty answer as a credential", encoded(""), errs.BadAnswer, "malformed credential"},
		{"an empty credential", encoded("MUNGE::\x00"), errs.BadAnswer, "malformed credential"},
		{"a credential of another kind", encoded("eyJhbGciOiJIUzI1NiJ9.e30.AA\x00"), errs.BadAnswer, "malformed credential"},
		{"an error", framed(encodeResponse, append(words(1, "Internal \x1b[31merror\n\x00"), long("")...)), errs.Unavailable,
			"Internal [31merror (munge error 1)"},
		{"an error with a credential", framed(encodeResponse, append(words(5, ""), long(credential+"\x00")...)), errs.Unavailable, "munge error 5"},
		{"only an error", framed(encodeResponse, words(6, "no")), errs.Unavailable, "no (munge error 6)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, err := munged(t, respondWith(tt.answer)).Encode(t.Context(), []byte("pay"), 1)
			check(t, err, tt.kind, tt.want)
			if text != "" {
				t.Errorf("got the credential %q as well", text)
			}
		})
	}
}

// TestRefusedCredentials checks that an error shows whether munged refused a
// credential or munged itself failed.
func TestRefusedCredentials(t *testing.T) {
	whole := decoded(10, "pay")[11:]
	bad := func(number byte) []byte { return framed(decodeResponse, append([]byte{number, 0}, whole[2:]...)) }
	tests := []struct {
		name   string
		answer []byte
		kind   errs.Kind
		number uint8 // error number of munge
	}{
		{"no memory", bad(4), errs.Unavailable, 4},
		{"socket", bad(6), errs.Unavailable, 6},
		{"form", bad(BadCredential), errs.Unauthenticated, BadCredential},
		{"another key", bad(Invalid), errs.Unauthenticated, Invalid},
		{"expired, with its contents", bad(Expired), errs.Unauthenticated, Expired},
		{"replayed, with its contents", bad(Replayed), errs.Unauthenticated, Replayed},
		{"another uid", bad(Unauthorized), errs.Unauthenticated, Unauthorized},
		{"unknown error", bad(19), errs.Unavailable, 19},
		{"cut", framed(decodeResponse, whole[:len(whole)-1]), errs.BadAnswer, 0},
		{"cut in the ids", framed(decodeResponse, whole[:30]), errs.BadAnswer, 0},
		{"leftovers", framed(decodeResponse, append(whole[:len(whole):len(whole)], 0)), errs.BadAnswer, 0},
		{"no valid uid", decoded(Anyone, "pay"), errs.BadAnswer, 0},
		{"other message", encoded(credential + "\x00"), errs.BadAnswer, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := munged(t, respondWith(tt.answer)).Decode(t.Context(), credential)
			check(t, err, tt.kind, "")
			own, _ := errors.AsType[*Error](err)
			if (own != nil) != (tt.number != 0) || own != nil && own.Number != tt.number {
				t.Errorf("munge's own error is %v, want number %d", own, tt.number)
			}
			if diff := cmp.Diff(Decoded{}, d); diff != "" {
				t.Errorf("something is said of a credential that is not good:\n%s", diff)
			}
		})
	}
}

// TestSlowMunged checks a munged that accepts the connection but never
// completes an answer. The caller must not wait longer than its context
// permits.
func TestSlowMunged(t *testing.T) {
	for name, answer := range map[string][]byte{"silent": nil, "half an answer": encoded(credential)[:20]} {
		t.Run(name, func(t *testing.T) {
			hang := make(chan struct{})
			c := munged(t, func(nc net.Conn, _ []byte) { nc.Write(answer); <-hang })
			defer close(hang)
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := c.Encode(ctx, nil, 1)
			check(t, err, errs.Timeout, "does not answer in time")
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v is not of the deadline", err)
			}
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			_, err = c.Encode(ctx, nil, 1)
			if check(t, err, errs.Timeout, ""); !errors.Is(err, context.Canceled) {
				t.Errorf("%v is not of the cancellation", err)
			}
		})
	}
}

// TestNoMunged checks the error and the hint for each way in which munged can
// be unavailable.
func TestNoMunged(t *testing.T) {
	dir := sockettest.Dir(t)
	stale := filepath.Join(dir, "stale")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale})
	if err != nil {
		t.Fatal(err)
	}
	ln.SetUnlinkOnClose(false)
	ln.Close()
	tests := []struct {
		name string
		c    Client
		want error
		hint string
	}{
		{"no socket", Client{Socket: filepath.Join(dir, "none")}, syscall.ENOENT, "check that munged runs"},
		{"no process listens", Client{Socket: stale}, syscall.ECONNREFUSED, "check that munged runs"},
		{"not allowed", Client{Dial: func(context.Context, string) (net.Conn, error) { return nil, syscall.EACCES }}, syscall.EACCES, "access to the directory"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tt.c.Encode(t.Context(), nil, 1)
			check(t, err, errs.Unavailable, tt.c.socket())
			if !errors.Is(err, tt.want) || !strings.Contains(errs.HintOf(err), tt.hint) {
				t.Errorf("got %v, hint %q", err, errs.HintOf(err))
			}
		})
	}
}

// TestBusyMunged checks that the client waits if munged's queue is full.
func TestBusyMunged(t *testing.T) {
	c := munged(t, respondWith(encoded(credential+"\x00")))
	dials := 0
	c.Dial = func(ctx context.Context, socket string) (net.Conn, error) {
		if dials++; dials < 4 {
			return nil, &net.OpError{Op: "dial", Err: syscall.EAGAIN}
		}
		return net.Dial("unix", socket)
	}
	if text, err := c.Encode(t.Context(), nil, 1); err != nil || text != credential || dials != 4 {
		t.Errorf("got %q, %v after %d attempts", text, err, dials)
	}
	c.Dial = func(context.Context, string) (net.Conn, error) { return nil, syscall.EAGAIN }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Encode(ctx, nil, 1)
	check(t, err, errs.Timeout, "does not answer in time")
}

// TestStranger checks that a Client sends no request to a munged that an
// untrusted user runs. That user could return a credential of their own, and
// the job that a client submits would then run as that user.
func TestStranger(t *testing.T) {
	requests := make(chan struct{}, 1)
	c := munged(t, func(nc net.Conn, _ []byte) {
		requests <- struct{}{}
		nc.Write(encoded(credential + "\x00"))
	})
	refused := func(want string) {
		t.Helper()
		_, err := c.Encode(t.Context(), nil, 1)
		check(t, err, errs.Unavailable, want)
		select {
		case <-requests:
			t.Error("it was asked")
		default:
		}
	}
	c.Trusted = func(uid uint32) bool {
		if int(uid) != os.Geteuid() {
			t.Errorf("it is said to be uid %d", uid)
		}
		return false
	}
	refused("untrusted")
	c.Dial = func(context.Context, string) (net.Conn, error) { // the kernel does not know this connection's peer
		near, far := net.Pipe()
		t.Cleanup(func() { far.Close() })
		return near, nil
	}
	refused("the kernel does not name")
}

// TestTrustedByItself checks whom a Client trusts by default: root, and the
// owner of the socket's directory.
func TestTrustedByItself(t *testing.T) {
	c := munged(t, nil)
	dir := filepath.Dir(c.Socket)
	believed := func(uid uint32, want bool) {
		t.Helper()
		if got := c.isRootOrOwner(uid); got != want {
			t.Errorf("uid %d is believed: %v", uid, got)
		}
	}
	believed(0, true)
	believed(uint32(os.Geteuid()), true)
	believed(31001, false)
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a directory to others")
	}
	for _, owner := range []int{31001, 65534} {
		if err := os.Chown(dir, owner, owner); err != nil {
			t.Fatal(err)
		}
		believed(uint32(owner), owner != 65534)
		believed(31002, false)
		believed(0, true)
	}
}

// TestUnaskable checks that invalid requests are not sent.
func TestUnaskable(t *testing.T) {
	c := &Client{Dial: func(context.Context, string) (net.Conn, error) {
		t.Error("munged was dialled")
		return nil, syscall.ENOENT
	}}
	_, err := c.Encode(t.Context(), nil, Anyone)
	check(t, err, errs.Internal, "all users")
	_, err = c.Encode(t.Context(), make([]byte, maxLength), 1)
	check(t, err, errs.TooLarge, "for requests to munged")
	c.TTL = -1
	_, err = c.Encode(t.Context(), nil, 1)
	check(t, err, errs.Internal, "time to live")
	_, err = c.Decode(t.Context(), strings.Repeat("x", maxLength))
	check(t, err, errs.TooLarge, "for requests to munged")
}

func check(t *testing.T, err error, kind errs.Kind, want string) {
	t.Helper()
	if err == nil || errs.KindOf(err) != kind || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v (%v), want %v with %q", err, errs.KindOf(err), kind, want)
	}
}

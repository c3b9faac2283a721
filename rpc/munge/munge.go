// Package munge asks munged, the daemon of the MUNGE authentication service, for credentials
// and what they say: in Go alone, over munged's UNIX socket, protocol version 4 of
// munge 0.5.
//
// A credential is a text with which munged vouches for the process that asked: the uid and
// gid that the kernel gives for its connection (SO_PEERCRED), the time, and a payload. There is no
// secret here to keep. Who asks is who the credential names, so that one process
// can't ask for another user, and a connection is never handed to one.
//
// What that proves, and what not:
//
//   - The payload is a hash of the message's body and number (Payload). Whoever takes a
//     message off the network can't put its credential before another body. The message's header,
//     with the protocol version, is not covered, and nothing is encrypted.
//   - The credential can be decoded by one uid alone, the scheduler's user (Encode's
//     argument). Whoever listens in the controller's place can't read it; he can pass it on, with
//     the body it was made for.
//   - For 5 minutes, or Client.TTL, and by munged's own count once. But each munged counts by itself:
//     two clusters that share a munge key and the uid of the scheduler's user would both accept
//     the same credential. And a Slurm that was built for several node daemons on one machine, as
//     Debian's is, accepts one again and again until it expires: there, who takes
//     a submission off the network can submit the same job again, as the same user.
//     Where that matters the network has to be one that nobody listens on. Here a
//     credential is made anew for each attempt, never kept and never logged.
//   - Nothing proves the answer: from protocol 39 on it comes without a credential. A controller is
//     known by its address, as with tokens, and by nothing else without TLS.
//
// A false munged learns next to nothing: who asks, and a hash. But it could hand out a
// credential that its owner got from the real one, and the request would be carried out
// in his name: somebody else's script and environment, run by him. Hence Client.Trusted.
package munge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"schedrestd/become"
	"schedrestd/become/peer"
	"schedrestd/errs"
)

// DefaultSocket is where munged listens unless it is told otherwise.
const DefaultSocket = "/run/munge/munge.socket.2"

// Client asks one munged. The zero value is ready to use, by several goroutines at once: each
// question has a connection of its own.
type Client struct {
	Socket string        // "": DefaultSocket
	TTL    time.Duration // how long credentials are good, in whole seconds; 0: what munged gives, 5 minutes

	// Trusted tells whose munged may be at the other end; nil: root's, and that of the owner of
	// the socket's directory, who decides what the directory has in it anyway. In a directory like
	// /tmp that leaves root. In a user namespace that shows neither, say it here.
	Trusted func(uid uint32) bool

	// Dial opens a connection to the socket; nil: by itself. It must be one that the kernel
	// names a peer for, and that this process opened: its maker is who munged vouches for.
	Dial func(ctx context.Context, socket string) (net.Conn, error)
}

// Decoded is what a good credential says.
type Decoded struct {
	UID, GID uint32 // of the process that asked for it
	Payload  []byte
	Encoded  time.Time     // by the clock of the machine that made it, in seconds
	TTL      time.Duration // how long from then on it is good
}

// Encode makes a credential for this process's effective uid and gid, that carries payload
// and that processes of uid alone can decode. Use it once.
//
// Errors are *errs.Error: Unavailable, Timeout or BadAnswer.
func (c *Client) Encode(ctx context.Context, payload []byte, uid uint32) (string, error) {
	if uid == nobody {
		return "", errs.New(errs.Internal, "a credential that everybody may decode is not asked for")
	}
	request, err := encodeRequest(payload, uid, c.TTL)
	if err != nil {
		return "", err
	}
	answer, err := c.ask(ctx, request, encodeResponse)
	if err != nil {
		return "", err
	}
	text, err := parseEncoded(answer)
	if refusal, ok := errors.AsType[*Error](err); ok {
		return "", errs.Wrap(refusal, errs.Unavailable, "munged makes no credential: %v", refusal)
	}
	if err != nil {
		return "", garbled(err)
	}
	return text, nil
}

// Decode has munged judge a credential: that it is whole, made with munged's key, for this
// process's uid, in time, and not seen before. It can be decoded once.
//
// Errors are *errs.Error: Unauthenticated, with an *Error as its cause, when the
// credential is not good; else as Encode's.
func (c *Client) Decode(ctx context.Context, credential string) (Decoded, error) {
	request, err := decodeRequest(credential)
	if err != nil {
		return Decoded{}, err
	}
	answer, err := c.ask(ctx, request, decodeResponse)
	if err != nil {
		return Decoded{}, err
	}
	d, err := parseDecoded(answer)
	if refusal, ok := errors.AsType[*Error](err); ok {
		if refusal.ofCredential() {
			return Decoded{}, errs.Wrap(refusal, errs.Unauthenticated, "the credential is not accepted")
		}
		return Decoded{}, errs.Wrap(refusal, errs.Unavailable, "munged judges no credential: %v", refusal)
	}
	if err != nil {
		return Decoded{}, garbled(err)
	}
	return d, nil
}

// ask sends a request and reads the answer, of the kind want, without its header: one connection.
func (c *Client) ask(ctx context.Context, request []byte, want kind) ([]byte, error) {
	nc, err := c.connect(ctx)
	if err != nil {
		return nil, c.unreached(ctx, err)
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })()
	_, sent := nc.Write(request)
	answer, err := receive(nc, want)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, late(ctx, err)
	case errors.Is(err, errGarbled):
		return nil, garbled(err)
	case sent != nil:
		err = fmt.Errorf("send request: %w", sent)
	}
	// It ended, or is being started again: nothing was sent to any daemon yet, so that later is as good as now.
	return nil, errs.Wrap(err, errs.Unavailable, "munged closed the connection without a whole answer")
}

// receive reads an answer of the kind want, and returns what follows its header.
func receive(r io.Reader, want kind) ([]byte, error) {
	var h [headerLength]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, fmt.Errorf("read the answer's header: %w", err)
	}
	n, err := parseHeader(h, want)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("read an answer of %d bytes: %w", n, err)
	}
	return b, nil
}

// busy is how long is waited before a munged whose queue is full is dialled again. Connecting
// to a UNIX socket does not wait for a place in it.
const busy = 5 * time.Millisecond

// connect opens a connection to a munged that is trusted.
func (c *Client) connect(ctx context.Context) (net.Conn, error) {
	for {
		nc, err := c.dial(ctx)
		if err == nil {
			if err := c.recognise(nc); err != nil {
				nc.Close()
				return nil, err
			}
			return nc, nil
		}
		if !errors.Is(err, syscall.EAGAIN) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(busy):
		}
	}
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	if c.Dial != nil {
		return c.Dial(ctx, c.socket())
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", c.socket())
}

func (c *Client) socket() string {
	if c.Socket == "" {
		return DefaultSocket
	}
	return c.Socket
}

// recognise tells why the munged at the other end is not to be believed; nil: it is.
func (c *Client) recognise(nc net.Conn) error {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return fmt.Errorf("%T: the kernel can't tell who is at the other end", nc)
	}
	peer, err := peer.Of(sc)
	if err != nil {
		return err
	}
	trusted := c.Trusted
	if trusted == nil {
		trusted = c.ownersOrRoots
	}
	if !trusted(peer.UID) {
		return fmt.Errorf("%w: uid %d", errStranger, peer.UID)
	}
	return nil
}

// ownersOrRoots is what Client.Trusted is by itself. The overflow uid is every stranger of
// other user namespaces at once.
func (c *Client) ownersOrRoots(uid uint32) bool {
	if uid == 0 {
		return true
	}
	info, err := os.Stat(filepath.Dir(c.socket()))
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && uid == st.Uid && uid != become.Overflow
}

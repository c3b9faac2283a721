// Package munge gets credentials from munged, the daemon of the MUNGE
// authentication service, and decodes them. The package is written in Go and
// speaks protocol version 4 of munge 0.5 over munged's UNIX socket.
//
// A credential is a text in which munged confirms a uid and gid, the time, and
// a payload. The uid and gid are those of the process that requested the
// credential. munged gets them from the kernel (SO_PEERCRED), so the client
// needs no secret. A process can't request a credential for another user,
// because this package never passes a connection to another process.
//
// What a credential proves:
//
//   - The payload is a hash of the message's body and type number (Payload).
//     An attacker who captures a message can't use its credential with another
//     body. The hash does not cover the header of the message, which contains
//     the protocol version. Nothing is encrypted.
//   - Only processes that run as the scheduler's user can decode the
//     credential. The uid of that user is an argument of Encode. A program that
//     listens in place of the controller can't decode the credential. Such a
//     program can still forward the credential to the controller, but only with
//     the body for which it was made.
//   - A credential is valid for 5 minutes, or for Client.TTL, and each munged
//     accepts it once. This package requests a new credential for each attempt,
//     and never stores or logs one.
//   - The daemon's answer is not authenticated: from protocol 39 on it has no
//     credential. Without TLS, a controller is identified only by its address,
//     as is the case with tokens.
//
// In two cases an attacker can use a captured credential again, as the same
// user and with the same body. First, two clusters with different mungeds both
// accept it if they share a munge key and the uid of the scheduler's user.
// Second, a Slurm that was built for several node daemons on one machine, such
// as Debian's, accepts it repeatedly until it expires. An attacker who captures
// a submission can then submit the same job again. If that matters, protect the
// network against eavesdropping.
//
// Client.Trusted protects users from a false munged. From the request itself, a
// false munged learns very little: the user and a hash. But the attacker who
// runs it could get a credential for that hash from the real munged and return
// it to the victim. Then the victim's request would be executed as the
// attacker, who could read the script and the environment in it.
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
	"schedrestd/errs"
)

// DefaultSocket is the path of the socket on which munged listens by default.
const DefaultSocket = "/run/munge/munge.socket.2"

// Client sends requests to one munged. The zero value is ready to use. It is
// safe for concurrent use, because each request has a connection of its own.
type Client struct {
	Socket string        // "" for DefaultSocket
	TTL    time.Duration // lifetime of credentials, in whole seconds; 0 for munged's default, 5 minutes

	// Trusted reports whether a user may run munged. If it is nil, root may,
	// and so may the owner of the socket's directory, who could replace the
	// socket anyway. If root owns the directory, as is the case with /tmp, only
	// root may run munged. In a user namespace in which these users have no
	// uid, Trusted must be set.
	Trusted func(uid uint32) bool

	// Dial opens a connection to the socket. If it is nil, the Client opens
	// connections itself. The kernel must be able to report the peer of the
	// connection. Dial must not return a connection that another process
	// opened: munged issues the credential for the user who opened the
	// connection.
	Dial func(ctx context.Context, socket string) (net.Conn, error)
}

// Decoded is the content of a valid credential.
type Decoded struct {
	UID, GID uint32 // of the process that requested it
	Payload  []byte
	Encoded  time.Time     // time by the clock of the machine that issued it, in whole seconds
	TTL      time.Duration // lifetime from that time on
}

// Encode returns a credential that contains payload, for this process's
// effective uid and gid. It can be decoded only once, and only by a process
// that runs as uid.
//
// Errors are *errs.Error: Unavailable, Timeout or BadAnswer.
func (c *Client) Encode(ctx context.Context, payload []byte, uid uint32) (string, error) {
	if uid == anyone {
		return "", errs.New(errs.Internal, "refusing to request a credential that all users can decode")
	}
	request, err := encodeRequest(payload, uid, c.TTL)
	if err != nil {
		return "", err
	}
	answer, err := c.roundTrip(ctx, request, encodeResponse)
	if err != nil {
		return "", err
	}
	text, err := parseEncoded(answer)
	if refusal, ok := errors.AsType[*Error](err); ok {
		return "", errs.Wrap(refusal, errs.Unavailable, "munged can't create a credential: %v", refusal)
	}
	if err != nil {
		return "", garbledError(err)
	}
	return text, nil
}

// Decode asks munged to verify a credential. A valid credential is complete,
// was made with munged's key for this process's uid, has not expired, and has
// not been decoded before.
//
// Errors are *errs.Error. If the credential is invalid, the error is
// Unauthenticated, and its cause is an *Error. Other errors are those of
// Encode.
func (c *Client) Decode(ctx context.Context, credential string) (Decoded, error) {
	request, err := decodeRequest(credential)
	if err != nil {
		return Decoded{}, err
	}
	answer, err := c.roundTrip(ctx, request, decodeResponse)
	if err != nil {
		return Decoded{}, err
	}
	d, err := parseDecoded(answer)
	if refusal, ok := errors.AsType[*Error](err); ok {
		if refusal.isCredentialError() {
			return Decoded{}, errs.Wrap(refusal, errs.Unauthenticated, "the credential is not accepted")
		}
		return Decoded{}, errs.Wrap(refusal, errs.Unavailable, "munged can't verify a credential: %v", refusal)
	}
	if err != nil {
		return Decoded{}, garbledError(err)
	}
	return d, nil
}

// roundTrip sends a request over a new connection, and returns the answer
// without its header. The answer's kind must be want.
func (c *Client) roundTrip(ctx context.Context, request []byte, want kind) ([]byte, error) {
	nc, err := c.connect(ctx)
	if err != nil {
		return nil, c.unreachableError(ctx, err)
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })()
	_, writeErr := nc.Write(request)
	answer, err := receive(nc, want)
	switch {
	case err == nil:
		return answer, nil
	case ctx.Err() != nil:
		return nil, timeoutError(ctx, err)
	case errors.Is(err, errGarbled):
		return nil, garbledError(err)
	case writeErr != nil:
		err = fmt.Errorf("send request: %w", writeErr)
	}
	// munged exited or is restarting. No daemon of Slurm has received the
	// request yet, so the caller can repeat it.
	return nil, errs.Wrap(err, errs.Unavailable, "munged closed the connection before its answer was complete")
}

// receive reads an answer and returns it without its header. The answer's kind
// must be want.
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

// connect opens a connection to a trusted munged.
func (c *Client) connect(ctx context.Context) (net.Conn, error) {
	trusted := c.Trusted
	if trusted == nil {
		trusted = c.isRootOrOwner
	}
	return Connect(ctx, c.dial, trusted)
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

// isRootOrOwner reports whether uid is root or the owner of the socket's
// directory. It is used if Client.Trusted is nil. It never trusts the overflow
// uid, which represents all users of other user namespaces.
func (c *Client) isRootOrOwner(uid uint32) bool {
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

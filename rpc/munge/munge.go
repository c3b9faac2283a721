// Package munge gets credentials from munged, the daemon of the MUNGE
// authentication service, and decodes them. The package is written in Go and
// speaks protocol version 4 of munge 0.5 over munged's UNIX socket.
//
// A credential is a text in which munged confirms a uid and gid, the time, and
// a payload. The uid and gid are those of the process that requested it, as the
// kernel reports them for the connection (SO_PEERCRED). The client needs no
// secret. A process can't request a credential for another user, because this
// package never passes a connection to another process.
//
// What a credential proves:
//
//   - The payload is a hash of the message's body and number (Payload). An
//     attacker who captures a message can't use its credential with another
//     body. The message's header, with the protocol version, is not covered,
//     and nothing is encrypted.
//   - Only one uid can decode the credential, that of the scheduler's user
//     (Encode's argument). A program that listens in the controller's place
//     can't read the credential. It can still forward the credential to the
//     controller, but only with the body for which it was made.
//   - A credential is valid for 5 minutes, or Client.TTL, and each munged
//     accepts it once. Two clusters that share a munge key and the uid of the
//     scheduler's user, but have different mungeds, would both accept the same
//     credential. A Slurm that was built for several node daemons on one
//     machine, such as Debian's, accepts a credential repeatedly until it
//     expires. There, an attacker who captures a submission can submit the same
//     job again, as the same user. Where that matters, the network must be
//     protected against eavesdropping. This package requests a new credential
//     for each attempt, and never stores or logs one.
//   - The daemon's answer is not authenticated: from protocol 39 on it has no
//     credential. As with tokens, without TLS a controller is identified only
//     by its address.
//
// A false munged learns very little: the requesting user and a hash. But the
// attacker who runs it could request a credential for that hash from the real
// munged, and return it to the victim. The victim's request would then be
// executed as the attacker, who could read the victim's script and environment.
// Client.Trusted prevents that.
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

// DefaultSocket is the socket on which munged listens by default.
const DefaultSocket = "/run/munge/munge.socket.2"

// Client sends requests to one munged. The zero value is ready to use. It is
// safe for concurrent use, because each request has a connection of its own.
type Client struct {
	Socket string        // "" for DefaultSocket
	TTL    time.Duration // lifetime of credentials, in whole seconds; 0 for munged's default, 5 minutes

	// Trusted reports whether a user may run munged. If it is nil, root may,
	// and so may the owner of the socket's directory, who can replace the
	// socket anyway. In a directory that root owns, like /tmp, only root may
	// run it. In a user namespace in which these users have no uid, Trusted
	// must be set.
	Trusted func(uid uint32) bool

	// Dial opens a connection to the socket. If it is nil, the Client opens
	// connections itself. The kernel must be able to report the peer of the
	// connection. This process must have opened it, because munged issues the
	// credential for the user who opened the connection.
	Dial func(ctx context.Context, socket string) (net.Conn, error)
}

// Decoded is the content of a valid credential.
type Decoded struct {
	UID, GID uint32 // of the process that requested it
	Payload  []byte
	Encoded  time.Time     // time by the clock of the machine that issued it, in whole seconds
	TTL      time.Duration // lifetime from that time on
}

// Encode returns a credential for this process's effective uid and gid. The
// credential contains payload. Only processes that run as uid can decode it,
// and it can be decoded only once.
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

// Decode asks munged to verify a credential. The credential must be complete,
// made with munged's key, for this process's uid, not expired, and not decoded
// before: each credential can be decoded once.
//
// Errors are *errs.Error: Unauthenticated, with an *Error as its cause, if the
// credential is invalid; otherwise as for Encode.
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

// roundTrip sends a request over a new connection. It returns the answer, which
// must be of kind want, without its header.
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
	// munged exited or is restarting. No Slurm daemon has received anything
	// yet, so the request can be repeated.
	return nil, errs.Wrap(err, errs.Unavailable, "munged closed the connection before its answer was complete")
}

// receive reads an answer, which must be of kind want, and returns it without
// its header.
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

// isRootOrOwner reports whether uid is root or owns the directory of the
// socket. It is the default of Client.Trusted. It never trusts the overflow
// uid, which stands for all users of other user namespaces.
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

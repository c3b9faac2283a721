// Package munge asks munged, the daemon of the MUNGE authentication service, to
// create and decode credentials. The package is written in Go and speaks
// protocol version 4 of munge 0.5 over munged's UNIX socket.
//
// A credential is a text in which munged confirms a payload, the time, and the
// uid and gid of the process that requested the credential. munged gets the uid
// and gid from the kernel (SO_PEERCRED), so the client needs no secret. The
// kernel reports the process that opened the connection. This package never
// passes a connection to another process, so no process can request a
// credential for another user.
//
// What a credential proves, and what it does not prove:
//
//   - The payload is a hash of the message's body and type number (package payload).
//     An attacker who captures a message can't use its credential with another
//     body. The hash does not cover the header of the message, which contains
//     the protocol version. Nothing is encrypted.
//   - Only processes that run as the scheduler's user can decode the
//     credential. The uid of that user is an argument of Encode. A program that
//     listens in place of the controller can't decode the credential. It can
//     still forward the credential to the controller, but only with the body
//     for which the credential was made.
//   - A credential is valid for 5 minutes, or for Client.TTL, and each munged
//     accepts it only once. This package requests a new credential for each
//     attempt, and never stores or logs a credential.
//   - The answers of Slurm's daemons are not authenticated, because from
//     protocol 39 on they contain no credential. Without TLS, a client can
//     identify the controller only by its address. The same is true of tokens.
//
// In two cases an attacker can use a captured credential again, for the same
// user and with the same body. First, two clusters may have different mungeds
// but share a munge key and the uid of the scheduler's user. Both clusters then
// accept the credential. Second, Slurm may have been built for several node
// daemons on one machine, as Debian's packages are. Such a Slurm accepts a
// credential repeatedly until the credential expires. In both cases an attacker
// who captures a submission can submit the same job again. If that matters,
// protect the network against eavesdropping.
//
// Client.Trusted protects users from a false munged. A request reveals very
// little to a false munged: the user and a hash. But the attacker who runs the
// false munged could get a credential for that hash from the real munged and
// return it to the victim. The victim's request would then be executed as the
// attacker, who could read its script and environment.
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
	"schedrestd/internal/errs"
	"schedrestd/internal/fdpass/unixconn"
)

// DefaultSocket is the path of the socket on which munged listens by default.
const DefaultSocket = "/run/munge/munge.socket.2"

// Client sends requests to one munged. The zero value is ready to use. A Client
// is safe for concurrent use, because each request has a connection of its own.
type Client struct {
	Socket string        // "" for DefaultSocket
	TTL    time.Duration // lifetime of credentials, in whole seconds; 0 for munged's default, 5 minutes

	// Trusted reports whether the user with this uid may run munged. If Trusted
	// is nil, root and the owner of the socket's directory may run munged. That
	// owner could replace the socket anyway. If root owns the directory, as is
	// the case with /tmp, only root may run munged. Trusted must be set in a
	// user namespace in which root and the owner have no uid.
	Trusted func(uid uint32) bool

	// Public permits credentials that all users can decode (Anyone). Such a
	// credential is for a client that does not know the scheduler's user yet,
	// and whose request changes nothing and has no secret answer.
	Public bool

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
	Encoded  time.Time     // when the credential was issued, by the issuing machine's clock, in whole seconds
	TTL      time.Duration // lifetime from that time on
}

// Encode returns a credential that contains payload and confirms this process's
// effective uid and gid. The credential can be decoded only once, and only by a
// process that runs as uid.
//
// Errors are *errs.Error. Their kind is Unavailable, Timeout or BadAnswer or,
// for an invalid argument, Internal or TooLarge.
func (c *Client) Encode(ctx context.Context, payload []byte, uid uint32) (string, error) {
	if uid == Anyone && !c.Public {
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

// Decode asks munged to verify a credential. A credential is valid if it is
// complete, was made with munged's key, may be decoded by this process's uid,
// has not expired, and has not been decoded before.
//
// Errors are *errs.Error. If the credential is invalid, the error's kind is
// Unauthenticated, and its cause is an *Error. Other errors have the same kinds
// as those of Encode.
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
	// munged exited or is restarting. The client's request has not been sent to
	// Slurm yet, so the caller can repeat it.
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
	return unixconn.Dial(ctx, c.socket())
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

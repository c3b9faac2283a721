// Package sack gets auth/slurm credentials from Slurm's "auth and cred kiosk".
// A kiosk is a UNIX socket on which sackd, slurmd, slurmctld or slurmdbd issues
// credentials. The package is written in Go and speaks the kiosk's protocol,
// which is the same from Slurm 23.11 to 26.05.
//
// A credential is a text in which the kiosk confirms a payload, the time, and
// the uid and gid of the process that requested the credential. The kiosk gets
// the uid and gid from the kernel (SO_PEERCRED), so the client needs no secret.
// The kernel reports the process that opened the connection, so this package
// never passes a connection to another process. The kiosk itself has the
// cluster's key (slurm.key). Anyone who has this key can act as any user.
//
// As with MUNGE, the payload is a hash of one message (payload.Of). A
// credential is made for one uid, and only daemons that run as this uid accept
// the credential.
//
// Client.Trusted protects users from a false kiosk. A request reveals very
// little to a false kiosk: the user and a hash. But the attacker who runs the
// false kiosk could get a credential for that hash from the real kiosk and
// return it to the victim. The victim's request would then be executed as the
// attacker, who could read its script and environment.
package sack

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/rpc/munge"
)

// Client sends requests to the kiosks of one cluster. It is safe for concurrent
// use, because each request has a connection of its own.
type Client struct {
	Sockets []string // in the order in which they are tried

	// Trusted reports whether a user may serve Sockets[i].
	Trusted func(i int, uid uint32) bool

	// Public permits credentials that all users can use, as in munge.Client.
	Public bool

	// Dial opens a connection to Sockets[i]. The kernel must be able to report
	// the peer of the connection. Dial must not return a connection that
	// another process opened: the kiosk issues the credential for the user who
	// opened the connection.
	Dial func(ctx context.Context, i int) (net.Conn, error)
}

const (
	version = 40 << 8 // version of Slurm 23.11, the first release with a kiosk; kiosks don't check the version
	create  = 64001   // number of the request for a credential
	maxText = 1 << 20 // large, because with use_client_ids a credential lists its user's groups
)

var errGarbled = errors.New("the answer is not a credential")

// Encode returns a credential that contains payload and confirms this process's
// effective uid and gid. Only daemons that run as uid accept the credential.
//
// Errors are *errs.Error. Their kind is Unavailable, Timeout or BadAnswer or,
// for an invalid uid, Internal.
func (c *Client) Encode(ctx context.Context, payload []byte, uid uint32) (string, error) {
	if uid == munge.Anyone && !c.Public {
		return "", errs.New(errs.Internal, "refusing to request a credential that all users can use")
	}
	nc, err := c.connect(ctx)
	if err != nil {
		return "", c.unreachableError(ctx, err)
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })()
	_, writeErr := nc.Write(request(payload, uid))
	text, err := receive(nc)
	switch {
	case err == nil:
		return text, nil
	case ctx.Err() != nil:
		return "", timeoutError(ctx, err)
	case errors.Is(err, errGarbled):
		return "", errs.Wrap(err, errs.BadAnswer, "the answer of Slurm's sack.socket is invalid")
	case writeErr != nil:
		err = fmt.Errorf("send request: %w", writeErr)
	}
	// If the kiosk can't issue a credential, it closes the connection without
	// an answer. The client's request has not been sent to Slurm yet, so the
	// caller can repeat it.
	return "", errs.Wrap(err, errs.Unavailable, "Slurm's sack.socket issues no credential")
}

// request returns the message that requests a credential.
func request(payload []byte, uid uint32) []byte {
	b := binary.BigEndian.AppendUint16(make([]byte, 0, 64), version)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, create)
	b = binary.BigEndian.AppendUint32(b, uid)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	b = append(b, payload...)
	binary.BigEndian.PutUint32(b[2:], uint32(len(b)-2)) // the length includes itself
	return b
}

// receive reads the answer, which is a text preceded by its length.
func receive(r io.Reader) (string, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", fmt.Errorf("read the answer's length: %w", err)
	}
	n := binary.BigEndian.Uint32(head[:])
	if n == 0 || n > maxText {
		return "", fmt.Errorf("%w: its length is %d", errGarbled, n)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		return "", fmt.Errorf("read an answer of %d bytes: %w", n, err)
	}
	text, hasNUL := strings.CutSuffix(string(b), "\x00")
	if !hasNUL || !wellFormed(text) {
		return "", errGarbled // the error omits the text, which may be a valid credential
	}
	return text, nil
}

// wellFormed reports whether text has the form of a credential, which is a JSON
// Web Token. This check prevents any other text from being sent as a
// credential.
func wellFormed(text string) bool {
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if part == "" || strings.IndexFunc(part, func(r rune) bool {
			letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
			return !letter && r != '-' && r != '_'
		}) >= 0 {
			return false
		}
	}
	return len(parts) == 3
}

// connect opens a connection to the first trusted kiosk that can be reached.
func (c *Client) connect(ctx context.Context) (net.Conn, error) {
	var failures []error
	for i, socket := range c.Sockets {
		nc, err := munge.Connect(ctx,
			func(ctx context.Context) (net.Conn, error) { return c.Dial(ctx, i) },
			func(uid uint32) bool { return c.Trusted(i, uid) })
		if err == nil {
			return nc, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", socket, err))
	}
	return nil, errors.Join(failures...)
}

func timeoutError(ctx context.Context, err error) error {
	return errs.Wrap(fmt.Errorf("%w: %w", context.Cause(ctx), err), errs.Timeout, "Slurm's sack.socket does not answer in time")
}

// unreachableError returns the error for failed connections. The paths of the
// sockets are only in the wrapped error, which is logged but not sent to
// clients.
func (c *Client) unreachableError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return timeoutError(ctx, err)
	}
	e := &errs.Error{Kind: errs.Unavailable, Message: "Slurm's sack.socket can't be reached", Err: err}
	if errors.Is(err, munge.ErrUntrusted) {
		return e.WithHint("check which user created the socket: that user must be root or the owner of the socket's directory")
	}
	return e.WithHint("check that sackd runs on this machine; SLURM_SACK_SOCKET names another socket")
}

package munge

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"schedrestd/internal/errs"
)

// Error is an error from munged. It holds munged's number and text, without
// unprintable characters.
type Error struct {
	Number uint8
	Text   string // may be empty
}

// Munge's error numbers for errors in a credential. All other numbers are for
// errors in a request or in munged itself.
const (
	BadCredential uint8 = 8  // malformed
	BadVersion    uint8 = 9  // from an unsupported release of munge
	BadCipher     uint8 = 10 // this and the next three: the credential names a method that munged does not support
	BadMAC        uint8 = 11
	BadZip        uint8 = 12
	BadRealm      uint8 = 13
	Invalid       uint8 = 14 // made with another key, or modified
	Expired       uint8 = 15
	Rewound       uint8 = 16 // dated in the future, because the clocks differ
	Replayed      uint8 = 17 // decoded before
	Unauthorized  uint8 = 18 // made for another uid
)

// Error formats the error for logs and users.
func (e *Error) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("munge error %d", e.Number)
	}
	return fmt.Sprintf("%s (munge error %d)", e.Text, e.Number)
}

// isCredentialError reports whether munged refused the credential. If it did
// not, the error is in the request or in munged itself.
func (e *Error) isCredentialError() bool {
	return e.Number >= BadCredential && e.Number <= Unauthorized
}

var errGarbled = errors.New("munged violated its protocol")

func garbledError(err error) error {
	return errs.Wrap(err, errs.BadAnswer, "munged's answer is invalid")
}

func timeoutError(ctx context.Context, err error) error {
	return errs.Wrap(fmt.Errorf("%w: %w", context.Cause(ctx), err), errs.Timeout, "munged does not answer in time")
}

// unreachableError returns the error for a failed connection. The socket's path
// is only in the wrapped error, which is logged but not sent to clients.
func (c *Client) unreachableError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return timeoutError(ctx, err)
	}
	e := &errs.Error{Kind: errs.Unavailable, Message: "munged can't be reached", Err: fmt.Errorf("socket %s: %w", c.socket(), err)}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return e.WithHint("check that munged runs on this machine; AuthInfo=socket= sets the path of its socket")
	case errors.Is(err, os.ErrPermission):
		return e.WithHint("all users of this machine need access to the directory of munged's socket")
	case errors.Is(err, ErrUntrusted):
		return e.WithHint("check which user created the socket; munged itself refuses directories that others can write")
	}
	return e
}

// printable removes unprintable characters from munged's text, because the text
// is shown in logs and on terminals.
func printable(text []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return -1
		}
		return r
	}, string(text)))
}

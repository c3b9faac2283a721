// Package fault turns Slurm's error numbers into errors that a person can read,
// and errors into numbers. Daemons answer with a number and, for a few requests,
// with words; the client needs both directions of one table, and so do our own daemons.
//
// A number's name and value are facts of the protocol (they never changed from
// 22.05 to 26.05). The words are ours, because a client is told them.
package fault

import (
	"errors"
	"strings"
	"syscall"
	"unicode/utf8"

	"schedrestd/errs"
)

// maxText bounds what a daemon's own words may add to an error, in bytes.
const maxText = 4 << 10

// Of is the error for number, which is not 0. text is what the daemon said besides,
// such as a site's submit policy; it may be empty.
func Of(number uint32, text string) *errs.Error {
	e := &errs.Error{Number: int(number)}
	if r, ok := byNumber[number]; ok {
		e.Kind, e.Message, e.Hint = r.kind, r.text, r.hint
	} else {
		e = errs.New(errs.BadAnswer, "the daemon refused with error number %d", int32(number))
		e.Number = int(int32(number))
	}
	switch text = clean(text); {
	case text == "":
	case e.Kind == errs.Unauthenticated:
		e.Err = errors.New(text) // for the log: whoever guesses at credentials learns no more than "no"
	case strings.HasPrefix(text, e.Message):
		e.Message = text // a daemon of ours has the same words
	default:
		e.Message += ": " + text
	}
	return e
}

// clean bounds the daemon's words and takes control characters out of them: they go to terminals and logs.
func clean(text string) string {
	if len(text) > maxText {
		text = text[:maxText]
		for !utf8.ValidString(text) && len(text) > maxText-utf8.UTFMax {
			text = text[:len(text)-1]
		}
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	return strings.TrimSpace(text)
}

// Number is the number to answer err with, and the words that may go with it: an
// *errs.Error's own number, else one for its kind. Of anything else no word leaves
// the daemon.
func Number(err error) (number uint32, text string) {
	e, ok := errors.AsType[*errs.Error](err)
	if !ok {
		return Internal, ""
	}
	if e.Number > 0 {
		return uint32(e.Number), e.Message
	}
	return byKind(e.Kind), e.Message
}

// byKind falls back on numbers of the operating system where Slurm has none of its
// own: its commands know those too.
func byKind(k errs.Kind) uint32 {
	switch k {
	case errs.Malformed, errs.Invalid:
		return uint32(syscall.EINVAL)
	case errs.Unauthenticated:
		return Authentication
	case errs.Denied:
		return AccessDenied
	case errs.NotFound:
		return uint32(syscall.ENOENT)
	case errs.Conflict:
		return uint32(syscall.EBUSY)
	case errs.TooLarge:
		return uint32(syscall.E2BIG)
	case errs.TooMany:
		return Backoff
	case errs.Unavailable:
		return uint32(syscall.EAGAIN)
	case errs.Timeout:
		return uint32(syscall.ETIMEDOUT)
	case errs.Unsupported:
		return NotSupported
	case errs.Unchanged:
		return NoChange
	}
	return Internal
}

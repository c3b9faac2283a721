// Package fault converts between errors and Slurm's error numbers. Daemons
// answer with a number and, for a few requests, also with a message. The client
// converts numbers to errors that people can read. The bundled daemons convert
// errors to numbers.
//
// The numbers and Slurm's messages for them are part of the protocol: no number
// has changed its meaning between 22.05 and 26.05, and some clients look for
// Slurm's messages in answers. The descriptions in this package are our own,
// except where Slurm's message is clear enough.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"schedrestd/internal/errs"
)

// maxText is the maximum length, in bytes, of a text that a daemon sends with
// an error.
const maxText = 4 << 10

// Of returns the error for number, which must not be 0. The text argument is
// the text that the daemon sent with the number, such as the message of a
// site's submit policy. It is "" if the daemon sent no text.
func Of(number uint32, text string) *errs.Error {
	e := &errs.Error{Number: int(int32(number))}
	r, ok := byNumber()[number]
	switch {
	case ok:
		e.Kind, e.Message, e.Hint = r.kind, r.message(), r.hint
	case isRefusal(number):
		e.Kind, e.Message = errs.Invalid, fmt.Sprintf("the daemon refused the request with error number %d", number)
	default:
		e.Kind, e.Message = errs.BadAnswer, fmt.Sprintf("the daemon failed with error number %d", e.Number)
	}
	switch text = clean(text); {
	case text == "" || text == r.slurm:
	case e.Kind == errs.Unauthenticated:
		e.Err = errors.New(text) // for the log only: a client that guesses credentials must not learn the reason
	case saysMore(text, e.Message) || strings.HasPrefix(text, e.Message):
		e.Message, e.Detail = text, text // our own daemons use the same texts
	default:
		e.Message += ": " + text
		e.Detail = text
	}
	return e
}

// saysMore reports whether text says what message says and more, so that the
// message in front of it would say it twice. For example, "there is no job 9"
// says more than "there is no such job", and "job 9 has already ended" more than
// "the job has already ended".
func saysMore(text, message string) bool {
	words := strings.Fields(text)
	for word := range strings.FieldsSeq(message) {
		if word != "the" && word != "such" && !slices.Contains(words, word) {
			return false
		}
	}
	return true
}

// isRefusal reports whether a number that this package does not know is a
// refusal. It checks whether the number is in one of the ranges that Slurm uses
// for refusals. A later release of Slurm may have more numbers in these ranges.
// slurmrestd answers 422 for all numbers in these ranges.
func isRefusal(number uint32) bool {
	return number >= 2000 && number <= 2185 || number >= 7001 && number <= 7013
}

// message returns the description of a row. This is our own text if there is
// one, and otherwise Slurm's text in the style of our messages.
func (r *row) message() string {
	if r.text != "" {
		return r.text
	}
	text := strings.TrimSuffix(r.slurm, ".")
	if word, _, _ := strings.Cut(text, " "); strings.ToLower(word[1:]) != word[1:] || strings.ContainsAny(word, "0123456789") {
		return text // the text begins with a name, such as X11 or HetJob
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// Text returns Slurm's text for number, as slurmrestd shows it.
func Text(number int) string {
	switch r := byNumber()[uint32(number)]; {
	case r.slurm != "":
		return r.slurm
	case number == 0:
		return "No error"
	case number == Unspecified:
		return "Unspecified error"
	}
	return fmt.Sprintf("Unknown error %d", number)
}

// clean limits the length of a daemon's text and removes control characters,
// because the text is shown in logs and on terminals.
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

// Number returns the number to send for err, and the text to send with it. The
// number for an *errs.Error is its own or, if it has none, the number for its
// kind. Other errors get no text, so that no internal details are sent.
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

// byKind returns Slurm's number for a kind of error. If Slurm has none, byKind
// returns an error number of the operating system. Slurm's commands also
// understand those numbers.
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
		return TooLarge
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

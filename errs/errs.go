// Package errs has the few kinds of failure that the processes of this project
// tell apart. A kind decides what a client is told (handlers maps it to an HTTP
// status, rpc/server to a Slurm error number) and whether trying again can help.
//
// An Error has two texts: Message is for the person who asked and may be sent to a
// client; the wrapped cause is for the log alone. Anything that is not an
// *Error is Internal: its text is logged and never sent.
package errs

import (
	"errors"
	"fmt"
)

// Kind is a class of failure.
type Kind uint8

// The kinds. The zero value is Internal, so that an error nobody classified is
// treated as our own fault and its text kept from clients.
const (
	Internal        Kind = iota // a fault of ours
	Malformed                   // can't be parsed: syntax, encoding
	Invalid                     // understood, but not acceptable
	Unauthenticated             // no credential, or one that is not good
	Denied                      // known, but not allowed to
	NotFound                    // the named thing does not exist
	Conflict                    // in the wrong state for this
	TooLarge                    // over a size limit
	TooMany                     // over a rate or a count limit
	Unavailable                 // a daemon can't be reached now
	Timeout                     // a daemon does not answer in time
	BadAnswer                   // a daemon's answer can't be understood
	Unsupported                 // neither we nor the daemon can do this

	// Of a request as such, whatever it asks for.
	MethodNotAllowed // the path exists, and has not that method
	UnsupportedMedia // a body of a kind that is not read here
	RequestTimeout   // the rest of the request did not come in time
	NotAcceptable    // no format that the client takes is written here
	URITooLong       // the request's line is over its limit
	HeaderTooLarge   // the request's header is over its limit

	PreconditionFailed // a condition that the request makes is false

	Unchanged // no failure: what was asked for "if it changed" did not
)

// OutcomeUnknown is the Code of a change that was sent and not answered: nobody here knows
// whether it was carried out, and to send it again may do it twice.
const OutcomeUnknown = "outcome_unknown"

// Error is a failure with its kind and what the person who asked should read.
type Error struct {
	Kind    Kind
	Message string // for the person who asked: lower case, no full stop
	Hint    string // what to do about it; may be empty
	Code    string // stable word for programs; empty means the name of Kind
	Source  string // where in the request, as "#/job/tasks"; may be empty
	Number  int    // Slurm's error number when a daemon gave one, else 0
	Detail  string // the daemon's own words, which Message ends with; may be empty
	Err     error  // the cause, for the log
}

// Error is the text for logs and terminals: message, then cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	if e.Message == "" {
		return e.Err.Error()
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// New makes an Error of kind k without a cause; format and args are as in fmt.Sprintf.
func New(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...)}
}

// Wrap gives err a kind and a message that hides err's own text from clients.
// It returns nil when err is nil.
func Wrap(err error, k Kind, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...), Err: err}
}

// WithHint returns e with what the reader can do about it.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithSource returns e with the place in the request that it is about.
func (e *Error) WithSource(source string) *Error {
	e.Source = source
	return e
}

// KindOf is the kind of the first *Error in err's chain, else Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// HintOf is the hint of the first *Error in err's chain that has one, else "".
func HintOf(err error) string {
	for err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return ""
		}
		if e.Hint != "" {
			return e.Hint
		}
		err = e.Err
	}
	return ""
}

// LogAttrs returns the attributes of a log line with the hint, unless that is empty.
func LogAttrs(hint string, attrs ...any) []any {
	if hint != "" {
		attrs = append(attrs, "hint", hint)
	}
	return attrs
}

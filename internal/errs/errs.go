// Package errs defines the kinds of failure that this project distinguishes. An
// error's kind determines the answer to the client. It also determines whether
// a retry can help. Package handlers maps kinds to HTTP statuses, and
// rpc/server maps them to Slurm's error numbers.
//
// An Error has two texts. Clients may see its Message. The wrapped cause is
// only for the log. An error that is not an *Error is treated as Internal: its
// text is logged and never sent.
package errs

import (
	"errors"
	"fmt"
)

// Kind is a class of failure.
type Kind uint8

// The kinds of failure. The zero value is Internal. So an unclassified error is
// treated as our own fault, and clients don't see its text.
const (
	Internal        Kind = iota // our own fault
	Malformed                   // can't be parsed: syntax, encoding
	Invalid                     // understood, but not acceptable
	Unauthenticated             // a missing or invalid credential
	Denied                      // authenticated, but not allowed
	NotFound                    // the named object does not exist
	Conflict                    // the object is in the wrong state for the request
	TooLarge                    // over a size limit
	TooMany                     // over a rate or a count limit
	Unavailable                 // a daemon is unreachable
	Timeout                     // a daemon does not answer in time
	BadAnswer                   // a daemon's answer is invalid
	Unsupported                 // neither the gateway nor the daemon supports this

	// The kinds below are for problems with the HTTP request itself.
	MethodNotAllowed // the path exists without this method
	UnsupportedMedia // an unsupported media type of the body
	RequestTimeout   // the rest of the request did not arrive in time
	NotAcceptable    // no supported format that the client accepts
	URITooLong       // the request's line is over its limit
	HeaderTooLarge   // the request's header is over its limit

	PreconditionFailed // a condition of the request is false

	RangeNotSatisfiable // the requested bytes are beyond the end

	Unchanged // not a failure: the requested object has not changed
)

// OutcomeUnknown is the Code of an Error about a change that was sent, but not
// answered. The daemon may have made the change, so a retry may make it twice.
const OutcomeUnknown = "outcome_unknown"

// Error is a failure with its kind and the texts for the client and the log.
type Error struct {
	Kind    Kind
	Message string // for the client: lower case, no full stop
	Hint    string // how to fix it; may be empty
	Code    string // stable identifier for programs; "" means the name of Kind
	Source  string // place in the request, such as "#/job/tasks"; may be empty
	Number  int    // Slurm's error number from a daemon, or 0
	Detail  string // the daemon's own text, at the end of Message; may be empty
	Err     error  // cause, for the log
}

// Error returns the text for logs and terminals: the message, then the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	if e.Message == "" {
		return e.Err.Error()
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause, so that errors.Is and errors.As examine it.
func (e *Error) Unwrap() error { return e.Err }

// New returns an Error of kind k without a cause. It builds the message from
// format and args, as fmt.Sprintf does.
func New(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns an Error with err as its cause. Clients get the message, but not
// the text of err. Wrap returns nil if err is nil.
func Wrap(err error, k Kind, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...), Err: err}
}

// WithHint sets the hint of e and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// WithNumber sets Slurm's number for e, and returns e.
func (e *Error) WithNumber(number int) *Error {
	e.Number = number
	return e
}

// WithSource sets the place in the request that caused e, and returns e.
func (e *Error) WithSource(source string) *Error {
	e.Source = source
	return e
}

// KindOf returns the kind of the first *Error in err's chain, or Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// HintOf returns the hint of the first *Error in err's chain that has one, or
// "" if none has.
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

// LogAttrs adds hint to the attributes of a log line, unless hint is "".
func LogAttrs(hint string, attrs ...any) []any {
	if hint != "" {
		attrs = append(attrs, "hint", hint)
	}
	return attrs
}

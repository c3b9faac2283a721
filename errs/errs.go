// Package errs defines the kinds of failure that this project distinguishes. A
// kind determines the answer to the client (handlers maps it to an HTTP status,
// rpc/server to a Slurm error number) and whether retrying can help.
//
// An Error has two texts: Message is for the client and may be sent to it; the
// wrapped cause is for the log only. An error that is not an *Error is
// Internal: its text is logged and never sent.
package errs

import (
	"errors"
	"fmt"
)

// Kind is a class of failure.
type Kind uint8

// The kinds. The zero value is Internal, so that an unclassified error counts
// as our own fault and its text is kept from clients.
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

	// These kinds concern HTTP requests to any operation.
	MethodNotAllowed // the path exists without this method
	UnsupportedMedia // an unsupported media type of the body
	RequestTimeout   // the rest of the request did not arrive in time
	NotAcceptable    // no supported format that the client accepts
	URITooLong       // the request's line is over its limit
	HeaderTooLarge   // the request's header is over its limit

	PreconditionFailed // a condition of the request is false

	Unchanged // not a failure: the requested object has not changed
)

// OutcomeUnknown is the Code of a change that was sent and not answered. It may
// have been carried out, so a retry may carry it out twice.
const OutcomeUnknown = "outcome_unknown"

// Error is a failure with its kind and the texts for the client and the log.
type Error struct {
	Kind    Kind
	Message string // for the client: lower case, no full stop
	Hint    string // how to fix it; may be empty
	Code    string // stable identifier for programs; "": the name of Kind
	Source  string // place in the request, such as "#/job/tasks"; may be empty
	Number  int    // Slurm's error number from a daemon, or 0
	Detail  string // the daemon's own text, at the end of Message; may be empty
	Err     error  // cause, for the log
}

// Error returns the text for logs and terminals: message, then cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Message
	}
	if e.Message == "" {
		return e.Err.Error()
	}
	return e.Message + ": " + e.Err.Error()
}

// Unwrap returns the cause for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// New returns an Error of kind k without a cause. format and args are those of
// fmt.Sprintf.
func New(k Kind, format string, args ...any) *Error {
	return &Error{Kind: k, Message: fmt.Sprintf(format, args...)}
}

// Wrap returns err with a kind and a message. Clients get the message but not
// err's own text. Wrap returns nil if err is nil.
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

// WithSource sets the place in the request that e is about, and returns e.
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
// "".
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

// LogAttrs returns attrs for a log line, with the hint unless that is empty.
func LogAttrs(hint string, attrs ...any) []any {
	if hint != "" {
		attrs = append(attrs, "hint", hint)
	}
	return attrs
}

package schema

import (
	"fmt"
	"strconv"
	"strings"

	"schedrestd/internal/typo"
)

// Note is a remark about a value in a document.
type Note struct {
	Source       string // place of the value, as "#/job/tasks"
	Unknown      bool   // the value is a field that the object does not have
	Missing      bool   // the object lacks this required field; Line and Column are those of the object
	Text         string // lower case, no full stop
	Line, Column int
}

// maxNotes is the maximum number of warnings in a Report, and the maximum
// number of errors. Without a limit, a body with a million unknown names would
// cause an answer with a million warnings.
const maxNotes = 100

// Report collects notes while a document is parsed. Warnings are about values
// that were ignored or had an unexpected form. Errors are about values that
// can't be understood. A request with an error has no effect.
type Report struct {
	Lenient    bool // note nothing, and treat invalid values as absent
	Strict     bool // treat an unknown field as an error
	Quiet      bool // add no warning about a blank value or a harmless field
	Conditions bool // treat null as an error, because without the condition a request would concern more objects

	// Forbids reports whether an unknown field is an error in any case, because it
	// must not be ignored; nil for never.
	Forbids func(name string) bool

	Warnings []Note
	Errors   []Note
	silenced int // warnings that Quiet left out
	path     []string
}

// OK reports whether there is no error.
func (r *Report) OK() bool { return len(r.Errors) == 0 }

// In runs f. Notes that f adds are about the member with the given name.
func (r *Report) In(name string, f func()) {
	r.path = append(r.path, name)
	f()
	r.path = r.path[:len(r.path)-1]
}

// InElement calls f. Notes that f adds are about the array element with index
// i.
func (r *Report) InElement(i int, f func()) { r.In(strconv.Itoa(i), f) }

// Warn adds a warning about v, which was ignored or not taken literally.
func (r *Report) Warn(v *Value, format string, args ...any) {
	if r.Quiet && v.Blank() {
		r.silenced++
		return
	}
	r.note(&r.Warnings, v, "", format, args)
}

// notes returns the number of notes, including those that Quiet left out.
func (r *Report) notes() int { return len(r.Warnings) + len(r.Errors) + r.silenced }

// unknown adds a note about a field that the object does not have. Once the
// limit on notes is reached, it no longer searches for similar names, because a
// search for each of a million unknown names would take too long.
func (r *Report) unknown(v *Value, known []string) {
	if r.Forbids != nil && r.Forbids(v.Key) {
		lenient := r.Lenient
		r.Lenient = false
		r.note(&r.Errors, v, "", "unknown field", nil)
		r.Lenient = lenient
		return
	}
	list, text := &r.Warnings, "unknown field, ignored"
	if r.Strict {
		list, text = &r.Errors, "unknown field"
	}
	if r.Lenient || len(*list) >= maxNotes {
		r.note(list, v, "", "%s", []any{text})
		return
	}
	if suggestion := typo.Nearest(v.Key, known); suggestion != "" {
		text += "; did you mean " + suggestion + "?"
	}
	r.note(list, v, "", "%s", []any{text})
	(*list)[len(*list)-1].Unknown = true
}

// Error adds an error about v, which can't be understood. It always returns
// false, so that a parser can end with "return r.Error(…)".
func (r *Report) Error(v *Value, format string, args ...any) bool {
	r.note(&r.Errors, v, "", format, args)
	return false
}

// missing adds an error about a required field that object lacks.
func (r *Report) missing(object *Value) {
	r.note(&r.Errors, object, "", "required, but missing", nil)
	if n := len(r.Errors); n > 0 && n <= maxNotes {
		r.Errors[n-1].Missing = true
	}
}

// WarnKind adds the warning that v was accepted although it is not of the
// expected kind. The place in the warning ends with a slash, as in
// "#/job/tasks/", to show that the warning is about v itself.
func (r *Report) WarnKind(v *Value, want Kind) {
	if v.Untyped {
		return
	}
	r.note(&r.Warnings, v, "/", "expected %s, got %s", []any{want, v.Kind})
}

func (r *Report) note(list *[]Note, v *Value, suffix, format string, args []any) {
	switch {
	case r.Lenient, len(*list) > maxNotes:
		return
	case len(*list) == maxNotes:
		*list = append(*list, Note{Source: "#", Text: "further messages of this type omitted"})
		return
	}
	*list = append(*list, Note{
		Source: r.source() + suffix,
		Text:   fmt.Sprintf(format, args...),
		Line:   int(v.Line),
		Column: int(v.Column),
	})
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// source returns the current place as a JSON pointer (RFC 6901) in a URI
// fragment, such as "#/job/tasks". The client chose the names in this pointer,
// so long names are shortened.
func (r *Report) source() string {
	var b strings.Builder
	b.WriteByte('#')
	for _, name := range r.path {
		b.WriteByte('/')
		b.WriteString(Shorten(pointerEscapes.Replace(name)))
	}
	return b.String()
}

// Shorten truncates a string from a client to a suitable length for messages.
func Shorten(s string) string {
	const maxLen = 64
	if len(s) <= maxLen {
		return s
	}
	return strings.ToValidUTF8(s[:maxLen], "") + "…"
}

package schema

import (
	"fmt"
	"strconv"
	"strings"

	"schedrestd/typo"
)

// Note is one remark about a document.
type Note struct {
	Source       string // the place, as "#/job/tasks"
	Unknown      bool   // there is no field of that name
	Text         string // lower case, no full stop
	Line, Column int
}

// maxNotes bounds each list of a Report: a body of a million unknown names must not
// become an answer of a million warnings.
const maxNotes = 100

// Report collects what is odd (Warnings: taken or ignored, and said) and what can't
// be understood (Errors: nothing may be done) while a document is parsed.
type Report struct {
	Lenient  bool // note nothing: values that can't be understood count as missing
	Strict   bool // an unknown field is an error
	Warnings []Note
	Errors   []Note
	path     []string
}

// OK reports whether there is no error.
func (r *Report) OK() bool { return len(r.Errors) == 0 }

// In runs f with name added to the place that notes are about.
func (r *Report) In(name string, f func()) {
	r.path = append(r.path, name)
	f()
	r.path = r.path[:len(r.path)-1]
}

// InElement calls f, as In does, for the element i of an array.
func (r *Report) InElement(i int, f func()) { r.In(strconv.Itoa(i), f) }

// Warn notes something that was taken differently than meant, or not at all.
func (r *Report) Warn(v *Value, format string, args ...any) {
	r.note(&r.Warnings, v, "", format, args)
}

// unknown notes a field that the object does not have. It compares names only
// when it adds a note: a body of a million unknown names must stay cheap.
func (r *Report) unknown(v *Value, known []string) {
	list, text := &r.Warnings, "unknown field, ignored"
	if r.Strict {
		list, text = &r.Errors, "unknown field"
	}
	if r.Lenient || len(*list) >= maxNotes {
		r.note(list, v, "", "%s", []any{text})
		return
	}
	if like := typo.Nearest(v.Key, known); like != "" {
		text += "; did you mean " + like + "?"
	}
	r.note(list, v, "", "%s", []any{text})
	(*list)[len(*list)-1].Unknown = true
}

// Error notes something that can't be understood. It returns false, so that a
// parser can end with it.
func (r *Report) Error(v *Value, format string, args ...any) bool {
	r.note(&r.Errors, v, "", format, args)
	return false
}

// WarnKind notes that v, of another kind than the array or object that was
// expected, was taken all the same. Its source ends with a slash: it is about what
// stands there as a whole.
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
// fragment, truncated if names chosen by the client make it too long.
func (r *Report) source() string {
	var b strings.Builder
	b.WriteByte('#')
	for _, name := range r.path {
		b.WriteByte('/')
		b.WriteString(Shorten(pointerEscapes.Replace(name)))
	}
	return b.String()
}

// Shorten cuts what a client sent to a length fit for a message.
func Shorten(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Package plugin names what a gateway can be told to load: ways to authenticate, content and API
// versions with their flags. Nothing is loaded here: all of it is built in, and a name switches
// it on. The words are what slurmrestd's options and documents use.
//
// It is a list of words and knows no table of the API, because the parent, which may be root,
// reads command lines with it. Package api is held against it by a test.
package plugin

import (
	"strings"

	"schedrestd/errs"
)

// Auth is a set of ways to authenticate.
type Auth uint8

// The ways.
const (
	Local Auth = 1 << iota // rest_auth/local
	JWT                    // rest_auth/jwt
)

// Content is a set of content plugins.
type Content uint8

// The content plugins.
const (
	Controller Content = 1 << iota // openapi/schedctld
	Accounting                     // openapi/scheddb
)

// Has tells whether a has all of other.
func (a Auth) Has(other Auth) bool { return a&other == other }

// Has tells whether c has all of other.
func (c Content) Has(other Content) bool { return c&other == other }

// Entry is one plugin or flag as a list shows it.
type Entry struct{ Name, About string }

// AuthEntry is a plugin that Auth has a bit for.
type AuthEntry struct {
	Auth Auth
	Entry
}

// ContentEntry is a plugin that Content has a bit for.
type ContentEntry struct {
	Content Content
	Entry
}

// Auths is every way to authenticate.
var Auths = []AuthEntry{
	{JWT, Entry{"rest_auth/jwt", "by token, over TCP and UNIX sockets"}},
	{Local, Entry{"rest_auth/local", "by the peer's uid, over UNIX sockets"}},
}

// Contents is every content plugin.
var Contents = []ContentEntry{
	{Controller, Entry{"openapi/schedctld", "paths under /sched, from the controller"}},
	{Accounting, Entry{"openapi/scheddb", "paths under /scheddb, from the accounting daemon"}},
}

// ParseAuth reads the value of -a.
func ParseAuth(from, value string) (Auth, error) {
	known := words[Auth]{prefix: "rest_auth/"}
	for _, e := range Auths {
		known.add(e.Name, e.Auth)
	}
	return known.parse(from, value)
}

// ParseContent reads the value of -s. Slurm's own names of the two are taken too.
func ParseContent(from, value string) (Content, error) {
	known := words[Content]{prefix: "openapi/", also: map[string]Content{"slurmctld": Controller, "slurmdbd": Accounting}}
	for _, e := range Contents {
		known.add(e.Name, e.Content)
	}
	return known.parse(from, value)
}

// words are the names of the bits of a set.
type words[T ~uint8] struct {
	prefix string // may be left out
	names  []string
	bits   []T
	also   map[string]T // taken and not shown
}

func (w *words[T]) add(name string, bit T) {
	w.names, w.bits = append(w.names, name), append(w.bits, bit)
}

// parse joins the bits of names with commas between them.
func (w *words[T]) parse(from, value string) (all T, err error) {
	hint := "allowed values: " + strings.Join(w.names, ", ")
	for _, word := range split(value) {
		bit, ok := w.bit(strings.TrimPrefix(word, w.prefix))
		if !ok {
			return 0, unknown(from, "plugin", word).WithHint("%s", hint)
		}
		all |= bit
	}
	if all == 0 {
		return 0, errs.New(errs.Invalid, "%s names no plugin", from).WithHint("%s", hint)
	}
	return all, nil
}

func (w *words[T]) bit(name string) (T, bool) {
	for i, n := range w.names {
		if n == w.prefix+name {
			return w.bits[i], true
		}
	}
	bit, ok := w.also[name]
	return bit, ok
}

// unknown is the error of a word that means nothing here.
func unknown(from, what, word string) *errs.Error {
	if word == "list" {
		return errs.New(errs.Invalid, "%s: list can't be combined with other names", from)
	}
	return errs.New(errs.Invalid, "%s: unknown %s %q", from, what, word)
}

// split cuts a value at its commas; blanks and empty words are dropped.
func split(value string) []string {
	var list []string
	for w := range strings.SplitSeq(value, ",") {
		if w = strings.TrimSpace(w); w != "" {
			list = append(list, w)
		}
	}
	return list
}

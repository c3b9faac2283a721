// Package feature names the features of a gateway that an administrator can
// enable: authentication methods, content plugins, and API versions with their
// flags. In slurmrestd, all of these are plugins; here they are built in.
// Authentication methods and API versions have the same names as in
// slurmrestd's options and documents. Content plugins have names of their own,
// and Slurm's names as aliases.
//
// The package does not import the tables of the API, so package plan, which
// parses command lines, can use it without the tables. A test compares the
// names with package api.
package feature

import (
	"errors"
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// Auth is a set of authentication methods.
type Auth uint8

const (
	Local Auth = 1 << iota // rest_auth/local
	JWT                    // rest_auth/jwt
)

// Content is a set of content plugins.
type Content uint8

const (
	Controller Content = 1 << iota // openapi/schedctld
	Accounting                     // openapi/scheddb
	Util                           // openapi/util
)

// AllContent is the set of all content plugins.
const AllContent = Controller | Accounting | Util

// Has reports whether the set a contains all methods of the set other.
func (a Auth) Has(other Auth) bool { return a&other == other }

// Has reports whether the set c contains all plugins of the set other.
func (c Content) Has(other Content) bool { return c&other == other }

// Entry is a plugin or flag in a list.
type Entry struct{ Name, About string }

// AuthEntry is an Entry for an authentication plugin, with the plugin's bit.
type AuthEntry struct {
	Auth Auth
	Entry
}

// ContentEntry is an Entry for a content plugin, with the plugin's bit.
type ContentEntry struct {
	Content Content
	Entry
}

var Auths = []AuthEntry{
	{JWT, Entry{"rest_auth/jwt", "by token, over TCP and UNIX sockets"}},
	{Local, Entry{"rest_auth/local", "by the peer's uid, over UNIX sockets"}},
}

var Contents = []ContentEntry{
	{Controller, Entry{"openapi/schedctld", "paths under /sched, from the controller"}},
	{Accounting, Entry{"openapi/scheddb", "paths under /scheddb, from the accounting daemon"}},
	{Util, Entry{"openapi/util", "paths under /util, which need no daemon"}},
}

// ParseAuth parses the value of -a.
func ParseAuth(origin, value string) (Auth, error) {
	plugins := words[Auth]{prefix: "rest_auth/"}
	for _, e := range Auths {
		plugins.add(e.Name, e.Auth)
	}
	return plugins.parse(origin, value)
}

// ParseContent parses the value of -s. Slurm's names are accepted too.
func ParseContent(origin, value string) (Content, error) {
	plugins := words[Content]{prefix: "openapi/", aliases: map[string]Content{"slurmctld": Controller, "slurmdbd": Accounting}}
	for _, e := range Contents {
		plugins.add(e.Name, e.Content)
	}
	content, err := plugins.parse(origin, value)
	if e, ok := errors.AsType[*errs.Error](err); ok && slices.ContainsFunc(split(value), isOldContent) {
		return 0, e.WithHint("-d chooses the versions of the API; for -s, %s", e.Hint)
	}
	return content, err
}

// isOldContent reports whether a word is a plugin of earlier releases of Slurm,
// which had one for each version, such as openapi/v0.0.38 or openapi/dbv0.0.38.
func isOldContent(word string) bool {
	word = strings.TrimPrefix(word, "openapi/")
	return strings.HasPrefix(strings.TrimPrefix(word, "db"), "v0.0.")
}

// A words value maps the names of plugins to their bits.
type words[T ~uint8] struct {
	prefix  string // optional
	names   []string
	bits    []T
	aliases map[string]T // accepted but not listed
}

func (w *words[T]) add(name string, bit T) {
	w.names, w.bits = append(w.names, name), append(w.bits, bit)
}

// parse parses a comma-separated list of names and returns the bits of the
// plugins.
func (w *words[T]) parse(origin, value string) (bits T, err error) {
	hint := "allowed values: " + strings.Join(w.names, ", ")
	for _, word := range split(value) {
		bit, ok := w.bit(strings.TrimPrefix(word, w.prefix))
		if !ok {
			return 0, unknownError(origin, "plugin", word).WithHint("%s", hint)
		}
		bits |= bit
	}
	if bits == 0 {
		return 0, errs.New(errs.Invalid, "%s names no plugin", origin).WithHint("%s", hint)
	}
	return bits, nil
}

func (w *words[T]) bit(name string) (T, bool) {
	for i, n := range w.names {
		if n == w.prefix+name {
			return w.bits[i], true
		}
	}
	bit, ok := w.aliases[name]
	return bit, ok
}

func unknownError(origin, kind, word string) *errs.Error {
	if word == "list" {
		return errs.New(errs.Invalid, "%s: list can't be combined with other names", origin)
	}
	return errs.New(errs.Invalid, "%s: unknown %s %q", origin, kind, word)
}

// split splits a value at its commas. It trims spaces and drops empty words.
func split(value string) []string {
	var list []string
	for w := range strings.SplitSeq(value, ",") {
		if w = strings.TrimSpace(w); w != "" {
			list = append(list, w)
		}
	}
	return list
}

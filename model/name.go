package model

import (
	"strings"
	"unicode"
)

// SameName reports whether a and b are the same name of an account, a user, a
// QOS, a cluster or a workload key in the accounting daemon's records. Slurm's
// database and the memory of its daemons ignore case in such names (all
// collations that slurmdbd accepts end with "_ci").
//
// Some collations also ignore accents, or spaces at the end. So if a request
// can ask the daemon for the record of a name, what it selects decides.
func SameName(a, b string) bool { return strings.EqualFold(a, b) }

// NameKey returns a key for maps of names: two names have the same key if they
// are the same name.
func NameKey(name string) string { return strings.Map(firstFold, name) }

// firstFold returns the smallest of the letters that differ from r only in case.
func firstFold(r rune) rune {
	if r < unicode.MaxASCII {
		if 'a' <= r && r <= 'z' {
			r -= 'a' - 'A'
		}
		return r
	}
	first := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		first = min(first, next)
	}
	return first
}

// HasName reports whether a list contains a name, in any spelling.
func HasName(list []string, name string) bool { return IndexName(list, name) >= 0 }

// IndexName returns the index of a name in a list, or -1. It prefers the same
// spelling.
func IndexName(list []string, name string) int {
	index := -1
	for i, one := range list {
		if one == name {
			return i
		}
		if index < 0 && SameName(one, name) {
			index = i
		}
	}
	return index
}

package conf

import (
	"maps"
	"slices"
	"strings"
)

// PrivateData is a set of kinds of information that are hidden from ordinary
// users. The zero value stands for a configuration without PrivateData=.
type PrivateData uint16

// The kinds of information that PrivateData= names.
const (
	PrivateAccounts PrivateData = 1 << iota
	PrivateCloud
	PrivateEvents
	PrivateJobs
	PrivateNodes
	PrivatePartitions
	PrivateReservations
	PrivateUsage
	PrivateUsers

	PrivateNone // set whenever the configuration has the key

	allPrivate     = PrivateNone - 1
	defaultPrivate = PrivateJobs | PrivateUsers // hidden if the configuration lacks the key; Slurm hides nothing in that case
)

var privateKinds = map[string]PrivateData{
	"accounts": PrivateAccounts, "cloud": PrivateCloud, "events": PrivateEvents, "jobs": PrivateJobs, "nodes": PrivateNodes,
	"partitions": PrivatePartitions, "reservations": PrivateReservations, "usage": PrivateUsage, "users": PrivateUsers,
}

// Hides reports whether the given kind of information is hidden.
func (p PrivateData) Hides(kind PrivateData) bool {
	if p&PrivateNone == 0 {
		p = defaultPrivate
	}
	return p&kind != 0
}

// NamesExcept returns the names of the hidden kinds of information, without
// those in kinds. If the configuration hides all kinds, NamesExcept returns
// nil.
func (p PrivateData) NamesExcept(kinds PrivateData) (names []string) {
	if p&allPrivate == allPrivate {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(privateKinds)) {
		if p&^kinds&privateKinds[name] != 0 {
			names = append(names, name)
		}
	}
	return names
}

// setPrivate parses "all", "none", or a list of kinds of information. An
// unknown word was probably meant to hide something, so it hides all kinds. In
// a file for our daemons, such a word is also an error.
func setPrivate(to *PrivateData, v string) error {
	words := splitList(fold(v))
	*to = PrivateNone
	for _, word := range words {
		kind := privateKinds[word] | privateKinds[word+"s"] // Slurm accepts "job", too
		switch {
		case kind != 0:
			*to |= kind
		case word == "all":
			*to |= allPrivate
		case word != "none" || len(words) > 1:
			*to |= allPrivate
			kinds := strings.Join(slices.Sorted(maps.Keys(privateKinds)), ", ")
			return toleratedError{wantError("all, none, or a list of " + kinds), "unknown word; treated as all"}
		}
	}
	return nil
}

// Package scope names what a client may do.
package scope

import (
	"fmt"
	"strings"
)

// A Set is a set of scopes, each of which permits some operations. The names
// of the first four are those of the WLCG token profile, version 1.0.
//
// An operation belongs to the scope of what it does, whatever its method: a job
// is requeued with GET.
type Set uint8

// The scopes.
const (
	ComputeRead   Set = 1 << iota // show jobs, nodes, partitions, reservations and the controller itself
	ComputeCreate                 // submit jobs
	ComputeModify                 // change, hold and requeue jobs
	ComputeCancel                 // cancel jobs, and send them signals
	SlurmdbRead                   // show accounting records
	SlurmdbWrite                  // change accounting records
	ClusterAdmin                  // change nodes, partitions, reservations and the controller
)

// None is the scope of an operation that asks no daemon. Every Set permits it.
const None Set = 0

// All are all scopes.
const All = ClusterAdmin<<1 - 1

// names are the names of the scopes, in the order of their bits.
var names = [...]string{"compute.read", "compute.create", "compute.modify", "compute.cancel", "slurmdb.read", "slurmdb.write", "cluster.admin"}

// String returns the names, separated by "+".
func (s Set) String() string {
	var list []string
	for i, name := range names {
		if s&(1<<i) != 0 {
			list = append(list, name)
		}
	}
	return strings.Join(list, "+")
}

// Parse parses what String returns.
func Parse(text string) (s Set, err error) {
	for name := range strings.SplitSeq(text, "+") {
		i := 0
		for i < len(names) && names[i] != name {
			i++
		}
		if i == len(names) {
			return 0, fmt.Errorf("%q is not a scope; expected some of %s, separated by +", name, strings.Join(names[:], ", "))
		}
		s |= 1 << i
	}
	return s, nil
}

// Granted returns the scopes in the texts of a token's claim, each of which consists of
// words (RFC 8693, 4.2). Words that are no scopes of ours, such as openid, are skipped.
func Granted(texts []string) (granted Set) {
	for _, text := range texts {
		for word := range strings.FieldsSeq(text) {
			if s, err := Parse(word); err == nil {
				granted |= s
			}
		}
	}
	return granted
}

// ReadsOnly reports whether operations of these scopes change nothing.
func (s Set) ReadsOnly() bool { return s&^(ComputeRead|SlurmdbRead) == 0 }

// Permit reports whether s contains the scope of an operation.
func (s Set) Permit(operation Set) bool { return s&operation == operation }

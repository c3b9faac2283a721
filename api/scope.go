package api

import (
	"fmt"
	"strings"
)

// Scopes are a set of scopes, each of which permits some operations. The names
// of the first four are those of the WLCG token profile, version 1.0.
//
// An operation belongs to the scope of what it does, whatever its method: a job
// is requeued with GET.
type Scopes uint8

// The scopes.
const (
	ComputeRead   Scopes = 1 << iota // show jobs, nodes, partitions, reservations and the controller itself
	ComputeCreate                    // submit jobs
	ComputeModify                    // change, hold and requeue jobs
	ComputeCancel                    // cancel jobs, and send them signals
	SlurmdbRead                      // show accounting records
	SlurmdbWrite                     // change accounting records
	ClusterAdmin                     // change nodes, partitions, reservations and the controller
)

// NoScope is the scope of an operation that asks no daemon, and is always
// permitted.
const NoScope Scopes = 0

// AllScopes are all scopes.
const AllScopes = ClusterAdmin<<1 - 1

// scopeNames are the names of the scopes, in the order of their bits.
var scopeNames = [...]string{"compute.read", "compute.create", "compute.modify", "compute.cancel", "slurmdb.read", "slurmdb.write", "cluster.admin"}

// String returns the names, separated by "+".
func (s Scopes) String() string {
	var names []string
	for i, name := range scopeNames {
		if s&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// ParseScopes parses what String returns.
func ParseScopes(text string) (s Scopes, err error) {
	for name := range strings.SplitSeq(text, "+") {
		i := 0
		for i < len(scopeNames) && scopeNames[i] != name {
			i++
		}
		if i == len(scopeNames) {
			return 0, fmt.Errorf("%q is no scope; expected some of %s, separated by +", name, strings.Join(scopeNames[:], ", "))
		}
		s |= 1 << i
	}
	return s, nil
}

// Permit reports whether s contains the scope of an operation.
func (s Scopes) Permit(operation Scopes) bool { return s&operation == operation }

// Package catalog holds the clusters, accounts, users, associations and QOS of
// the bundled accounting daemon. These are all of the daemon's records except
// jobs. The package also contains the rules for changing them. It neither
// accesses files nor serves clients.
//
// To make a change, the caller clones a Catalog and changes the clone. The
// clone then either replaces the original or is discarded. Records in a Catalog
// are never modified, only replaced. So several Catalogs can share records, and
// it is fast to compare two Catalogs.
//
// The account "root", the user "root" and the QOS "normal" exist from the
// start. In each cluster, the account root has an association. This association
// is the parent of every association in the cluster that has no other parent.
package catalog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// Every Catalog has an account and a user with the name root.
const root = "root"

// Catalog is a set of records.
type Catalog struct {
	Clusters     map[string]*model.Cluster
	Accounts     map[string]*model.Account // each with its own coordinators, without those of the accounts above it
	Users        map[string]*model.User
	Associations map[uint32]*model.Association
	QOS          map[uint32]*model.QOS
	LastAssoc    uint32 // highest number that an association has ever had
	LastQOS      uint32 // highest number that a QOS has ever had

	clusterKeys, accountKeys, userKeys map[string]string // see spelled; nil until they are needed
}

// Empty returns a Catalog without any record.
func Empty() *Catalog {
	return &Catalog{Clusters: map[string]*model.Cluster{}, Accounts: map[string]*model.Account{}, Users: map[string]*model.User{},
		Associations: map[uint32]*model.Association{}, QOS: map[uint32]*model.QOS{}}
}

// New returns a Catalog that has only the records that exist from the start.
func New() *Catalog {
	b := Empty()
	b.Accounts[root] = &model.Account{Name: root, Description: "default root account", Organization: root}
	b.Users[root] = &model.User{Name: root, AdminLevel: Administrator}
	q := newQOS(&model.QOS{Name: "normal", Description: "Normal QOS default"})
	b.LastQOS, q.ID = 1, 1
	b.QOS[q.ID] = &q
	return b
}

// Clone returns a copy of b that can be changed.
func (b *Catalog) Clone() *Catalog {
	return &Catalog{Clusters: maps.Clone(b.Clusters), Accounts: maps.Clone(b.Accounts), Users: maps.Clone(b.Users),
		Associations: maps.Clone(b.Associations), QOS: maps.Clone(b.QOS), LastAssoc: b.LastAssoc, LastQOS: b.LastQOS}
}

// maxRecords limits the number of records in a Catalog, because they are all in
// memory.
const maxRecords = 200_000

// Check returns an error if the Catalog has too many records.
func (b *Catalog) Check() error {
	if len(b.Clusters)+len(b.Accounts)+len(b.Users)+len(b.Associations)+len(b.QOS) > maxRecords {
		return refuse(errs.TooMany, fault.Backoff, "the accounting daemon is full: it holds at most %d records", maxRecords)
	}
	return nil
}

// refuse returns an error with one of Slurm's error numbers.
func refuse(kind errs.Kind, number int, format string, args ...any) error {
	return errs.New(kind, format, args...).WithNumber(number)
}

// invalid returns an error for an unacceptable value. Slurm has no error number
// for this case.
func invalid(format string, args ...any) error { return errs.New(errs.Invalid, format, args...) }

// unsupported returns an error for a feature that this daemon lacks.
func unsupported(what string) error {
	return refuse(errs.Unsupported, fault.NotSupported, "this accounting daemon does not support %s", what)
}

// maxName limits the length of a name, and maxText limits the length of any
// other text. Both are in bytes.
const (
	maxName = 250
	maxText = 4096
)

// checkName returns an error if a name is empty, too long or not valid UTF-8,
// or if it contains white space, a control character, a comma or a slash. A
// name with a slash could be mistaken for a part of a lineage such as
// "/lab/0-ann/".
func checkName(kind, name string) error {
	isBad := func(r rune) bool { return r == '/' || r == ',' || unicode.IsControl(r) || unicode.IsSpace(r) }
	switch {
	case name == "":
		return invalid("a %s needs a name", kind)
	case len(name) > maxName:
		return invalid("the name of a %s has more than %d bytes", kind, maxName)
	case !utf8.ValidString(name), strings.ContainsFunc(name, isBad):
		return refuse(errs.Invalid, fault.BadName, "%.60q can't be the name of a %s", name, kind)
	}
	return nil
}

// checkTexts refuses texts that are too long.
func checkTexts(texts ...model.Text) error {
	for _, t := range texts {
		if len(t) > maxText {
			return invalid("a text has more than %d bytes", maxText)
		}
	}
	return nil
}

// stored returns the value of a field that a change sets to t. In a stored
// record, a text that is empty is unset.
func stored(t model.Text) model.Text { return model.Text(t.String()) }

// Matches reports whether filter contains s or is empty. Like slurmdbd's
// database, it ignores case.
func Matches(filter []string, s string) bool { return len(filter) == 0 || model.HasName(filter, s) }

// spelled returns a name as the record in m has it, or the name itself if there
// is no such record. Records refer to each other in this spelling, so only
// requests can have another one. The argument keys is the address of the
// Catalog's map from model.NameKey to names, which is made when a change first
// has a name that is not in m, and again after removals.
func spelled[T any](keys *map[string]string, m map[string]*T, name string) string {
	if m[name] != nil || name == "" {
		return name
	}
	stored, found := (*keys)[model.NameKey(name)]
	if *keys == nil || found && m[stored] == nil {
		*keys = make(map[string]string, len(m))
		for key := range m {
			(*keys)[model.NameKey(key)] = key
		}
		stored, found = (*keys)[model.NameKey(name)]
	}
	if !found {
		return name
	}
	return stored
}

// insert adds a new record to m.
func insert[T any](keys *map[string]string, m map[string]*T, name string, record *T) {
	m[name] = record
	if *keys != nil {
		(*keys)[model.NameKey(name)] = name
	}
}

func (b *Catalog) cluster(name string) string { return spelled(&b.clusterKeys, b.Clusters, name) }
func (b *Catalog) account(name string) string { return spelled(&b.accountKeys, b.Accounts, name) }
func (b *Catalog) user(name string) string    { return spelled(&b.userKeys, b.Users, name) }

// Sorted returns the values of m in the order of their keys.
func Sorted[K cmp.Ordered, V any](m map[K]V) []V {
	list := make([]V, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[k])
	}
	return list
}

package cli

import (
	"context"
	"slices"
	"strings"

	"schedrestd/become/nss"
	"schedrestd/cli/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
	"schedrestd/internal/typo"
	"schedrestd/model"
)

// A kind is a kind of objects that a filter names.
type kind struct {
	word string // for errors, such as "account"
	list rest.Collection
	hint string // for a name that is like no other
}

// A seenName is the name of an object that the server has sent.
type seenName struct {
	kind *kind
	name string
}

// see records those names of a selected object that the filter wants.
func (f *filter) see(k *kind, wanted []string, names ...string) {
	for _, name := range names {
		if k == &accountKind {
			name = strings.ToLower(name)
		}
		if slices.Contains(wanted, name) {
			if f.seen == nil {
				f.seen = map[seenName]bool{}
			}
			f.seen[seenName{k, name}] = true
		}
	}
}

const mayNotSee = "the accounting records have no such entry, or you may not see it"

var (
	accountKind   = kind{"account", rest.Collection{Path: "accounts/", Key: "accounts", Accounting: true}, mayNotSee}
	clusterKind   = kind{"cluster", rest.Collection{Path: "clusters/", Key: "clusters", Accounting: true}, mayNotSee}
	nodeKind      = kind{"node", rest.Collection{Path: "nodes/", Key: "nodes"}, "schedctl nodes lists the nodes"}
	partitionKind = kind{"partition", rest.Collection{Path: "partitions/", Key: "partitions"}, "schedctl partitions lists the partitions"}
	qosKind       = kind{"qos", rest.Collection{Path: "qos/", Key: "qos", Accounting: true}, "schedctl show qos lists them"}
	userKind      = kind{"user", rest.Collection{Path: "users/", Key: "users", Accounting: true}, "neither this machine nor the accounting records have this user"}
)

// checkNames returns an error if a name in f is that of no object. Otherwise a
// misspelled name would look like an empty queue. It is called when everything
// has been listed that f selects, and asks the server only about names that were
// not seen there. What the server does not answer is not an error.
func (c *connection) checkNames(ctx context.Context, f *filter) (err error) {
	for _, named := range []struct {
		kind  *kind
		names []string
	}{{&partitionKind, f.partitions}, {&userKind, f.users}, {&accountKind, f.accounts}, {&qosKind, f.qos}, {&clusterKind, f.clusters}, {&nodeKind, f.nodes}} {
		err = joinErrors(err, c.checkKind(ctx, f, named.kind, named.names))
	}
	return err
}

// checkKind checks the names of objects of one kind. It does not report users of
// this machine, which may have no record in accounting, nor nodes of a list, such as
// n[1-99], of which some exist.
func (c *connection) checkKind(ctx context.Context, f *filter, k *kind, names []string) (err error) {
	unseen := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return f.seen[seenName{k, name}] || k == &userKind && (name == c.user || isLocalUser(name))
	})
	if len(unseen) == 0 || k == &nodeKind && len(unseen) < len(names) {
		return nil
	}
	known, err := c.Names(ctx, k.list)
	if err != nil && !(k == &userKind && c.cluster != nil) { // without a gateway, this machine knows the users
		c.log("note: %ss can't be checked: %v", k.word, err)
		return nil
	}
	if k == &nodeKind && slices.ContainsFunc(known, func(name string) bool { return slices.Contains(unseen, name) }) {
		return nil
	}
	if k == &accountKind {
		for i, name := range known {
			known[i] = strings.ToLower(name)
		}
	}
	return unknownNames(k, unseen, known)
}

// isLocalUser reports whether this machine has the user, or can't tell.
func isLocalUser(name string) bool {
	_, err := nss.LookupUser(name)
	return err == nil || errs.KindOf(err) != errs.NotFound
}

// unknownNames returns an error with the names that are not known.
func unknownNames(k *kind, names, known []string) (err error) {
	var unknown []string
	seen := map[string]bool{}
	for _, name := range known {
		seen[name] = true
	}
	for _, name := range names {
		if !seen[name] {
			seen[name], unknown = true, append(unknown, name) // a repeated name once
		}
	}
	if k.word == "node" && len(unknown) > 1 {
		return errs.New(errs.NotFound, "nodes %s are unknown", printable.Text(model.FoldHosts(unknown))).WithHint("%s", k.hint)
	}
	for _, name := range unknown {
		e := errs.New(errs.NotFound, "%s %s is unknown", k.word, printable.Text(name)).WithHint("%s", k.hint)
		near := typo.Nearest(name, known)
		if i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) }); i >= 0 {
			near = known[i]
		}
		if near != "" {
			e = e.WithHint("did you mean %s?", printable.Text(near))
		}
		err = joinErrors(err, e)
	}
	return err
}

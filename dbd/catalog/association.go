package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// find returns the association with these names, or nil.
func (b *Catalog) find(cluster, account, user, partition string) *model.Association {
	for _, a := range b.Associations {
		if a.Account == account && a.Cluster == cluster && a.User == user && a.Partition == partition {
			return a
		}
	}
	return nil
}

// put adds a new association with the names and limits of a. It returns the new
// record.
func (b *Catalog) put(a *model.Association) *model.Association {
	made := model.Association{Account: a.Account, Cluster: a.Cluster, User: a.User, Partition: a.Partition, Shares: 1, IsDefault: a.IsDefault}
	setNumbers(assocNumbers(&made), assocNumbers(&made))
	b.LastAssoc++
	made.ID = b.LastAssoc
	b.Associations[made.ID] = &made
	return &made
}

// isAccount reports whether a is an account's own association.
func isAccount(a *model.Association) bool { return a.User == "" }

// isRoot reports whether a is the root of its cluster's tree.
func isRoot(a *model.Association) bool { return isAccount(a) && a.Account == root }

// AddAssociations adds associations. Their accounts, users and clusters must
// exist. A user can be associated with an account in a cluster only if the
// account itself has an association in that cluster.
func (b *Catalog) AddAssociations(list []model.Association) error {
	for i := range list {
		a := &list[i]
		if b.find(a.Cluster, a.Account, a.User, a.Partition) != nil {
			return errs.New(errs.Conflict, "the association %s exists already", Text(a))
		}
		if _, err := b.add(a); err != nil {
			return err
		}
	}
	return nil
}

// add adds an association that does not exist yet, with the fields that are set
// in a.
func (b *Catalog) add(a *model.Association) (*model.Association, error) {
	switch {
	case b.Clusters[a.Cluster] == nil:
		return nil, invalid("there is no cluster %.60q", a.Cluster)
	case b.Accounts[a.Account] == nil:
		return nil, noAccount(a.Account)
	case a.User != "" && b.Users[a.User] == nil:
		return nil, refuse(errs.Invalid, fault.UnknownUser, "there is no user %.60q", a.User)
	case a.User != "" && b.find(a.Cluster, a.Account, "", "") == nil:
		return nil, refuse(errs.Invalid, fault.InvalidAccount, "the account %s has no association in the cluster %s", a.Account, a.Cluster)
	case a.User == "" && a.Partition != "":
		return nil, invalid("only the association of a user can have a partition")
	}
	if a.Partition != "" {
		if err := checkName("partition", a.Partition); err != nil {
			return nil, err
		}
	}
	made := b.put(&model.Association{Account: a.Account, Cluster: a.Cluster, User: a.User, Partition: a.Partition})
	parent := *a
	if isAccount(a) && a.ParentAccount == "" {
		parent.ParentAccount = root
	}
	if err := b.change(made, &parent); err != nil {
		return nil, err
	}
	if made.User != "" && b.defaultOf(made.User, made.Cluster) == nil {
		made.IsDefault = model.Some[uint16](1)
	}
	return made, nil
}

// defaultOf returns the default association of a user in a cluster, or nil.
func (b *Catalog) defaultOf(user, cluster string) *model.Association {
	for _, a := range sorted(b.Associations) {
		if a.User == user && a.Cluster == cluster && a.IsDefault.Or(0) != 0 {
			return a
		}
	}
	return nil
}

// change copies to a the fields that are set in the argument change, except for
// the names. a must be a new record or a copy, not a record of a Catalog.
func (b *Catalog) change(a, change *model.Association) error {
	if err := checkTexts(change.Comment); err != nil {
		return err
	}
	if change.Comment != "" {
		a.Comment = change.Comment
	}
	if change.ParentAccount != "" {
		if err := b.move(a, change.ParentAccount); err != nil {
			return err
		}
	}
	switch id := change.DefaultQOSID; {
	case id == model.Leave32:
	case id == model.Leave32+1, id == 0: // 0 and "unlimited" both remove the default QOS
		a.DefaultQOSID = 0
	case !b.hasQOS(id):
		return noQOS(strconv.FormatUint(uint64(id), 10))
	default:
		a.DefaultQOSID = id
	}
	if change.Shares != model.Leave32 && change.Shares != 0 {
		a.Shares = change.Shares
	}
	setNumbers(assocNumbers(a), assocNumbers(change))
	if err := setAmounts(assocAmounts(a), assocAmounts(change)); err != nil {
		return err
	}
	ids, err := changeIDs(a.QOSIDs, change.QOSIDs, b.hasQOS)
	if err != nil {
		return err
	}
	a.QOSIDs = ids
	if change.IsDefault.Or(0) == 1 && a.User != "" {
		b.setDefault(a)
	}
	return nil
}

// setDefault makes a the default association of its user.
func (b *Catalog) setDefault(a *model.Association) {
	for _, other := range sorted(b.Associations) {
		if other.User == a.User && other.Cluster == a.Cluster && other.ID != a.ID && other.IsDefault.Or(0) != 0 {
			left := *other
			left.IsDefault = model.Opt[uint16]{}
			b.Associations[left.ID] = &left
		}
	}
	a.IsDefault = model.Some[uint16](1)
}

// move gives an account's association another parent.
func (b *Catalog) move(a *model.Association, parent string) error {
	if !isAccount(a) {
		return nil // the parent of a user's association is always its account
	}
	p := b.find(a.Cluster, parent, "", "")
	switch {
	case isRoot(a):
		return refuse(errs.Invalid, fault.InvalidParent, "the account root has no parent")
	case p == nil:
		return refuse(errs.Invalid, fault.InvalidParent, "there is no account %.60q in the cluster %s to be the parent", parent, a.Cluster)
	}
	for above, n := p, 0; above != nil && !isRoot(above); above, n = b.find(a.Cluster, above.ParentAccount, "", ""), n+1 {
		if above.Account == a.Account || n > maxDepth {
			return refuse(errs.Invalid, fault.ChildOfParent, "the account %s is below the account %s", parent, a.Account)
		}
	}
	a.ParentAccount = parent
	return nil
}

// maxDepth limits the depth of the tree of accounts.
const maxDepth = 50

// ModifyAssociations changes the associations that f selects: it sets the
// fields that are set in change. It returns the associations as texts.
func (b *Catalog) ModifyAssociations(f *model.AssocFilter, change *model.Association) (names []string, err error) {
	for _, found := range b.selected(f) {
		a := *b.Associations[found.ID] // setDefault may have replaced the record
		if err := b.change(&a, change); err != nil {
			return nil, err
		}
		b.Associations[a.ID] = &a
		names = append(names, Text(&a))
	}
	return names, nil
}

// RemoveAssociations removes the associations that f selects and all
// associations below them, and returns them as texts. It fails if one of them
// is an association of the account root. It also fails if one of them is the
// default of a user who would keep other associations in that cluster. In the
// second case the returned texts name the default associations that prevent the
// removal.
func (b *Catalog) RemoveAssociations(f *model.AssocFilter) (names []string, err error) {
	gone := map[uint32]*model.Association{}
	for _, a := range b.selected(f) {
		if isRoot(a) {
			return nil, refuse(errs.Denied, fault.AccessDenied, "the associations of the account root can't be removed")
		}
		gone[a.ID] = a
		for _, below := range b.below(a) {
			gone[below.ID] = below
		}
	}
	return b.drop(gone)
}

// drop removes associations.
func (b *Catalog) drop(gone map[uint32]*model.Association) (names []string, err error) {
	var blocked []string
	for _, a := range sorted(gone) {
		if a.User != "" && a.IsDefault.Or(0) != 0 && slices.ContainsFunc(sorted(b.Associations), func(other *model.Association) bool {
			return other.User == a.User && other.Cluster == a.Cluster && gone[other.ID] == nil
		}) {
			blocked = append(blocked, Text(a))
		}
		names = append(names, Text(a))
	}
	if len(blocked) > 0 {
		return blocked, refuse(errs.Conflict, fault.DefaultAccount, "")
	}
	for id := range gone {
		delete(b.Associations, id)
	}
	return names, nil
}

// below returns the associations below the association of an account.
func (b *Catalog) below(a *model.Association) (list []*model.Association) {
	if !isAccount(a) {
		return nil
	}
	t := b.tree()
	prefix := t.lineage(a)
	for _, other := range b.Associations {
		if other.Cluster == a.Cluster && other.ID != a.ID && strings.HasPrefix(t.lineage(other), prefix) {
			list = append(list, other)
		}
	}
	return list
}

// tree maps a cluster and an account name to the account's association.
type tree map[[2]string]*model.Association

func (b *Catalog) tree() tree {
	t := tree{}
	for _, a := range b.Associations {
		if isAccount(a) {
			t[[2]string{a.Cluster, a.Account}] = a
		}
	}
	return t
}

// parent returns the association above a, or nil if a is the root of its
// cluster's tree.
func (t tree) parent(a *model.Association) *model.Association {
	switch {
	case isRoot(a):
		return nil
	case isAccount(a):
		return t[[2]string{a.Cluster, a.ParentAccount}]
	}
	return t[[2]string{a.Cluster, a.Account}]
}

// lineage returns the names from root down to a, such as "/lab/0-ann/".
func (t tree) lineage(a *model.Association) string {
	text := ""
	for n := 0; a != nil && !isRoot(a) && n <= maxDepth+1; a, n = t.parent(a), n+1 {
		switch {
		case isAccount(a):
			text = a.Account + "/" + text
		case a.Partition != "":
			text = "0-" + a.User + "/" + a.Partition + "/"
		default:
			text = "0-" + a.User + "/"
		}
	}
	return "/" + text
}

// selected returns the associations that f selects, sorted by cluster and
// lineage.
func (b *Catalog) selected(f *model.AssocFilter) (list []*model.Association) {
	t := b.tree()
	accounts := f.Accounts
	if f.Flags&model.AssocSubAccounts != 0 && len(accounts) > 0 {
		accounts = b.withBelow(t, accounts)
	}
	for _, a := range b.Associations {
		switch {
		case !in(accounts, a.Account), !in(f.Clusters, a.Cluster), !in(f.Partitions, a.Partition), !in(f.Users, a.User),
			f.Users != nil && len(f.Users) == 0 && a.User == "",
			!in(f.IDs, strconv.FormatUint(uint64(a.ID), 10)),
			!in(f.DefaultQOSIDs, strconv.FormatUint(uint64(a.DefaultQOSID), 10)),
			len(f.ParentAccounts) > 0 && (!isAccount(a) || !slices.Contains(f.ParentAccounts, a.ParentAccount)),
			f.Flags&model.AssocOnlyDefaults != 0 && a.IsDefault.Or(0) == 0,
			len(f.QOSIDs) > 0 && !slices.ContainsFunc(f.QOSIDs, func(id string) bool { return slices.Contains(t.qos(a), id) }):
			continue
		}
		list = append(list, a)
	}
	lineages := make(map[uint32]string, len(list))
	for _, a := range list {
		lineages[a.ID] = t.lineage(a)
	}
	slices.SortFunc(list, func(x, y *model.Association) int {
		return cmp.Or(cmp.Compare(x.Cluster, y.Cluster), cmp.Compare(lineages[x.ID], lineages[y.ID]), cmp.Compare(x.ID, y.ID))
	})
	return list
}

// withBelow returns accounts, and all accounts below them in any cluster.
func (b *Catalog) withBelow(t tree, accounts []string) []string {
	all := slices.Clone(accounts)
	for _, a := range t {
		for above, n := t.parent(a), 0; above != nil && n <= maxDepth; above, n = t.parent(above), n+1 {
			if slices.Contains(accounts, above.Account) && !slices.Contains(all, a.Account) {
				all = append(all, a.Account)
			}
		}
	}
	return all
}

// qos returns the QOS of a: its own QOS, or those of the nearest association
// above it that has any.
func (t tree) qos(a *model.Association) []string {
	for n := 0; a != nil && n <= maxDepth+1; a, n = t.parent(a), n+1 {
		if len(a.QOSIDs) > 0 {
			return a.QOSIDs
		}
	}
	return nil
}

// ListAssociations returns the associations that f selects. Unless the flags of
// f prevent it, an association inherits the QOS and the inheritable limits that
// it lacks. It inherits each of them from the nearest association above it that
// has one.
func (b *Catalog) ListAssociations(f *model.AssocFilter) (list []model.Association) {
	t := b.tree()
	for _, a := range b.selected(f) {
		list = append(list, t.shown(a, f.Flags))
	}
	return list
}

// shown returns a as clients see it.
func (t tree) shown(a *model.Association, flags model.AssocFilterFlags) model.Association {
	one := *a
	one.Lineage = t.lineage(a)
	one.Usage = []model.Usage{}
	if flags&model.AssocRawQOS == 0 {
		one.QOSIDs = t.qos(a)
	}
	if one.QOSIDs == nil {
		one.QOSIDs = []string{}
	}
	if above := t.parent(a); above != nil && flags&model.AssocWithoutParentInfo == 0 {
		one.ParentID = above.ID
	} else {
		one.ParentAccount = ""
	}
	if flags&model.AssocWithoutParentLimits != 0 {
		return one
	}
	for above, n := t.parent(a), 0; above != nil && n <= maxDepth+1; above, n = t.parent(above), n+1 {
		limits := *above
		for i, to := range assocNumbers(&one)[:passedNumbers] {
			if from := assocNumbers(&limits)[i]; !to.Set && from.Set {
				*to = *from
			}
		}
		for i, to := range assocAmounts(&one)[:passedAmounts] {
			if from := assocAmounts(&limits)[i]; *to == "" {
				*to = *from
			}
		}
		if one.DefaultQOSID == 0 {
			one.DefaultQOSID = above.DefaultQOSID
		}
	}
	return one
}

// Text returns the names of an association in the form of Slurm's commands.
func Text(a *model.Association) string {
	text := fmt.Sprintf("C = %-10s A = %-20s", a.Cluster, a.Account)
	if a.User != "" {
		text += fmt.Sprintf(" U = %-9s", a.User)
	}
	if a.Partition != "" {
		text += " P = " + a.Partition
	}
	return strings.TrimRight(text, " ")
}

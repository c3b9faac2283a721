package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// findAssociation returns the association with these names, or nil.
func (b *Catalog) findAssociation(cluster, account, user, partition string) *model.Association {
	for _, a := range b.Associations {
		if a.Account == account && a.Cluster == cluster && a.User == user && model.SameName(a.Partition, partition) {
			return a
		}
	}
	return nil
}

// insertAssociation adds a new association with the names and the field
// IsDefault of a, but without limits. It returns the new record.
func (b *Catalog) insertAssociation(a *model.Association) *model.Association {
	rec := model.Association{Account: a.Account, Cluster: a.Cluster, User: a.User, Partition: a.Partition,
		Shares: 1, IsDefault: a.IsDefault}
	setNumbers(assocNumbers(&rec), assocNumbers(&rec))
	b.LastAssoc++
	rec.ID = b.LastAssoc
	b.Associations[rec.ID] = &rec
	return &rec
}

// isAccount reports whether a is an account's own association.
func isAccount(a *model.Association) bool { return a.User == "" }

// isRoot reports whether a is the root of its cluster's tree.
func isRoot(a *model.Association) bool { return isAccount(a) && a.Account == root }

// AddAssociations adds the associations in list. Their accounts, users and
// clusters must exist. A user can be associated with an account in a cluster
// only if the account itself has an association in that cluster.
func (b *Catalog) AddAssociations(list []model.Association) error {
	for i := range list {
		a := b.spelledAssociation(&list[i])
		if b.findAssociation(a.Cluster, a.Account, a.User, a.Partition) != nil {
			return errs.New(errs.Conflict, "the association %s exists already", text(a))
		}
		if _, err := b.addAssociation(a); err != nil {
			return err
		}
	}
	return nil
}

// spelledAssociation returns a copy of a with the names of existing records.
func (b *Catalog) spelledAssociation(a *model.Association) *model.Association {
	rec := *a
	rec.Cluster, rec.Account, rec.User = b.cluster(a.Cluster), b.account(a.Account), b.user(a.User)
	return &rec
}

// addAssociation adds an association that must not exist yet. It sets the
// fields that are set in a.
func (b *Catalog) addAssociation(a *model.Association) (*model.Association, error) {
	a = b.spelledAssociation(a)
	switch {
	case b.Clusters[a.Cluster] == nil:
		return nil, invalid("there is no cluster %.60q", a.Cluster)
	case b.Accounts[a.Account] == nil:
		return nil, unknownAccount(a.Account)
	case a.User != "" && b.Users[a.User] == nil:
		return nil, refuse(errs.Invalid, fault.UnknownUser, "there is no user %.60q", a.User)
	case a.User != "" && b.findAssociation(a.Cluster, a.Account, "", "") == nil:
		return nil, refuse(errs.Invalid, fault.InvalidAccount,
			"the account %s has no association in the cluster %s", a.Account, a.Cluster)
	case a.User == "" && a.Partition != "":
		return nil, invalid("only the association of a user can have a partition")
	}
	if a.Partition != "" {
		if err := checkName("partition", a.Partition); err != nil {
			return nil, err
		}
	}
	rec := b.insertAssociation(&model.Association{Account: a.Account, Cluster: a.Cluster, User: a.User, Partition: a.Partition})
	parent := *a
	if isAccount(a) && a.ParentAccount == "" {
		parent.ParentAccount = root
	}
	if err := b.changeAssociation(rec, &parent); err != nil {
		return nil, err
	}
	if rec.User != "" && b.defaultAssociation(rec.User, rec.Cluster) == nil {
		rec.IsDefault = model.Some[uint16](1)
	}
	return rec, nil
}

// defaultAssociation returns a user's default association in a cluster, or nil
// if there is none.
func (b *Catalog) defaultAssociation(user, cluster string) *model.Association {
	for _, a := range Sorted(b.Associations) {
		if a.User == user && a.Cluster == cluster && a.IsDefault.Or(0) != 0 {
			return a
		}
	}
	return nil
}

// changeAssociation sets the fields of a that are set in the change argument,
// except the names. The argument a must be a new record or a copy, because
// other Catalogs may share the existing records.
func (b *Catalog) changeAssociation(a, change *model.Association) error {
	if err := checkTexts(change.Comment); err != nil {
		return err
	}
	if change.Comment != "" {
		a.Comment = stored(change.Comment)
	}
	if change.ParentAccount != "" {
		if err := b.setParent(a, change.ParentAccount); err != nil {
			return err
		}
	}
	switch id := change.DefaultQOSID; {
	case id == model.NoVal32:
	case id == model.NoVal32+1, id == 0: // 0 and "unlimited" both remove the default QOS
		a.DefaultQOSID = 0
	case !b.hasQOS(id):
		return unknownQOS(strconv.FormatUint(uint64(id), 10))
	default:
		a.DefaultQOSID = id
	}
	if change.Shares != model.NoVal32 && change.Shares != 0 {
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
	for _, assoc := range Sorted(b.Associations) {
		if assoc.User == a.User && assoc.Cluster == a.Cluster && assoc.ID != a.ID && assoc.IsDefault.Or(0) != 0 {
			rec := *assoc
			rec.IsDefault = model.Opt[uint16]{}
			b.Associations[rec.ID] = &rec
		}
	}
	a.IsDefault = model.Some[uint16](1)
}

// setParent gives an account's association another parent.
func (b *Catalog) setParent(a *model.Association, parent string) error {
	if !isAccount(a) {
		return nil // a user's association is always below the association of its account
	}
	parent = b.account(parent)
	p := b.findAssociation(a.Cluster, parent, "", "")
	switch {
	case isRoot(a):
		return refuse(errs.Invalid, fault.InvalidParent, "the account root has no parent")
	case p == nil:
		return refuse(errs.Invalid, fault.InvalidParent,
			"there is no parent account %.60q in the cluster %s", parent, a.Cluster)
	}
	ancestor := p
	for n := 0; ancestor != nil && !isRoot(ancestor); n++ {
		if ancestor.Account == a.Account || n > maxDepth {
			return refuse(errs.Invalid, fault.ChildOfParent, "the account %s is below the account %s", parent, a.Account)
		}
		ancestor = b.findAssociation(a.Cluster, ancestor.ParentAccount, "", "")
	}
	a.ParentAccount = parent
	return nil
}

// maxDepth limits the depth of the tree of accounts.
const maxDepth = 50

// ModifyAssociations changes the associations that f selects. It sets the
// fields that are set in change, and returns the result of Text for each
// association.
func (b *Catalog) ModifyAssociations(f *model.AssocFilter, change *model.Association) (names []string, err error) {
	for _, old := range b.associations(f) {
		a := *b.Associations[old.ID] // setDefault may have replaced the record
		if err := b.changeAssociation(&a, change); err != nil {
			return nil, err
		}
		b.Associations[a.ID] = &a
		names = append(names, text(&a))
	}
	return names, nil
}

// RemoveAssociations removes the associations that f selects and all
// associations below them. It returns the result of Text for each removed
// association.
//
// RemoveAssociations fails if one of these associations is the root of a
// cluster's tree. It also fails if one of them is the default association of a
// user who would keep another association in the same cluster. In the second
// case, the returned strings name these default associations.
func (b *Catalog) RemoveAssociations(f *model.AssocFilter) (names []string, err error) {
	removals := map[uint32]*model.Association{}
	for _, a := range b.associations(f) {
		if isRoot(a) {
			return nil, refuse(errs.Denied, fault.AccessDenied, "the associations of the account root can't be removed")
		}
		removals[a.ID] = a
		for _, descendant := range b.descendants(a) {
			removals[descendant.ID] = descendant
		}
	}
	return b.dropAssociations(removals)
}

// dropAssociations removes associations.
func (b *Catalog) dropAssociations(removals map[uint32]*model.Association) (names []string, err error) {
	var blocked []string
	for _, a := range Sorted(removals) {
		if a.User != "" && a.IsDefault.Or(0) != 0 && b.keepsOther(a, removals) {
			blocked = append(blocked, text(a))
		}
		names = append(names, text(a))
	}
	if len(blocked) > 0 {
		return blocked, refuse(errs.Conflict, fault.DefaultAccount, "")
	}
	for id := range removals {
		delete(b.Associations, id)
	}
	return names, nil
}

// keepsOther reports whether the user of a still has an association in the
// cluster of a after the removals.
func (b *Catalog) keepsOther(a *model.Association, removals map[uint32]*model.Association) bool {
	for id, assoc := range b.Associations {
		if assoc.User == a.User && assoc.Cluster == a.Cluster && removals[id] == nil {
			return true
		}
	}
	return false
}

// descendants returns the associations below the association of an account.
func (b *Catalog) descendants(a *model.Association) (list []*model.Association) {
	if !isAccount(a) {
		return nil
	}
	t := b.tree()
	prefix := t.lineage(a)
	for _, assoc := range b.Associations {
		if assoc.Cluster == a.Cluster && assoc.ID != a.ID && strings.HasPrefix(t.lineage(assoc), prefix) {
			list = append(list, assoc)
		}
	}
	return list
}

// A tree maps the names of a cluster and an account to the account's own
// association in that cluster.
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

// parent returns the association directly above a. If a is the root of its
// cluster's tree, parent returns nil.
func (t tree) parent(a *model.Association) *model.Association {
	switch {
	case isRoot(a):
		return nil
	case isAccount(a):
		return t[[2]string{a.Cluster, a.ParentAccount}]
	}
	return t[[2]string{a.Cluster, a.Account}]
}

// lineage returns a string with the names on the path from the root down to a,
// for example "/lab/0-ann/" for the association of the user ann with the
// account lab.
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

// associations returns the associations that f selects, sorted by cluster and
// lineage.
func (b *Catalog) associations(f *model.AssocFilter) (list []*model.Association) {
	t := b.tree()
	accounts := f.Accounts
	if f.Flags&model.AssocSubAccounts != 0 && len(accounts) > 0 {
		accounts = b.withDescendants(t, accounts)
	}
	for _, a := range b.Associations {
		switch {
		case !Matches(accounts, a.Account), !Matches(f.Clusters, a.Cluster),
			!Matches(f.Partitions, a.Partition), !Matches(f.Users, a.User),
			f.Users != nil && len(f.Users) == 0 && a.User == "",
			!Matches(f.IDs, strconv.FormatUint(uint64(a.ID), 10)),
			!Matches(f.DefaultQOSIDs, strconv.FormatUint(uint64(a.DefaultQOSID), 10)),
			len(f.ParentAccounts) > 0 && (!isAccount(a) || !model.HasName(f.ParentAccounts, a.ParentAccount)),
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

// withDescendants returns the given accounts, and all accounts below them in
// any cluster.
func (b *Catalog) withDescendants(t tree, accounts []string) []string {
	names := slices.Clone(accounts)
	for _, a := range t {
		for ancestor, n := t.parent(a), 0; ancestor != nil && n <= maxDepth; ancestor, n = t.parent(ancestor), n+1 {
			if model.HasName(accounts, ancestor.Account) && !slices.Contains(names, a.Account) {
				names = append(names, a.Account)
			}
		}
	}
	return names
}

// qos returns the QOS of a. If a has none, qos returns the QOS of its nearest
// ancestor that has some.
func (t tree) qos(a *model.Association) []string {
	for n := 0; a != nil && n <= maxDepth+1; a, n = t.parent(a), n+1 {
		if len(a.QOSIDs) > 0 {
			return a.QOSIDs
		}
	}
	return nil
}

// ListAssociations returns the associations that f selects. If an association
// has no QOS, no default QOS or no value for an inheritable limit, it inherits
// the value of its nearest ancestor that has one. The flags of f can prevent
// this.
func (b *Catalog) ListAssociations(f *model.AssocFilter) (list []model.Association) {
	t := b.tree()
	for _, a := range b.associations(f) {
		list = append(list, t.view(a, f.Flags))
	}
	return list
}

// view returns a as clients see it.
func (t tree) view(a *model.Association, flags model.AssocFilterFlags) model.Association {
	rec := *a
	rec.Lineage = t.lineage(a)
	rec.Usage = []model.Usage{}
	if flags&model.AssocRawQOS == 0 {
		rec.QOSIDs = t.qos(a)
	}
	if rec.QOSIDs == nil {
		rec.QOSIDs = []string{}
	}
	if ancestor := t.parent(a); ancestor != nil && flags&model.AssocWithoutParentInfo == 0 {
		rec.ParentID = ancestor.ID
	} else {
		rec.ParentAccount = ""
	}
	if flags&model.AssocWithoutParentLimits != 0 {
		return rec
	}
	for ancestor, n := t.parent(a), 0; ancestor != nil && n <= maxDepth+1; ancestor, n = t.parent(ancestor), n+1 {
		limits := *ancestor
		for i, to := range assocNumbers(&rec)[:inheritedNumbers] {
			if from := assocNumbers(&limits)[i]; !to.Set && from.Set {
				*to = *from
			}
		}
		for i, to := range assocAmounts(&rec)[:inheritedAmounts] {
			if from := assocAmounts(&limits)[i]; *to == "" {
				*to = *from
			}
		}
		if rec.DefaultQOSID == 0 {
			rec.DefaultQOSID = ancestor.DefaultQOSID
		}
	}
	return rec
}

// text returns the cluster, account, user and partition of an association in
// the format of Slurm's commands.
func text(a *model.Association) string {
	text := fmt.Sprintf("C = %-10s A = %-20s", a.Cluster, a.Account)
	if a.User != "" {
		text += fmt.Sprintf(" U = %-9s", a.User)
	}
	if a.Partition != "" {
		text += " P = " + a.Partition
	}
	return strings.TrimRight(text, " ")
}

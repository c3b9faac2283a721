package handlers

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

func (h *handler) getAssociations(c *rest.Call, p *api.AssociationParams) error {
	r, err := h.records(c)
	if err != nil {
		return err
	}
	filter := p.AssocFilter
	if filter.Clusters, err = h.spellClusters(c, filter.Clusters); err != nil {
		return err
	}
	if filter.DefaultQOSIDs, err = qosNumbers(r, filter.DefaultQOSIDs, "default_qos"); err != nil {
		return err
	}
	if filter.QOSIDs, err = qosNumbers(r, filter.QOSIDs, "qos"); err != nil {
		return err
	}
	usagePeriod(c, &filter.UsageStart, &filter.UsageEnd)
	body := api.AssociationsAnswer{Envelope: c.Envelope()}
	key := func(a *model.Association) string { return a.Cluster + "/" + numberKey(uint64(a.ID)) }
	page := rest.Paged(c, &body.Envelope, key, recordsOf[model.Association](h, c, filter))
	body.Associations = rowsOf(page, func(a *model.Association) api.AssociationRow { return api.AssociationRow{Association: a, Records: r} })
	return rest.Send(c, http.StatusOK, api.Associations, &body)
}

// postAssociations creates and changes associations.
func (h *handler) postAssociations(c *rest.Call, _ *api.NoParams) error {
	body, err := rest.ReadBody(c, api.AssociationsBody)
	if err != nil {
		return err
	}
	return h.answerEdit(c, editEach(h, c, associationKind, body.Records))
}

var associationKind = kind[api.AssociationRow]{list: "associations", noun: "association", name: associationName, put: putAssociation, path: associationPath}

func associationName(a *api.AssociationRow) string {
	if a.Account == "" && a.Number != 0 {
		return fmt.Sprintf("%d", a.Number)
	}
	name := a.Cluster + "/" + a.Account
	for _, part := range []string{a.User, a.Partition} {
		if part != "" {
			name += "/" + part
		}
	}
	return name
}

// associationPath returns the path and query for an association.
func associationPath(tx *transaction, row *api.AssociationRow) (string, url.Values, error) {
	cluster, err := tx.storedCluster(row.Cluster)
	if err != nil {
		return "", nil, err
	}
	filter := model.AssocFilter{Accounts: []string{row.Account}, Clusters: []string{cluster}, Users: []string{row.User}, Partitions: []string{row.Partition}}
	if row.Account == "" && row.Number != 0 {
		filter = model.AssocFilter{IDs: []string{strconv.FormatUint(uint64(row.Number), 10)}, Clusters: []string{cmp.Or(cluster, tx.h.Cluster)}}
	}
	found, err := findOne[model.Association](lister(tx.others), filter)
	if err != nil || found == nil {
		return "", nil, err
	}
	return "associations/", url.Values{"id": {strconv.FormatUint(uint64(found.ID), 10)}, "cluster": {found.Cluster}}, nil
}

// putAssociation creates an association or changes an existing one.
//
// It must never add an association that exists. The daemon would not refuse
// this: for the association of an account itself, it would overwrite the parent
// account, the shares and the limits. For the account root, it would make root
// its own parent, and a daemon with such a record may not start again.
func putAssociation(tx *transaction, row *api.AssociationRow, at string) (bool, error) {
	copied, fields := *row, *row.Association // putAssociation may be called again with the same row
	copied.Association = &fields
	row = &copied
	if row.Account == "" && row.Number != 0 {
		if err := nameAssociation(tx, row, at); err != nil {
			return false, err
		}
	}
	for _, part := range []struct{ name, value string }{{"account", row.Account}, {"cluster", row.Cluster}} {
		if part.value == "" {
			return false, errs.New(errs.Invalid, "expected an account and a cluster").WithSource(at + "/" + part.name).WithNumber(slurmerror.MissingField)
		}
	}
	if row.Partition != "" && row.User == "" {
		return false, errs.New(errs.Invalid, "expected a user: only the association of a user can be limited to a partition").
			WithSource(at + "/partition").WithNumber(slurmerror.InvalidPartition)
	}
	if skipDeleted(tx, row.Flags, recordDeleted, at) {
		return false, nil
	}
	if row.User != "" && row.ParentAccount != "" {
		if !model.SameName(row.ParentAccount, row.Account) {
			tx.call.Warn(at+"/parent_account", "has no effect: the association of a user is always below that of its account")
		}
		row.ParentAccount = ""
	}
	if tx.isPlanned(row.Cluster) {
		return false, checkPlanned(tx, row, at)
	}
	var err error
	if row.Cluster, err = tx.storedCluster(row.Cluster); err != nil {
		return false, err
	}
	// In a filter, an empty list matches any user or partition. A list with an
	// empty name matches only associations without a user or partition.
	filter := model.AssocFilter{Accounts: []string{row.Account}, Clusters: []string{row.Cluster}, Users: []string{row.User},
		Partitions: []string{row.Partition}, Flags: model.AssocRawQOS | model.AssocWithoutParentLimits}
	old, err := findOld[model.Association](tx, filter)
	if err != nil {
		return false, err
	}
	if old == nil {
		if err := checkNew(at, "user", row.User, "partition", row.Partition); err != nil {
			return false, err
		}
	}
	if old != nil && row.Number != 0 && row.Number != old.ID {
		tx.call.Warn(at+"/id", "has no effect: this association has the number %d", old.ID)
	}
	if err := checkReferences(tx, row.Association, old, at); err != nil {
		return false, err
	}
	if row.User == "" && row.IsDefault.Set {
		if old == nil || old.IsDefault.Or(0) == 0 { // slurmdbd shows accounts that sacctmgr has made as defaults
			tx.call.Warn(at+"/is_default", "has no effect: only the association of a user can be the default")
		}
		row.IsDefault = model.Opt[uint16]{}
	}
	record := *row.Association
	if err := fillAssociation(tx, row, &record, old, at); err != nil {
		return false, err
	}
	if old == nil {
		if tx.copies {
			if err := keepInheritedOfNew(tx, &record, at); err != nil {
				return false, err
			}
		}
		return true, add[model.Association](tx, record, filter, at)
	}
	record.Account, record.Cluster, record.User, record.Partition = "", "", "", ""
	if !record.Comment.Changes(old.Comment) {
		record.Comment = ""
	}
	if model.SameName(record.ParentAccount, old.ParentAccount) {
		record.ParentAccount = ""
	}
	narrowAssociation(&record, old)
	if err := keepInheritedOf(tx, &record, old, filter, at); err != nil {
		return false, err
	}
	if reflect.DeepEqual(record, model.BlankAssociation()) {
		return false, nil
	}
	filter.Flags = 0
	return modifyRecords(tx, model.Modify[model.Association]{Filter: filter, Record: record}, at)
}

// nameAssociation sets the names in row to those of the existing association
// with its number. Each cluster has numbers of its own: without a cluster in
// the request, it is the gateway's cluster.
func nameAssociation(tx *transaction, row *api.AssociationRow, at string) error {
	filter := model.AssocFilter{IDs: []string{strconv.FormatUint(uint64(row.Number), 10)}}
	cluster, err := tx.storedCluster(cmp.Or(row.Cluster, tx.h.Cluster))
	if err != nil {
		return err
	}
	if cluster != "" {
		filter.Clusters = []string{cluster}
	}
	found, err := findOld[model.Association](tx, filter)
	switch {
	case err != nil:
		return err
	case found == nil, row.User != "" && !model.SameName(row.User, found.User), row.Partition != "" && row.Partition != found.Partition:
		return errs.New(errs.NotFound, "there is no association with the number %d and these names", row.Number).
			WithSource(at + "/id").WithNumber(slurmerror.InvalidAssociation)
	}
	row.Account, row.Cluster, row.User, row.Partition = found.Account, found.Cluster, found.User, found.Partition
	return nil
}

// checkReferences returns an error if the association a refers to a record that
// does not exist, or would be below itself. It spells the names in a as they are
// stored. Without this check, the daemon would create the association anyway, or
// create nothing and report success.
// The argument old is the existing association, or nil.
func checkReferences(tx *transaction, a, old *model.Association, at string) (err error) {
	if old == nil {
		if a.Cluster, err = existingCluster(tx, a.Cluster, at+"/cluster"); err != nil {
			return err
		}
		if a.Account, err = existingAccount(tx, a.Account, at+"/account"); err != nil {
			return err
		}
	}
	if old == nil && a.User != "" {
		if a.User, err = userOfNew(tx, a.User, at+"/user"); err != nil {
			return err
		}
		return checkInCluster(tx, a.Account, a.Cluster, slurmerror.InvalidAccount, at+"/account")
	}
	if a.ParentAccount == "" || old != nil && model.SameName(a.ParentAccount, old.ParentAccount) {
		return nil
	}
	return checkParent(tx, a, at+"/parent_account")
}

// checkParent returns an error if the parent account of the association a does
// not exist in the cluster, or is the account of a or below it. It spells the
// parent account as it is stored.
func checkParent(e model.Editor, a *model.Association, source string) error {
	for parent, depth := a.ParentAccount, 0; parent != ""; depth++ {
		if model.SameName(parent, a.Account) || depth > maxDepth {
			return errs.New(errs.Invalid, "account %q can't be below %q: that is the same account, or below it",
				schema.Shorten(a.Account), schema.Shorten(a.ParentAccount)).WithSource(source).WithNumber(slurmerror.InvalidParent)
		}
		above, err := ownAssociation(e, parent, a.Cluster)
		switch {
		case err != nil:
			return err
		case above == nil:
			return notInCluster(parent, a.Cluster, slurmerror.InvalidParent, source)
		case depth == 0:
			a.ParentAccount = above.Account
		}
		parent = above.ParentAccount
	}
	return nil
}

// maxDepth is the maximum depth of the tree of accounts. Slurm has no limit.
const maxDepth = 1000

// ownAssociation returns the association of an account itself in a cluster, or
// nil if there is none.
func ownAssociation(e model.Editor, account, cluster string) (*model.Association, error) {
	return findOne[model.Association](e, model.AssocFilter{Accounts: []string{account}, Clusters: []string{cluster}, Users: []string{""}})
}

// fillAssociation resolves the names in row to ids, and sets the record's
// fields to these ids.
func fillAssociation(tx *transaction, row *api.AssociationRow, record, old *model.Association, at string) error {
	if len(row.Limits) == 0 && row.DefaultQOS == "" && row.QOS == nil {
		return nil
	}
	r, err := tx.h.namesFrom(tx.List, model.QOSFilter{})
	if err != nil {
		return err
	}
	if err := api.SetLimits(r, record, old, row.Limits, tx.call.Lenient(api.LimitsReplaced)); err != nil {
		return errs.New(errs.Invalid, "%v", err).WithSource(at).WithNumber(slurmerror.InvalidTRES)
	}
	switch {
	case row.DefaultQOS == model.Emptied:
		if old != nil && old.DefaultQOSID != 0 {
			record.DefaultQOSID = noDefaultQOS
		}
	case row.DefaultQOS != "":
		id, err := r.QOSNumber(row.DefaultQOS.String())
		if err != nil {
			return errs.New(errs.Invalid, "%v", err).WithSource(at + "/default/qos").WithNumber(slurmerror.InvalidQOS)
		}
		record.DefaultQOSID = id
	}
	if row.QOS == nil {
		return nil
	}
	ids, err := r.QOSNumbers(*row.QOS)
	if err != nil {
		return errs.New(errs.Invalid, "%v", err).WithSource(at + "/qos").WithNumber(slurmerror.InvalidQOS)
	}
	switch {
	case len(ids) > 0 && (old == nil || !sameIDs(ids, old.QOSIDs)):
		record.QOSIDs = ids
	case len(ids) == 0 && old != nil && len(old.QOSIDs) > 0:
		record.QOSIDs = []string{""} // removes all; an empty list would leave them unchanged
	}
	return nil
}

// noDefaultQOS is the number that removes the default QOS of an association.
const noDefaultQOS = math.MaxUint32

// selectsAssociations reports whether a filter has a condition. Without one, it
// would select all associations.
func selectsAssociations(f *model.AssocFilter) bool {
	for _, list := range [][]string{
		f.Accounts, f.Clusters, f.DefaultQOSIDs, f.IDs, f.Partitions, f.ParentAccounts, f.QOSIDs, f.Users,
	} {
		if len(list) > 0 {
			return true
		}
	}
	return false
}

func (h *handler) deleteAssociations(c *rest.Call, p *api.AssociationParams) error {
	return h.removeAssociations(c, p, nil)
}

func (h *handler) deleteAssociation(c *rest.Call, p *api.AssociationParams) error {
	return h.removeAssociations(c, p, func(names []string) error {
		if len(names) < 2 {
			return nil
		}
		return errs.New(errs.Invalid, "the parameters select %d associations, but this operation removes only one: nothing was removed", len(names)).
			WithHint("name the association's account, cluster, user and partition, or use associations/").WithNumber(slurmerror.AmbiguousModify)
	})
}

// checkCoordinates returns an error if the user who sent the request coordinates
// accounts, but not those of all associations that the filter selects. slurmdbd
// removes none of them then, and answers as if its database had failed.
func checkCoordinates(tx *transaction, filter model.AssocFilter) error {
	noLevel, err := hasNoLevel(tx)
	if err != nil || !noLevel {
		return err
	}
	client, err := clientRecord(tx)
	if err != nil || client == nil || len(client.Coordinates) == 0 {
		return err // slurmdbd refuses with a reason
	}
	found := false
	err = tx.List(model.List(filter, func(a *model.Association) error {
		found = true
		if !slices.ContainsFunc(client.Coordinates, func(c model.Coordinator) bool { return model.SameName(c.Name, a.Account) }) {
			return errs.New(errs.Denied, "you do not coordinate account %s: nothing was removed", a.Account).WithNumber(slurmerror.AccessDenied)
		}
		return nil
	}))
	if err == nil && !found {
		err = errs.New(errs.NotFound, "there is no such record")
	}
	return err
}

func (h *handler) removeAssociations(c *rest.Call, p *api.AssociationParams, check func([]string) error) error {
	filter := p.AssocFilter
	if !selectsAssociations(&filter) {
		return errs.New(errs.Invalid, "remove associations: without a parameter that selects some, all would be removed").WithSource("query").
			WithHint("give at least one of account, cluster, default_qos, id, parent_account, partition, qos and user")
	}
	filter.Flags &= model.AssocOnlyDefaults | model.AssocSubAccounts
	names, err := h.removeRecords(c, "association", c.Request().URL.RawQuery, "query", func(tx *transaction) (any, error) {
		r, err := h.namesFrom(tx.List, model.QOSFilter{})
		if err != nil {
			return nil, err
		}
		if filter.Clusters, err = h.spellClusters(c, p.Clusters); err != nil {
			return nil, err
		}
		if filter.DefaultQOSIDs, err = qosNumbers(r, p.DefaultQOSIDs, "default_qos"); err != nil {
			return nil, err
		}
		if filter.QOSIDs, err = qosNumbers(r, p.QOSIDs, "qos"); err != nil {
			return nil, err
		}
		return model.Remove[model.Association]{Filter: filter}, checkCoordinates(tx, filter)
	}, check)
	return h.answerRemoval(c, api.AssociationsRemoved, names, err)
}

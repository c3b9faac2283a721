package handlers

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

func (h *handler) getWCKeys(c *rest.Call, p *api.WCKeysParams) error {
	filter := p.WCKeyFilter
	var err error
	if filter.Clusters, err = h.spellClusters(c, filter.Clusters); err != nil {
		return err
	}
	usagePeriod(c, &filter.UsageStart, &filter.UsageEnd)
	return h.sendWCKeys(c, recordsOf[model.WCKey](h, c, filter))
}

func (h *handler) sendWCKeys(c *rest.Call, list schema.Stream[model.WCKey]) error {
	body := api.WCKeysAnswer{Envelope: c.Envelope()}
	body.WCKeys = rest.Paged(c, &body.Envelope, func(k *model.WCKey) string { return k.Cluster + "/" + numberKey(uint64(k.ID)) }, list)
	return rest.Send(c, http.StatusOK, api.WCKeys, &body)
}

// getWCKey returns the workload keys that have the given name or id.
func (h *handler) getWCKey(c *rest.Call, p *api.WCKeyParams) error {
	var found []model.WCKey
	for _, filter := range wckeyFilters(p.Name) {
		err := recordsOf[model.WCKey](h, c, filter)(func(k *model.WCKey) error { found = append(found, *k); return nil })
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return h.sendWCKeys(c, streamOf(found))
		}
	}
	return errs.New(errs.NotFound, "there is no workload key %q", p.Name)
}

// wckeyFilters returns filters for workload keys with the given name. If the
// name is a number, the second filter is for the key with this id.
func wckeyFilters(name string) []model.WCKeyFilter {
	filters := []model.WCKeyFilter{{Names: []string{name}}}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		filters = append(filters, model.WCKeyFilter{IDs: []string{strconv.FormatUint(n, 10)}})
	}
	return filters
}

func (h *handler) postWCKeys(c *rest.Call, _ *api.PostWCKeysParams) error {
	body, err := rest.ReadBody(c, api.WCKeysBody)
	if err != nil {
		return err
	}
	return h.answerEdit(c, editEach(h, c, wckeyKind, body.Records))
}

var wckeyKind = kind[model.WCKey]{list: "wckeys", noun: "workload key", name: wckeyName, put: addWCKey}

func wckeyName(k *model.WCKey) string { return k.Name + "/" + k.Cluster + "/" + k.User }

// onlyWCKey returns a filter that selects the key k and no other.
func onlyWCKey(k *model.WCKey) model.WCKeyFilter {
	return model.WCKeyFilter{Names: []string{k.Name}, Clusters: []string{k.Cluster}, Users: []string{k.User}}
}

// ownWCKey reports whether slurmdbd makes the keys with this name itself, for jobs
// without a key: it puts a * before the name of the default key, if there is one.
// Answers have such keys, so bodies that are copies of answers have them, too.
func ownWCKey(name string) bool { return name == "" || name[0] == '*' }

// skipOwnWCKey reports whether k is such a key of a user, and must therefore be
// skipped. If so, it adds a warning.
func skipOwnWCKey(tx *transaction, k *model.WCKey, user, at string) bool {
	if !ownWCKey(k.Name) || k.Cluster == "" || user == "" {
		return false
	}
	tx.call.Warn(at, "the accounting daemon itself makes the workload key %q, ignored", k.Name)
	return true
}

// addWCKey creates a workload key if it does not exist.
func addWCKey(tx *transaction, k *model.WCKey, at string) (bool, error) {
	if skipDeleted(tx, k.Flags, recordDeleted, at) || skipOwnWCKey(tx, k, k.User, at) {
		return false, nil
	}
	for _, part := range []struct{ name, value string }{{"name", k.Name}, {"cluster", k.Cluster}, {"user", k.User}} {
		if part.value == "" {
			return false, errs.New(errs.Invalid, "expected a name, a cluster and a user").WithSource(at + "/" + part.name).WithNumber(slurmerror.MissingField)
		}
	}
	if tx.isPlanned(k.Cluster) {
		_, err := userOfNew(tx, k.User, at+"/user")
		return false, err
	}
	var err error
	if k.Cluster, err = tx.storedCluster(k.Cluster); err != nil {
		return false, err
	}
	old, err := findOld[model.WCKey](tx, onlyWCKey(k))
	if err != nil {
		return false, err
	}
	if old != nil {
		tx.call.Warn(at, "workload key %s exists already and was not changed", wckeyName(k))
		return false, nil
	}
	if err := checkNew(at, "name", k.Name, "user", k.User); err != nil {
		return false, err
	}
	if _, err := existingCluster(tx, k.Cluster, at+"/cluster"); err != nil {
		return false, err
	}
	if k.User, err = userOfNew(tx, k.User, at+"/user"); err != nil {
		return false, err
	}
	if k.Name, err = tx.storedWCKey(k.Name); err != nil {
		return false, err
	}
	return true, add[model.WCKey](tx, *k, onlyWCKey(k), at)
}

// deleteWCKey removes one workload key, or in Slurm's spelling all keys with a
// name. Each request to the daemon always
// contains the key's user and cluster. If it contained only the name, the
// daemon would remove this key for all users on all clusters.
func (h *handler) deleteWCKey(c *rest.Call, p *api.WCKeyParams) error {
	const kind, source = "workload key", rest.InPath + "id"
	names, err := h.edit(c, p.Name, func(tx *transaction) (names []string, err error) {
		defer func() { err = allowMissing(c, err, kind, p.Name, source) }()
		var found []model.WCKey
		for _, filter := range wckeyFilters(p.Name) {
			err := tx.List(model.List(filter, func(k *model.WCKey) error { found = append(found, *k); return nil }))
			if err != nil {
				return nil, err
			}
			if len(found) > 0 {
				break
			}
		}
		switch len(found) {
		case 0:
			return nil, errs.New(errs.NotFound, "there is no such record")
		case 1:
			return tx.Change(model.Remove[model.WCKey]{Filter: onlyWCKey(&found[0])})
		}
		if !c.Lenient(api.KeysOfSeveralUsers) {
			return nil, ambiguousWCKey(found)
		}
		var removed []string
		for i := range found {
			names, err := tx.Change(model.Remove[model.WCKey]{Filter: onlyWCKey(&found[i])})
			if err != nil {
				return nil, err
			}
			removed = append(removed, names...)
		}
		return removed, nil
	})
	return h.answerRemoval(c, api.WCKeysRemoved, names, annotateNamed(err, kind, p.Name, source))
}

// ambiguousWCKey returns the error for a name that several workload keys have,
// because they belong to different users or clusters.
func ambiguousWCKey(found []model.WCKey) error {
	var list []string
	for i := range found {
		list = append(list, fmt.Sprintf("%d (%s)", found[i].ID, wckeyName(&found[i])))
	}
	return errs.New(errs.Invalid, "%d workload keys match, and only one can be removed at a time: nothing was removed", len(found)).
		WithHint("use the number of one of %s", truncateList(strings.Join(list, ", "))).WithNumber(slurmerror.AmbiguousModify)
}

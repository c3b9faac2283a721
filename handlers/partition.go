package handlers

import (
	"net/http"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// getPartitions returns the partitions that the filter of the request selects,
// one at a time.
func (h *handler) getPartitions(c *rest.Call, p *api.PartitionListParams) error {
	list := h.partitionList(c, p.Query, func(partition *model.Partition) bool { return p.Match(partition.Nodes) })
	if done, err := rest.Watch(c, list); done || err != nil {
		return err
	}
	body := api.PartitionsAnswer{Envelope: c.Envelope()}
	body.Partitions = rest.Paged(c, &body.Envelope, list.Set.Key, list.Records(c, func(t model.ListTimes) { body.LastUpdate = t.LastUpdate }))
	return rest.Send(c, http.StatusOK, api.Partitions, &body)
}

func (h *handler) getPartition(c *rest.Call, p *api.PartitionParams) error {
	query := p.Or(model.ShowAll)
	query.Undated, query.Flags = c.Waits(), query.Flags&partitionFlags
	list := h.partitionList(c, query, func(partition *model.Partition) bool { return strings.EqualFold(partition.Name, p.Name) })
	if _, err := rest.Watch(c, list); err != nil {
		return err
	}
	partition, lastUpdate, err := h.Controller.Partition(c.Context(), c.Credential(), p.Name, query)
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Partitions, &api.PartitionsAnswer{
		Partitions: schema.One(partition),
		LastUpdate: lastUpdate,
		Envelope:   c.Envelope(),
	})
}

// postPartitions creates or changes partitions.
func (h *handler) postPartitions(c *rest.Call, _ *api.NoParams) error {
	const at = "#/partitions/"
	body, err := rest.ReadBody(c, api.PartitionChangesBody)
	if err != nil {
		return err
	}
	if nothingToChange(c, at, body.Partitions) {
		return rest.Send(c, http.StatusOK, api.Empty, &api.EmptyAnswer{Envelope: c.Envelope()})
	}
	names := make([]string, len(body.Partitions))
	for i := range body.Partitions {
		names[i] = body.Partitions[i].Name
	}
	if err := checkNames("partition", at, names); err != nil {
		return err
	}
	existing := map[string]model.Partition{}
	_, err = h.Controller.Partitions(c.Context(), c.Credential(), model.Query{Flags: model.ShowAll}, func(p *model.Partition) error {
		existing[p.Name] = *p
		return nil
	})
	if err != nil {
		return err
	}
	results, err := changeEach(c, "partition", at, names, func(i int) error {
		p := &body.Partitions[i]
		if p.OversubscribeIgnored() {
			c.Warn(sourceOf(at, i, "partition/oversubscribe"), "has no effect: jobs get whole nodes, see exclusive")
		}
		current, known := existing[p.Name]
		if p.DefaultTooLong(current.MaxTime) {
			return errs.New(errs.Invalid, "defaults/time exceeds the time limit of the partition").WithSource(sourceOf(at, i, "defaults/time")).
				WithHint("set maximums/time, too")
		}
		if p.PreemptGlobal && known && current.PreemptMode != model.NoVal16 {
			c.Warn(sourceOf(at, i, "preempt_mode"), "CLUSTER_GLOBAL is ignored: only the configuration can set it")
		}
		if known && current.DenyQOS == "" && p.DenyQOS == model.Emptied { // slurmctld 24.11 would show an empty DenyQos instead of AllowQos
			p.DenyQOS = ""
		}
		u := p.Update(model.Opt[uint16]{Number: current.MaxShare, Set: known})
		// "default" can always be changed. It is not a partition, but contains
		// the initial values of partitions that are configured later.
		if known || u.Name == "default" {
			if *u == (model.PartitionUpdate{Name: u.Name}) {
				if err := noChange(c, "partition", u.Name, sourceOf(at, i, "name")); err != nil {
					return err
				}
			}
			var before *model.Partition
			if known {
				before = &current
			}
			err := h.Controller.UpdatePartition(c.Context(), c.Credential(), u)
			return explainPartly(c, err, api.Partition, before, func() (*model.Partition, error) {
				now, _, err := h.Controller.Partition(c.Context(), c.Credential(), u.Name, model.Query{Flags: model.ShowAll})
				return now, err
			}, "partitions/", nil)
		}
		err := h.Controller.CreatePartition(c.Context(), c.Credential(), u)
		if err == nil {
			existing[u.Name] = model.Partition{MaxShare: u.MaxShare.Or(1), PreemptMode: u.PreemptMode.Or(model.NoVal16)}
		}
		return err
	})
	if err != nil {
		return err
	}
	return rest.Send(c, results.status(), api.Empty, &api.EmptyAnswer{Envelope: results.envelope(c)})
}

func (h *handler) deletePartition(c *rest.Call, p *api.NamedPartitionParams) error {
	return h.changeNamed(c, "partition", p.Name, rest.InPath+"partition_name", func() error {
		return h.Controller.DeletePartition(c.Context(), c.Credential(), p.Name)
	})
}

package handlers

import (
	"context"
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/feed"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// feeds are the lists of which clients can follow the changes.
type feeds struct {
	jobs         feed.Set[model.Job]
	nodes        feed.Set[nodeRecord]
	partitions   feed.Set[model.Partition]
	reservations feed.Set[model.Reservation]
}

// nodeRecord is what an answer shows of a node.
type nodeRecord struct {
	node       *model.Node
	partitions []string
}

func (h *handler) newFeeds() *feeds {
	f, shares, limit := new(feeds), feed.NewShares(), 2*h.CallTime // for its turn, and for the answer
	f.jobs = feed.Set[model.Job]{Key: jobKey, Interval: h.WatchInterval, Limit: limit, Count: h.Worker.CountWatch, Shares: shares}
	f.nodes = feed.Set[nodeRecord]{Key: func(n *nodeRecord) string { return n.node.Name }, Interval: h.WatchInterval, Limit: limit, Count: h.Worker.CountWatch, Shares: shares}
	f.partitions = feed.Set[model.Partition]{Key: func(p *model.Partition) string { return p.Name }, Interval: h.WatchInterval, Limit: limit, Count: h.Worker.CountWatch, Shares: shares}
	f.reservations = feed.Set[model.Reservation]{Key: func(r *model.Reservation) string { return r.Name }, Interval: h.WatchInterval, Limit: limit, Count: h.Worker.CountWatch, Shares: shares}
	return f
}

// watchQuery returns the query with which a feed asks, in place of a client's.
func watchQuery(q model.Query, digest *uint64) model.Query {
	q.Since, q.Undated, q.Digest = 0, true, digest
	return q
}

// watchJobs lets the request wait for changes of the jobs that match, or follow
// them. The name says which jobs match, if the path and the query do not.
func (h *handler) watchJobs(c *rest.Call, name string, match func(*model.Job) bool, sources ...feed.Source[model.Job]) (done bool, err error) {
	show, row := rest.Entries(c, "jobs", api.Job.Type()), api.JobRow{Users: h.Users}
	return rest.Watch(c, &h.feeds.jobs, rest.Watched[model.Job]{
		Name:  name,
		Match: match,
		Show: func(e schema.Encoder, j *model.Job) {
			row.Job = j
			show(e, &row)
		},
		Gone: func(e schema.Encoder, key string) {
			e.BeginObject()
			e.Key("job_id")
			id, _ := strconv.ParseInt(key, 10, 64)
			e.Int(id)
			e.EndObject()
		},
	}, sources...)
}

// listenToJob lets the request wait for changes of the records of one job that
// match, if it waits.
func (h *handler) listenToJob(c *rest.Call, p *api.JobParams, matches func(*model.Job) bool) error {
	if !c.Watches() {
		return nil
	}
	ofJob := func(j *model.Job) bool {
		return (j.StepID.JobID == p.Job.JobID || j.ArrayJobID == p.Job.JobID || j.HetJobID == p.Job.JobID) && matches(j)
	}
	_, err := h.watchJobs(c, fmt.Sprint(p.Job), ofJob, h.jobSource(c, p.Query, p.Job.JobID), h.allJobs(c, p.Query))
	return err
}

// jobSources returns the lists with the jobs that the filter selects.
func (h *handler) jobSources(c *rest.Call, p *api.JobListParams) []feed.Source[model.Job] {
	source := h.allJobs(c, p.Query)
	if id, ok := p.OneJob(); ok {
		return []feed.Source[model.Job]{h.jobSource(c, p.Query, id), source}
	}
	if user, ok := p.OneUser(); ok {
		if uid := h.userID(c, user); uid.Set {
			return []feed.Source[model.Job]{h.userJobs(c, p.Query, uid), source}
		}
	}
	return []feed.Source[model.Job]{source}
}

// allJobs is the list of all jobs.
func (h *handler) allJobs(c *rest.Call, q model.Query) feed.Source[model.Job] {
	return h.jobsSource(c, q, "all")
}

// userJobs is the list of a user's jobs.
func (h *handler) userJobs(c *rest.Call, q model.Query, user model.Opt[uint32]) feed.Source[model.Job] {
	q.User = user
	return h.jobsSource(c, q, fmt.Sprintf("user %d", user.Number))
}

func (h *handler) jobsSource(c *rest.Call, q model.Query, name string) feed.Source[model.Job] {
	cred := c.Credential()
	q.Flags, q.Without = jobFlagsOf(c, q), model.JobNodeIndexes
	return feed.Source[model.Job]{Name: fmt.Sprintf("%s %d", name, q.Flags), Whole: !q.User.Set, Read: func(ctx context.Context, each func(*model.Job, uint64) error) error {
		var digest uint64
		_, err := h.Controller.Jobs(ctx, cred, watchQuery(q, &digest), func(j *model.Job) error { return each(j, digest) })
		return err
	}}
}

// jobSource is the list of the records of one job, which is empty if there is no
// such job.
func (h *handler) jobSource(c *rest.Call, q model.Query, id uint32) feed.Source[model.Job] {
	cred := c.Credential()
	q.Flags, q.Without = jobFlagsOf(c, q), model.JobNodeIndexes
	return feed.Source[model.Job]{Name: fmt.Sprintf("job %d %d", id, q.Flags), Read: func(ctx context.Context, each func(*model.Job, uint64) error) error {
		var digest uint64
		_, err := h.Controller.Job(ctx, cred, id, watchQuery(q, &digest), func(j *model.Job) error { return each(j, digest) })
		return notFoundIsEmpty(err)
	}}
}

// nodeQuery returns the query for the nodes of an answer. If unmixed is set, the
// answer does not show nodes as MIXED. The gateway itself makes this change.
func nodeQuery(c *rest.Call, q model.Query) (_ model.Query, unmixed bool) {
	q = q.Or(defaultShowFlags | model.ShowMixed)
	unmixed = q.Flags&model.ShowMixed == 0
	q.Flags &= nodeFlags
	q.Undated = c.Waits()
	return q, unmixed
}

// watchNodes lets the request wait for changes of the nodes that match, or follow
// them.
func (h *handler) watchNodes(c *rest.Call, q model.Query, match func(*api.NodeRow) bool) (done bool, err error) {
	cred := c.Credential()
	q, unmixed := nodeQuery(c, q)
	source := feed.Source[nodeRecord]{Name: fmt.Sprintf("all %d", q.Flags), Whole: true, Read: func(ctx context.Context, each func(*nodeRecord, uint64) error) error {
		members, err := h.membership(ctx, cred, q.Flags, nil)
		if err != nil {
			return err
		}
		var digest uint64
		_, err = h.Controller.Nodes(ctx, cred, watchQuery(q, &digest), func(n *model.Node) error {
			partitions := members.partitions(n.Name)
			return each(&nodeRecord{n, partitions}, digest^maphash.String(partitionSeed, strings.Join(partitions, ",")))
		})
		return err
	}}
	row := api.NodeRow{Users: h.Users, Unmixed: unmixed}
	show := rest.Entries(c, "nodes", api.Node.Type())
	return rest.Watch(c, &h.feeds.nodes, rest.Watched[nodeRecord]{
		Name: fmt.Sprintf("unmixed %t", unmixed),
		Match: func(n *nodeRecord) bool {
			row.Node, row.Partitions = n.node, n.partitions
			return match(&row)
		},
		Show: func(e schema.Encoder, n *nodeRecord) {
			row.Node, row.Partitions = n.node, n.partitions
			show(e, &row)
		},
		Gone: goneByName,
	}, source)
}

var partitionSeed = maphash.MakeSeed()

// watchPartitions lets the request wait for changes of the partitions that match,
// or follow them.
func (h *handler) watchPartitions(c *rest.Call, q model.Query, match func(*model.Partition) bool) (done bool, err error) {
	cred := c.Credential()
	source := feed.Source[model.Partition]{Name: fmt.Sprintf("all %d", q.Flags), Whole: true, Read: func(ctx context.Context, each func(*model.Partition, uint64) error) error {
		var digest uint64
		_, err := h.Controller.Partitions(ctx, cred, watchQuery(q, &digest), func(p *model.Partition) error { return each(p, digest) })
		return err
	}}
	return rest.Watch(c, &h.feeds.partitions,
		rest.Watched[model.Partition]{Match: match, Show: rest.Entries(c, "partitions", api.Partition.Type()), Gone: goneByName}, source)
}

// watchReservations lets the request wait for changes of the reservations that
// match, or follow them.
func (h *handler) watchReservations(c *rest.Call, match func(*model.Reservation) bool) (done bool, err error) {
	cred := c.Credential()
	source := feed.Source[model.Reservation]{Name: "all", Whole: true, Read: func(ctx context.Context, each func(*model.Reservation, uint64) error) error {
		var digest uint64
		_, err := h.Controller.Reservations(ctx, cred, watchQuery(model.Query{}, &digest), func(r *model.Reservation) error { return each(r, digest) })
		return err
	}}
	return rest.Watch(c, &h.feeds.reservations,
		rest.Watched[model.Reservation]{Match: match, Show: rest.Entries(c, "reservations", api.Reservation.Type()), Gone: goneByName}, source)
}

// goneByName writes what names a record that is identified by its name.
func goneByName(e schema.Encoder, key string) {
	e.BeginObject()
	e.Key("name")
	e.String(key)
	e.EndObject()
}

// notFoundIsEmpty returns err, or nil if it reports that something does not exist.
func notFoundIsEmpty(err error) error {
	if errs.KindOf(err) == errs.NotFound {
		return nil
	}
	return err
}

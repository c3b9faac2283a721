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

// nodeRecord is a node with its partitions.
type nodeRecord struct {
	model.Node
	partitions []string
}

func (h *handler) newFeeds() *feeds {
	f, shares := new(feeds), feed.NewShares()
	f.jobs = newFeedSet(h, shares, jobKey)
	f.nodes = newFeedSet(h, shares, func(n *nodeRecord) string { return n.Name })
	f.partitions = newFeedSet(h, shares, func(p *model.Partition) string { return p.Name })
	f.reservations = newFeedSet(h, shares, func(r *model.Reservation) string { return r.Name })
	return f
}

func newFeedSet[R any](h *handler, shares *feed.Shares, key func(*R) string) feed.Set[R] {
	const calls = 2 // for its turn, and for the answer
	return feed.Set[R]{Key: key, Interval: h.WatchInterval, Limit: calls * h.CallTime, Count: h.Worker.CountWatch, Shares: shares}
}

// jobList is what an answer shows of jobs. The name says which jobs match, if the path
// and the query do not.
func (h *handler) jobList(c *rest.Call, q model.Query, explain bool, name string, match func(*model.Job) bool, sources ...feed.Source[model.Job]) *rest.List[model.Job] {
	show, row := rest.Entries(c, "jobs", api.Job.Type()), api.JobRow{Users: h.Users, Explain: h.recordFacts(explain)}
	if !c.Shows("jobs", "job_resources") {
		q.Without |= model.JobAllocation
	}
	return &rest.List[model.Job]{
		Set: &h.feeds.jobs, Sources: sources, Query: q, Name: name,
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
	}
}

// recordsOfJob is what an answer shows of the records of one job.
func (h *handler) recordsOfJob(c *rest.Call, p *api.JobParams, matches func(*model.Job) bool) *rest.List[model.Job] {
	ofJob := func(j *model.Job) bool {
		return (j.StepID.JobID == p.Job.JobID || j.ArrayJobID == p.Job.JobID || j.HetJobID == p.Job.JobID) && matches(j)
	}
	return h.jobList(c, p.Query, p.Explain, fmt.Sprint(p.Job), ofJob, h.jobSource(c, p.Query, p.Job.JobID), h.allJobs(c, p.Query))
}

// jobSources returns the lists with the jobs that the filter selects: first the
// shortest one that the controller sends.
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
	return h.jobsSource(c, q, "all", model.Opt[uint32]{})
}

// userJobs is the list of a user's jobs.
func (h *handler) userJobs(c *rest.Call, q model.Query, user model.Opt[uint32]) feed.Source[model.Job] {
	return h.jobsSource(c, q, fmt.Sprintf("user %d", user.Number), user)
}

func (h *handler) jobsSource(c *rest.Call, q model.Query, name string, user model.Opt[uint32]) feed.Source[model.Job] {
	cred, flags := c.Credential(), jobFlagsOf(c, q)
	return feed.Source[model.Job]{Name: fmt.Sprintf("%s %d", name, flags), Whole: !user.Set, Read: func(ctx context.Context, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
		q.Flags, q.User = flags, user
		q.Without |= model.JobNodeIndexes
		return h.Controller.Jobs(ctx, cred, q, each)
	}}
}

// jobSource is the list of the records of one job, which is empty if there is no
// such job.
func (h *handler) jobSource(c *rest.Call, q model.Query, id uint32) feed.Source[model.Job] {
	cred, flags := c.Credential(), jobFlagsOf(c, q)
	return feed.Source[model.Job]{Name: fmt.Sprintf("job %d %d", id, flags), Read: func(ctx context.Context, q model.Query, each func(*model.Job) error) (model.ListTimes, error) {
		q.Flags = flags
		q.Without |= model.JobNodeIndexes
		times, err := h.Controller.Job(ctx, cred, id, q, each)
		return times, notFoundIsEmpty(err)
	}}
}

// nodeList is what an answer shows of the nodes that match. If name is set, they
// are only the node with this name.
func (h *handler) nodeList(c *rest.Call, q model.Query, name string, match func(*api.NodeRow) bool) *rest.List[nodeRecord] {
	flags, unmixed := nodeFlagsOf(q)
	sources := []feed.Source[nodeRecord]{h.allNodes(c, flags)}
	if name != "" {
		sources = []feed.Source[nodeRecord]{h.nodeSource(c, flags, name), sources[0]}
	}
	show := rest.Entries(c, "nodes", api.Node.Type())
	return &rest.List[nodeRecord]{
		Set: &h.feeds.nodes, Sources: sources, Query: q, Name: fmt.Sprintf("unmixed %t", unmixed),
		Match: func(n *nodeRecord) bool {
			row := h.nodeRow(n, unmixed)
			return match(&row)
		},
		Show: func(e schema.Encoder, n *nodeRecord) {
			row := h.nodeRow(n, unmixed)
			show(e, &row)
		},
		Gone: goneByName,
	}
}

// nodeRow returns what an answer shows of a node.
func (h *handler) nodeRow(n *nodeRecord, unmixed bool) api.NodeRow {
	return api.NodeRow{Node: &n.Node, Partitions: n.partitions, Users: h.Users, Unmixed: unmixed}
}

// nodeFlagsOf returns the flags with which the controller is asked for the nodes
// of q. If unmixed is set, the answer does not show nodes as MIXED. The gateway
// itself makes this change.
func nodeFlagsOf(q model.Query) (flags model.Show, unmixed bool) {
	flags = q.Or(defaultShowFlags | model.ShowMixed).Flags
	return flags & nodeFlags, flags&model.ShowMixed == 0
}

// allNodes is the list of all nodes.
func (h *handler) allNodes(c *rest.Call, flags model.Show) feed.Source[nodeRecord] {
	cred := c.Credential()
	return feed.Source[nodeRecord]{Name: fmt.Sprintf("all %d", flags), Whole: true, Read: func(ctx context.Context, q model.Query, each func(*nodeRecord) error) (times model.ListTimes, err error) {
		members, err := h.membership(ctx, cred, flags, nil)
		if err != nil {
			return times, err
		}
		q.Flags = flags
		var record nodeRecord
		times.LastUpdate, err = h.Controller.Nodes(ctx, cred, q, func(n *model.Node) error {
			record = nodeRecord{*n, members.partitions(n.Name)}
			mixDigest(q.Digest, record.partitions)
			return each(&record)
		})
		return times, err
	}}
}

// nodeSource is the list of the node with this name, which is empty if there is
// no such node.
func (h *handler) nodeSource(c *rest.Call, flags model.Show, name string) feed.Source[nodeRecord] {
	cred := c.Credential()
	return feed.Source[nodeRecord]{Name: fmt.Sprintf("node %s %d", name, flags), Read: func(ctx context.Context, q model.Query, each func(*nodeRecord) error) (times model.ListTimes, err error) {
		q.Flags = flags
		node, last, err := h.Controller.Node(ctx, cred, name, q)
		if times.LastUpdate = last; err != nil {
			return times, notFoundIsEmpty(err)
		}
		partitions, err := h.partitionsOf(ctx, cred, flags, node.Name)
		if err != nil {
			return times, err
		}
		mixDigest(q.Digest, partitions)
		return times, each(&nodeRecord{*node, partitions})
	}}
}

// mixDigest makes the digest of a node depend on the node's partitions.
func mixDigest(digest *uint64, partitions []string) {
	if digest != nil {
		*digest ^= maphash.String(partitionSeed, strings.Join(partitions, ","))
	}
}

var partitionSeed = maphash.MakeSeed()

// partitionList is what an answer shows of the partitions that match.
func (h *handler) partitionList(c *rest.Call, q model.Query, match func(*model.Partition) bool) *rest.List[model.Partition] {
	cred, flags := c.Credential(), q.Flags&partitionFlags
	source := feed.Source[model.Partition]{Name: fmt.Sprintf("all %d", flags), Whole: true, Read: func(ctx context.Context, q model.Query, each func(*model.Partition) error) (times model.ListTimes, err error) {
		q.Flags = flags
		times.LastUpdate, err = h.Controller.Partitions(ctx, cred, q, each)
		return times, err
	}}
	return &rest.List[model.Partition]{Set: &h.feeds.partitions, Sources: []feed.Source[model.Partition]{source}, Query: q,
		Match: match, Show: rest.Entries(c, "partitions", api.Partition.Type()), Gone: goneByName}
}

// reservationList is what an answer shows of the reservations that match.
func (h *handler) reservationList(c *rest.Call, q model.Query, match func(*model.Reservation) bool) *rest.List[model.Reservation] {
	cred := c.Credential()
	source := feed.Source[model.Reservation]{Name: "all", Whole: true, Read: func(ctx context.Context, q model.Query, each func(*model.Reservation) error) (times model.ListTimes, err error) {
		times.LastUpdate, err = h.Controller.Reservations(ctx, cred, q, each)
		return times, err
	}}
	return &rest.List[model.Reservation]{Set: &h.feeds.reservations, Sources: []feed.Source[model.Reservation]{source}, Query: q,
		Match: match, Show: rest.Entries(c, "reservations", api.Reservation.Type()), Gone: goneByName}
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

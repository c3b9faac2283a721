package handlers

import (
	"io"
	"net/url"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
	"schedrestd/metric/cluster"
	"schedrestd/metric/exposition"
	"schedrestd/model"
)

const (
	clusterMetrics = "metrics/cluster" // path of the page
	mediaText      = "text/plain"      // the media type of exposition.Media, without parameters
)

// clusterPages returns the page with the cluster's metrics, keyed by its path.
// Like other pages, it has no version and is not in the OpenAPI document. But
// it requires a credential.
func (h *handler) clusterPages() map[string]rest.Page {
	if !h.Content.Has(feature.Controller) {
		return nil
	}
	return map[string]rest.Page{clusterMetrics: {ID: clusterMetrics, Scope: scope.ComputeRead, Do: h.getClusterMetrics}}
}

// getClusterMetrics answers with metrics that it computes from the controller's
// records. It sends nothing before it has read all records: if the controller
// fails midway, the whole scrape must fail.
func (h *handler) getClusterMetrics(c *rest.Call) error {
	if err := c.Negotiate([]string{mediaText}); err != nil {
		return err
	}
	if err := c.Authenticate(); err != nil {
		return err
	}
	by, err := metricLabels(c.Request().URL.RawQuery)
	if err != nil {
		return err
	}
	counts, err := h.countCluster(c, by)
	if err != nil {
		return err
	}
	return c.SendStream(exposition.Media, func(to io.Writer) error {
		w := exposition.NewWriter(to)
		counts.Write(w)
		return w.Flush()
	})
}

// countCluster reads the controller's records, and counts each record as it
// arrives. It never keeps a whole list of nodes or jobs in memory.
func (h *handler) countCluster(c *rest.Call, by cluster.By) (*cluster.Counts, error) {
	counts := cluster.New(by)
	stats, err := h.Controller.Stats(c.Context(), c.Credential())
	if err != nil {
		return nil, err
	}
	counts.Scheduler(stats)
	members, err := h.membership(c.Context(), c.Credential(), model.ShowAll, counts.Partition)
	if err != nil {
		return nil, err
	}
	nodes := model.Query{Flags: defaultShowFlags | model.ShowMixed, Prompt: true}
	if _, err := h.Controller.Nodes(c.Context(), c.Credential(), nodes, func(n *model.Node) error {
		return counts.Node(n, members.partitions(n.Name))
	}); err != nil {
		return nil, err
	}
	jobs := model.Query{Flags: model.ShowAll, Prompt: true, Without: model.JobAllocation}
	if _, err := h.Controller.Jobs(c.Context(), c.Credential(), jobs, func(j *model.Job) error {
		user := j.UserName
		if user == "" && by.User {
			user = h.Users.User(j.UserID)
		}
		return counts.Job(j, user)
	}); err != nil {
		return nil, err
	}
	if by.User || by.Account {
		_, err = h.Controller.Shares(c.Context(), c.Credential(), nil, nil, func(_ []string, s *model.Share) error {
			return counts.Share(s)
		})
	}
	return counts, err
}

// metricLabels parses the only parameter, "by", which is a list of labels.
func metricLabels(query string) (by cluster.By, err error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return by, errs.New(errs.Malformed, "the query is malformed: %s", schema.Shorten(err.Error())).WithSource("query")
	}
	for name := range values {
		if name != "by" {
			return by, errs.New(errs.Invalid, "unknown parameter").WithSource(rest.InQuery + schema.Shorten(name)).
				WithHint("this operation takes by")
		}
	}
	for label := range strings.SplitSeq(strings.Join(values["by"], ","), ",") {
		switch label {
		case "user":
			by.User = true
		case "account":
			by.Account = true
		case "node":
			by.Node = true
		case "":
		default:
			return by, errs.New(errs.Invalid, "unknown label %q", schema.Shorten(label)).WithSource(rest.InQuery + "by").
				WithHint("the labels are user, account and node")
		}
	}
	return by, nil
}

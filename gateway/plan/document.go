package plan

import (
	"errors"
	"io"
	"log/slog"
	"strings"

	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
	"schedrestd/ipc/work"
)

// devNull is the path that stands for an empty configuration.
const devNull = "/dev/null"

// printDocument prints the OpenAPI document by running the worker's program,
// because this process does not link the API's tables.
func (o *options) printDocument(out io.Writer) error {
	cluster, err := o.documentCluster()
	if err != nil {
		return err
	}
	args, err := o.tablesArgs(cluster)
	if err != nil {
		return err
	}
	return o.runTables(args, out)
}

// documentCluster returns the configuration, which determines the names and the
// content of the document. It returns nil if there is no configuration, because
// the document can also be printed on a machine that belongs to no cluster.
func (o *options) documentCluster() (*conf.Cluster, error) {
	from, err := o.findConfiguration()
	if errs.KindOf(err) == errs.NotFound || from.path == devNull {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, _, err := newPlanner(*o, from, io.Discard).readConfiguration()
	return c, err
}

// tablesArgs returns the arguments for the worker's program (worker.Tables). If
// there is no configuration, the document contains everything that the options
// permit.
func (o *options) tablesArgs(c *conf.Cluster) ([]string, error) {
	versions, err1 := o.RequestedVersions()
	methods, err2 := o.RequestedAuth()
	content, err3 := o.RequestedContent()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	names := work.NamesSched | work.NamesSlurm
	if c != nil || o.Names != "" {
		var err error
		if names, err = o.Spelling(c); err != nil {
			return nil, err
		}
	}
	if c != nil {
		available, err := o.servedContent(c, slog.New(slog.DiscardHandler))
		if err != nil {
			return nil, err
		}
		content = feature.Content(available) // both types have the same bits; a test compares them
	}
	var parsers, auths, contents []string
	for _, p := range versions {
		parsers = append(parsers, p.Plugin())
	}
	for _, e := range feature.Auths {
		if methods.Has(e.Auth) {
			auths = append(auths, e.Name)
		}
	}
	for _, e := range feature.Contents {
		if content.Has(e.Content) {
			contents = append(contents, e.Name)
		}
	}
	args := []string{feature.TablesMode,
		"parsers=" + strings.Join(parsers, ","),
		"content=" + strings.Join(contents, ","),
		"auth=" + strings.Join(auths, ","),
		"names=" + map[work.Names]string{work.NamesSched: "sched", work.NamesSlurm: "slurm"}[names],
		"json=" + map[work.Layout]string{work.Compact: "compact", work.Pretty: "pretty"}[o.jsonLayout(c)],
	}
	if names == work.NamesSched|work.NamesSlurm {
		args[4] = "names=both"
	}
	if len(o.Setup.Statuses) > 0 {
		args = append(args, "statuses="+strings.Join(o.Setup.Statuses, ","))
	}
	return args, nil
}

package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"schedrestd/cli/rest"
	"schedrestd/internal/errs"
)

const showHint = "run schedctl show node [NAME], or show job, partition, reservation, license, qos or share"

func showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show nodes, jobs and other objects with all their fields",
		Long: `show prints a table with headings and one line for each object. With a name it prints all
fields of that object as name=value lines, named as in the REST API.`,
		Args: atMost(0, showHint),
	}
	setRun(cmd, func(*cobra.Command, []string) error {
		return usageError("missing argument: what to show").WithHint(showHint)
	})
	cmd.AddCommand(showNode(), showJob())
	for i := range shownKinds {
		cmd.AddCommand(shownKinds[i].command())
	}
	return cmd
}

// A shownKind is a kind of objects that show prints: those of a list of the API.
type shownKind struct {
	word    string // the subcommand
	plural  string // an alias
	name    string // field with the name of an object
	list    rest.Collection
	columns []recordColumn
}

var shownKinds = []shownKind{
	{"partition", "partitions", "name", rest.Collection{Path: "partitions/", Key: "partitions"}, []recordColumn{
		{"NAME", "name"}, {"STATE", "partition.state"}, {"LIMIT", "maximums.time"}, {"NODES", "nodes.configured"}, {"ACCOUNTS", "accounts.allowed"}, {"QOS", "qos.allowed"}}},
	{"reservation", "reservations", "name", rest.Collection{Path: "reservations/", Key: "reservations"}, []recordColumn{
		{"NAME", "name"}, {"START", "start_time"}, {"END", "end_time"}, {"NODES", "node_list"}, {"USERS", "users"}, {"ACCOUNTS", "accounts"}, {"FLAGS", "flags"}}},
	{"license", "licenses", "LicenseName", rest.Collection{Path: "licenses/", Key: "licenses"}, []recordColumn{
		{"NAME", "LicenseName"}, {"TOTAL", "Total"}, {"USED", "Used"}, {"FREE", "Free"}, {"RESERVED", "Reserved"}}},
	{"qos", "", "name", rest.Collection{Path: "qos/", Key: "qos", Accounting: true}, []recordColumn{
		{"NAME", "name"}, {"PRIORITY", "priority"}, {"LIMIT", "limits.max.wall_clock.per.job"}, {"FLAGS", "flags"}, {"DESCRIPTION", "description"}}},
	{"share", "shares", "name", rest.Collection{}, []recordColumn{
		{"NAME", "name"}, {"TYPE", "type"}, {"PARENT", "parent"}, {"SHARES", "shares"}, {"NORMSHARES", "shares_normalized"}, {"USAGE", "usage"}, {"EFFECTIVE", "effective_usage"}, {"FACTOR", "fairshare.factor"}}},
}

// forms has the fields whose values tables write in another form than the API, as
// Slurm's commands do. A value for which a function returns "" is not changed.
var forms = map[string]func(record, string) string{
	"start_time": formatSeconds, "end_time": formatSeconds,
	"maximums.time": formatMinutes, "time_limit": formatMinutes, "limits.max.wall_clock.per.job": formatMinutes,
	"shares": formatShares, "shares_normalized": formatFraction, "effective_usage": formatFraction,
	"fairshare.factor": func(r record, text string) string {
		if r.get("type") == "ASSOCIATION" { // only users have a factor
			return "-"
		}
		return formatFraction(r, text)
	},
}

// formatSeconds formats seconds since 1970 as a time.
func formatSeconds(_ record, text string) string {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return ""
	}
	return time.Unix(n, 0).Format("2006-01-02T15:04:05")
}

func formatMinutes(_ record, text string) string {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return ""
	}
	return formatDuration(time.Duration(n) * time.Minute)
}

func formatFraction(_ record, text string) string {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatFloat(n, 'f', 6, 64)
}

// command returns the subcommand of show.
func (k *shownKind) command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   k.word + " [NAME]",
		Short: "Show all objects of this kind, or one in detail",
		Args:  atMost(1, ""),
	}
	if k.plural != "" {
		cmd.Aliases = []string{k.plural}
	}
	o.connectFlags(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	if k.word == "partition" {
		cmd.ValidArgsFunction = o.completePartitions
	}
	return setRun(cmd, func(cmd *cobra.Command, names []string) error {
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		p, w := recordPrinter{w: cmd.OutOrStdout()}, newWanted(k.word, "schedctl show "+k.word+" lists them", names)
		t := newRecordTable(cmd.OutOrStdout(), k.columns...)
		each := func(text json.RawMessage) error {
			if len(names) == 0 {
				return t.add(text)
			}
			if r, err := recordOf(text); err != nil || !w.has(r.get(k.name)) {
				return err
			}
			return p.print(text)
		}
		if k.list.Path == "" {
			err = c.Shares(cmd.Context(), nil, each)
		} else {
			err = c.Records(cmd.Context(), k.list, each)
		}
		if err != nil || len(names) > 0 {
			return cmp.Or(err, w.check())
		}
		return t.finish(nil)
	})
}

func showNode() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "node [NAME]",
		Aliases: []string{"nodes"},
		Short:   "Show all nodes, or one node in detail",
		Args:    atMost(1, ""),
	}
	o.connectFlags(cmd)
	cmd.ValidArgsFunction = o.completeNodes
	return setRun(cmd, func(cmd *cobra.Command, args []string) error {
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		if len(args) == 1 {
			p := recordPrinter{w: cmd.OutOrStdout()}
			return c.Node(cmd.Context(), args[0], func(_ *rest.Node, text json.RawMessage) error { return p.print(text) })
		}
		t := newRecordTable(cmd.OutOrStdout(),
			recordColumn{"NAME", "name"},
			recordColumn{"STATE", "state"},
			recordColumn{"CPUS", "cpus"},
			recordColumn{"ALLOC", "alloc_cpus"},
			recordColumn{"MEMORY", "real_memory"},
			recordColumn{"FREE", "free_mem"},
			recordColumn{"REASON", "reason"},
		)
		_, err = c.Nodes(cmd.Context(), &rest.List{Fields: t.fields()}, func(_ *rest.Node, text json.RawMessage) error { return t.add(text) })
		return t.finish(err)
	})
}

func showJob() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:     "job [ID]",
		Aliases: []string{"jobs"},
		Short:   "Show all jobs, or one job in detail",
		Args:    atMost(1, ""),
	}
	o.connectFlags(cmd)
	cmd.ValidArgsFunction = o.completeJobs(&filter{all: true})
	return setRun(cmd, func(cmd *cobra.Command, ids []string) error {
		for _, id := range ids {
			if err := checkID(id); err != nil {
				return err
			}
		}
		c, err := o.dial(cmd.Context())
		if err != nil {
			return err
		}
		if len(ids) == 1 {
			p := recordPrinter{w: cmd.OutOrStdout()}
			return c.RawJob(cmd.Context(), ids[0], nil, func(_ *rest.Job, text json.RawMessage) error { return p.print(text) })
		}
		t := newRecordTable(cmd.OutOrStdout(),
			recordColumn{"ID", "job_id"},
			recordColumn{"NAME", "name"},
			recordColumn{"USER", "user_name"},
			recordColumn{"STATE", "job_state"},
			recordColumn{"CPUS", "cpus"},
			recordColumn{"LIMIT", "time_limit"},
			recordColumn{"EXIT", "exit_code.return_code"},
			recordColumn{"REASON", "state_reason"},
		)
		_, err = c.RawJobs(cmd.Context(), &rest.List{Fields: t.fields()}, func(_ *rest.Job, text json.RawMessage) error { return t.add(text) })
		return t.finish(err)
	})
}

// A recordPrinter prints records, separated by empty lines.
type recordPrinter struct {
	w       io.Writer
	printed bool
}

func (p *recordPrinter) print(object json.RawMessage) error {
	r, err := recordOf(object)
	if err != nil {
		return errs.Wrap(err, errs.BadAnswer, "read the answer")
	}
	if p.printed {
		fmt.Fprintln(p.w) // another task of an array
	}
	p.printed = true
	return r.print(p.w)
}

// A recordColumn is a column of a recordTable. It has a heading and the name of
// the field whose values are shown.
type recordColumn struct{ heading, field string }

// A recordTable prints records in columns.
type recordTable struct {
	columns []recordColumn
	w       *tabwriter.Writer
}

func newRecordTable(w io.Writer, columns ...recordColumn) *recordTable {
	t := &recordTable{columns, tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	var headings []string
	for _, c := range columns {
		headings = append(headings, c.heading)
	}
	t.row(headings)
	return t
}

// fields returns the paths of the fields that the table shows.
func (t *recordTable) fields() (paths []string) {
	for _, c := range t.columns {
		paths = append(paths, c.field)
	}
	return paths
}

// add prints an object as a line. An empty value is printed as a dash, so that
// programs can split the line at blanks.
func (t *recordTable) add(object json.RawMessage) error {
	r, err := recordOf(object)
	if err != nil {
		return errs.Wrap(err, errs.BadAnswer, "read the answer")
	}
	var cells []string
	for _, c := range t.columns {
		cell := strings.ReplaceAll(r.get(c.field), " ", "_")
		if format := forms[c.field]; format != nil {
			cell = cmp.Or(format(r, cell), cell)
		}
		cell = cmp.Or(cell, "-")
		cells = append(cells, cell)
	}
	t.row(cells)
	return nil
}

func (t *recordTable) row(cells []string) { fmt.Fprintln(t.w, strings.Join(cells, "\t")) }

// finish prints the table, unless the list could not be read.
func (t *recordTable) finish(err error) error {
	if err != nil {
		return err
	}
	return t.w.Flush()
}

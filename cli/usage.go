package cli

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"schedrestd/api"
	"schedrestd/cli/table"
	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
)

// usageUnits are the units of the amounts in tables, in seconds.
var usageUnits = map[string]float64{"seconds": 1, "minutes": 60, "hours": 3600}

// A usageRequest is the command usage with its options.
type usageRequest struct {
	options
	filter
	period
	by, unit, tres string
	keys, sizes    []string
	top            uint32
}

func usageCommand() *cobra.Command {
	var u usageRequest
	cmd := &cobra.Command{
		Use:   "usage [REPORT]",
		Short: "Report the usage of resources, as sreport does",
		Long: `usage reports how much was used of a resource. A REPORT is

  cluster       the utilization of the cluster (the default)
  accounts      each account, with its users and subaccounts
  users         each user, in each account
  associations  accounts and their users
  wckeys        workload keys, and the users of each
  qos           qualities of service, in each account
  job_sizes     groups of jobs of similar size, in each account
  top_users     the users who used most

The time begins at yesterday's midnight and ends at today's, unless --since and --until select
another; it consists of whole hours. The accounting daemon adds up the usage of an hour after its
end. If that has not reached the end of the time, the table says so.

` + timeForms + `

The table shows rounded minutes. The other formats contain the exact seconds.`,
		Example:   "  schedctl usage users --since 2026-01-01 --until 2026-02-01 --account physics\n  schedctl usage accounts --since 4w --by day --tres gres/gpu -o csv",
		Args:      atMost(1, "schedctl usage --help lists the reports"),
		ValidArgs: api.UsageReports,
	}
	u.flags(cmd)
	return setRun(cmd, u.run)
}

// flags declares the options.
func (u *usageRequest) flags(cmd *cobra.Command) {
	u.period.flags(cmd, "yesterday", "today, or now if it begins today")
	f := cmd.Flags()
	f.StringVar(&u.by, "by", "", "divide the time into `PERIODS`: hour, day or month")
	f.StringVar(&u.unit, "unit", "minutes", "`UNIT` of amounts in the table: seconds, minutes or hours")
	f.StringVar(&u.tres, "tres", "cpu", "trackable `RESOURCES`, such as cpu,gres/gpu, or all")
	f.StringSliceVar(&u.clusters, "cluster", nil, "`CLUSTERS` (default: that of the gateway)")
	accountFlag(f, &u.accounts, "", "only these `ACCOUNTS`")
	f.StringSliceVarP(&u.users, "user", "u", nil, "only these `USERS`")
	f.StringSliceVar(&u.keys, "wckey", nil, "only these workload `KEYS`, in wckeys")
	f.StringSliceVar(&u.qos, "qos", nil, "only these qualities of service, in qos")
	f.StringSliceVar(&u.sizes, "sizes", nil, "numbers of `CPUS` at which the groups of job_sizes begin (default: 50,250,500,1000)")
	f.Uint32Var(&u.top, "top", 0, "`NUMBER` of users in top_users (default: 10)")
	u.connectFlags(cmd)
	u.outputFlag(cmd, "csv")
	for name, words := range map[string][]string{"by": {"hour", "day", "month"}, "unit": {"seconds", "minutes", "hours"}, "tres": {"all", "cpu", "mem", "gres/gpu"}} {
		cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	for _, name := range []string{"user", "cluster", "account", "wckey", "qos", "sizes", "top"} {
		cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

func (u *usageRequest) run(cmd *cobra.Command, args []string) error {
	report, now := append(args, api.UsageReports[0])[0], time.Now()
	query, err := u.query(report, now)
	if err != nil {
		return err
	}
	c, err := u.dial(cmd.Context())
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	switch u.output {
	case "csv":
		err = u.writeCSV(cmd.Context(), c, query, out)
	case "table":
		return u.writeTable(cmd, c, query, now)
	default:
		d := u.document(out, "usage")
		if err = u.records(cmd.Context(), c, query, func(_ record, text json.RawMessage) error { return d.Add(text) }); err == nil {
			err = d.Close()
		}
	}
	return cmp.Or(err, c.checkNames(cmd.Context(), &u.filter))
}

// writeCSV writes the server's table.
func (u *usageRequest) writeCSV(ctx context.Context, c *connection, query url.Values, out io.Writer) error {
	w := csv.NewWriter(out)
	var names []string // of the columns
	err := c.UsageTable(ctx, query, func(row []string) error {
		for i := range row {
			if strings.ContainsFunc(row[i], unicode.IsControl) {
				row[i] = plain(row[i])
			}
		}
		if names == nil {
			names = slices.Clone(row)
		} else {
			u.seeUsage(func(name string) string {
				if i := slices.Index(names, name); i >= 0 {
					return row[i]
				}
				return ""
			})
		}
		return w.Write(row)
	})
	w.Flush()
	return cmp.Or(err, w.Error())
}

// records calls add for each record of the report.
func (u *usageRequest) records(ctx context.Context, c *connection, query url.Values, add func(record, json.RawMessage) error) error {
	return c.Usage(ctx, query, func(text json.RawMessage) error {
		r, err := recordOf(text)
		if err != nil {
			return errs.Wrap(err, errs.BadAnswer, "read the answer")
		}
		u.seeUsage(r.get)
		return add(r, text)
	})
}

// seeUsage records the names in a record, of which get returns a field.
func (u *usageRequest) seeUsage(get func(field string) string) {
	u.see(&accountKind, u.accounts, append(strings.Split(get("accounts"), ","), get("account"))...)
	u.see(&userKind, u.users, get("user"))
	u.see(&qosKind, u.qos, get("qos"))
	u.see(&clusterKind, u.clusters, get("cluster"))
}

// writeTable writes the table of the report, and notes up to when it is complete.
func (u *usageRequest) writeTable(cmd *cobra.Command, c *connection, query url.Values, now time.Time) error {
	t, end := u.table(query.Get("report")), int64(0)
	err := u.records(cmd.Context(), c, query, func(r record, _ json.RawMessage) error {
		t.add(r)
		end = max(end, int64(r.number("end")))
		return nil
	})
	if err != nil {
		return err
	}
	unknown := c.checkNames(cmd.Context(), &u.filter)
	if err := writeResult(cmd.OutOrStdout(), nil, t.Table, unknown); err != nil {
		return err
	}
	if end == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "note: nothing is recorded for this time; accounting adds up the usage of an hour after its end")
	} else if asked, _ := parseTime(cmp.Or(u.until, "today"), now); end < asked.Unix() {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: usage is rolled up to %s\n", time.Unix(end, 0).Format("2006-01-02T15:04"))
	}
	return nil
}

// query returns the parameters of the request.
func (u *usageRequest) query(report string, now time.Time) (url.Values, error) {
	if !slices.Contains(api.UsageReports, report) {
		return nil, usageError("unknown report %s", printable.Text(report)).WithHint("the reports are %s", strings.Join(api.UsageReports, ", "))
	}
	if u.by != "" && !slices.Contains([]string{"hour", "day", "month"}, u.by) {
		return nil, usageError("--by %s: no such period", printable.Text(u.by)).WithHint("use hour, day or month")
	}
	if usageUnits[u.unit] == 0 {
		return nil, usageError("--unit %s: unknown unit", printable.Text(u.unit)).WithHint("use seconds, minutes or hours")
	}
	query := listQuery(map[string][]string{"cluster": u.clusters, "account": u.accounts, "user": u.users, "wckey": u.keys, "qos": u.qos, "sizes": u.sizes})
	if err := u.addTo(query, "start", "end", now); err != nil {
		return nil, err
	}
	if midnight, _ := parseTime("today", now); u.since != "" && u.until == "" { // of this machine's time zone, not of the gateway's
		end := now
		if begin, _ := parseTime(u.since, now); begin.Before(midnight) {
			end = midnight
		}
		query.Set("end", strconv.FormatInt(end.Unix(), 10))
	}
	query.Set("report", report)
	if u.by != "" {
		query.Set("by", u.by)
	}
	if u.tres != "all" {
		query.Set("tres", u.tres)
	}
	if u.top != 0 {
		query.Set("top", strconv.FormatUint(uint64(u.top), 10))
	}
	return query, nil
}

// A usageTable is a table of the records of a report.
type usageTable struct {
	*table.Table
	fields []string
	unit   float64
}

// table returns the table of a report. It shows the periods only if there are
// several.
func (u *usageRequest) table(report string) *usageTable {
	t := &usageTable{unit: usageUnits[u.unit]}
	var headings []table.Column
	for _, name := range api.UsageFields(report) {
		if name == "end" || name == "start" && u.by == "" || name == "count" || name == "overcommitted" {
			continue
		}
		t.fields = append(t.fields, name)
		headings = append(headings, table.Column{Heading: strings.ToUpper(name), Right: !slices.Contains(usageNames, name)})
	}
	t.Table = table.New(headings...)
	return t
}

// usageNames are the fields that are no numbers.
var usageNames = []string{"cluster", "account", "user", "partition", "accounts", "wckey", "qos", "tres", "start"}

// usageCounts are the fields that are numbers of things, not amounts.
var usageCounts = []string{"min_size", "max_size", "jobs"}

// add adds a record.
func (t *usageTable) add(r record) {
	var cells []table.Cell
	for _, name := range t.fields {
		text := r.get(name)
		switch n, err := strconv.ParseUint(text, 10, 64); {
		case name == "start":
			text = formatSeconds(r, text)
		case err == nil && !slices.Contains(usageNames, name) && !slices.Contains(usageCounts, name):
			text = fmt.Sprintf("%.0f", float64(n)/t.unit)
			if t.unit == 1 {
				text = strconv.FormatUint(n, 10)
			}
		}
		cells = append(cells, textCell(text))
	}
	t.Add(cells...)
}

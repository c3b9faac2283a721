package slurm

import (
	"encoding/csv"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// usageZone is the time zone of the machine in TestUsage. It has summer time.
const usageZone = "Europe/Berlin"

// TestUsage compares each report with that of sreport, digit by digit. The usage
// is in the tables of slurmdbd, for some months in which the clocks change, with
// removed users and accounts.
func TestUsage(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("slurmdbd has other tables")
	}
	m.inZone(t, usageZone)
	db := m.makeUsage(t)
	m.signal(t, "slurmdbd", "TERM")
	m.awaitExit(t, "slurmdbd")
	m.restart(t, "slurmdbd")
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	must(t, m.install("schedctl"))
	c := &usageComparison{m: m, t: t, token: m.admin, user: "slurm"}
	for _, span := range [][2]string{
		{"2025-02-01", "2025-05-01"},                   // whole months
		{"2025-03-15", "2025-04-10"},                   // whole days
		{"2025-03-30", "2025-03-31"},                   // a day of 23 hours
		{"2025-10-26", "2025-10-27"},                   // a day of 25 hours
		{"2025-03-30T00:00:00", "2025-03-30T07:00:00"}, // hours
		{"2025-10-25T13:29:10", "2025-10-27T04:31:00"}, // not on the hour; sreport before 26.05 rounds in another way
		{"2025-10-28T11:20:00", "2025-10-28T11:40:00"}, // less than an hour
		{"2025-09-01", "2025-09-02"},                   // without usage
	} {
		c.compareAll(span[0], span[1])
	}
	c.comparePeriods("day", "2025-03-28", 5)
	c.comparePeriods("month", "2025-02-01", 3)
	c.compareHours(db)
	c.compareJobSizes("2025-10-01", "2025-10-21")
	c.compareTable("2025-03-15", "2025-04-10")
	t.Logf("%d reports with %d amounts were compared", c.reports, c.amounts)
	m.configure(t, map[string]string{"slurmdbd.conf": privateData["slurmdbd.conf"]})
	private := &usageComparison{m: m, t: t, token: m.token, user: "alice", private: true}
	private.compareAll("2025-02-01", "2025-05-01")
	t.Logf("with private data: %d reports with %d amounts", private.reports, private.amounts)
	if status, code := requestStatus(t, m.client(gatewaySocket), "/scheddb/v0.0.42/usage?report=wckeys", m.token); status != 403 {
		t.Errorf("alice asks for workload keys: status %d, %s", status, code)
	}
}

// inZone changes the time zone of the machine until the end of the test.
func (m *machine) inZone(t *testing.T, zone string) {
	t.Helper()
	link := filepath.Join(m.root, "etc/localtime")
	old, err := os.Readlink(link)
	must(t, err)
	set := func(target string) {
		must(t, os.Remove(link))
		must(t, os.Symlink(target, link))
	}
	set("/usr/share/zoneinfo/" + zone)
	t.Cleanup(func() { set(old) })
}

// makeUsage makes associations and workload keys, and writes usage and jobs into
// slurmdbd's tables.
func (m *machine) makeUsage(t *testing.T) *database {
	t.Helper()
	for _, add := range []string{
		"account closed description=x organization=x", "account leaf parent=optics description=x organization=x",
		"user carol account=leaf", "user dave account=optics", "user erin account=closed", "user bob account=physics",
		"user alice account=physics partition=debug", "user frank account=leaf partition=debug",
		"user alice wckey=spectra", "user bob wckey=spectra", "user bob wckey=other", "qos slow",
	} {
		m.run(t, "slurm", append([]string{"sacctmgr", "-i", "-Q", "add"}, strings.Fields(add)...)...)
	}
	db := m.openDatabase(t)
	// What was removed is deleted from the tables only if it is new.
	db.query("update lab_assoc_table set deleted=1 where user in ('dave', 'erin') or acct='closed'; update user_table set deleted=1 where name in ('dave', 'erin')")
	db.query("update acct_table set deleted=1 where name='closed'; update lab_wckey_table set deleted=1 where wckey_name='other'")
	db.query("create temporary table hours (t bigint primary key, d bigint, m bigint)")
	zone, err := time.LoadLocation(usageZone)
	must(t, err)
	var values []string
	for _, span := range [][2]time.Time{
		{time.Date(2025, 2, 1, 0, 0, 0, 0, zone), time.Date(2025, 5, 1, 0, 0, 0, 0, zone)},
		{time.Date(2025, 10, 20, 0, 0, 0, 0, zone), time.Date(2025, 11, 2, 5, 0, 0, 0, zone)},
	} {
		for at := span[0]; at.Before(span[1]); at = at.Add(time.Hour) {
			y, mon, d := at.Date()
			values = append(values, fmt.Sprintf("(%d,%d,%d)", at.Unix(), time.Date(y, mon, d, 0, 0, 0, 0, zone).Unix(), time.Date(y, mon, 1, 0, 0, 0, 0, zone).Unix()))
		}
	}
	db.query("insert into hours values " + strings.Join(values, ","))
	// Some amounts exceed 32 bits. Associations do not use every resource in every hour.
	const amount = "(crc32(concat_ws('/', %s)) %% 5000000) * if(t.id = 2, 4096, 1)"
	const some = "crc32(concat_ws('/', 'some', %s, t.id, h.t)) %% 3 > 0"
	const tres = "tres_table t, hours h where t.id in (1, 2, 5, 1001)"
	db.query("insert into lab_assoc_usage_hour_table (creation_time, id, id_tres, time_start, alloc_secs) select 1, a.id_assoc, t.id, h.t, " +
		fmt.Sprintf(amount, "a.id_assoc, t.id, h.t") + " from lab_assoc_table a, " + tres + " and (a.user != '' or a.acct = 'leaf') and " + fmt.Sprintf(some, "a.id_assoc"))
	db.query("insert into lab_qos_usage_hour_table (creation_time, id, id_alt, id_tres, time_start, alloc_secs) select 1, a.id_assoc, q.id, t.id, h.t, " +
		fmt.Sprintf(amount, "a.id_assoc, q.id, t.id, h.t") + " from lab_assoc_table a, qos_table q, " + tres + " and a.user != '' and q.id in (1, 2) and " + fmt.Sprintf(some, "a.id_assoc + q.id"))
	db.query("insert into lab_wckey_usage_hour_table (creation_time, id, id_tres, time_start, alloc_secs) select 1, a.id_wckey, t.id, h.t, " +
		fmt.Sprintf(amount, "'w', a.id_wckey, t.id, h.t") + " from lab_wckey_table a, " + tres)
	part := func(name string) string { return fmt.Sprintf(amount, "'"+name+"', t.id, h.t") }
	db.query("insert into lab_usage_hour_table (creation_time, id_tres, time_start, count, alloc_secs, down_secs, pdown_secs, idle_secs, plan_secs, over_secs) select 1, t.id, h.t, " +
		"400 + h.t % 7, " + strings.Join([]string{part("a"), part("d"), part("p"), part("i"), part("l"), part("o")}, ", ") + " from " + tres)
	for _, table := range []struct{ name, id, amounts string }{
		{"lab_assoc_usage", "id, id_tres", "alloc_secs"}, {"lab_qos_usage", "id, id_alt, id_tres", "alloc_secs"}, {"lab_wckey_usage", "id, id_tres", "alloc_secs"},
		{"lab_usage", "id_tres", "alloc_secs, down_secs, pdown_secs, idle_secs, plan_secs, over_secs"},
	} {
		sums := "sum(" + strings.ReplaceAll(table.amounts, ", ", "), sum(") + ")"
		columns := table.id + ", " + table.amounts
		if table.name == "lab_usage" {
			columns, sums = columns+", count", sums+", floor(avg(count))"
		}
		for _, length := range [][2]string{{"day", "d"}, {"month", "m"}} {
			db.query(fmt.Sprintf("insert into %s_%s_table (creation_time, time_start, %s) select 1, h.%s, %s, %s from %s_hour_table u join hours h on h.t = u.time_start group by h.%s, %s",
				table.name, length[0], columns, length[1], table.id, sums, table.name, length[1], table.id))
		}
		// PurgeUsageAfter= may remove the hours before the months.
		db.query(fmt.Sprintf("delete from %s_hour_table where time_start < %d", table.name, time.Date(2025, 3, 1, 0, 0, 0, 0, zone).Unix()))
	}
	db.query("create temporary table job_numbers (n int primary key)")
	values = nil
	for n := range 300 {
		values = append(values, fmt.Sprintf("(%d)", n))
	}
	db.query("insert into job_numbers values " + strings.Join(values, ","))
	start := time.Date(2025, 9, 28, 0, 0, 0, 0, zone).Unix()
	db.query(fmt.Sprintf("insert into lab_job_table (job_db_inx, mod_time, account, cpus_req, job_name, id_assoc, id_job, id_resv, id_wckey, id_user, id_group, het_job_id, het_job_offset, state_reason_prev, "+
		"nodes_alloc, nodelist, `partition`, priority, state, tres_alloc, tres_req, time_submit, time_eligible, time_start, time_end) select 100000 + n, 1, a.acct, 1, 'j', a.id_assoc, 1000 + n, 0, 0, 20001, 20001, 0, 4294967294, 0, "+
		"1, 'n01', 'debug', 1, 3, concat('1=', s.cpus, ',2=', n * 100, ',1001=', n %% 5), '', s.start, s.start, s.start, s.start + (n * 7919) %% 200000 "+
		"from (select n, %d + n * 7200 as start, elt(1 + n %% 9, 1, 49, 50, 249, 250, 499, 500, 999, 1000) as cpus from job_numbers) s join lab_assoc_table a on a.id_assoc = 3 + n %% 8", start))
	return db
}

// A usageComparison compares reports.
type usageComparison struct {
	m                *machine
	t                *testing.T
	token, user      string
	private          bool // slurmdbd shows no workload keys to the user
	reports, amounts int
}

// compareAll compares all reports about a time.
func (c *usageComparison) compareAll(start, end string) {
	c.t.Helper()
	const accountColumns, userColumns, keyColumns = "Cluster,Account,Login,TRESName,Used", "Cluster,Login,Account,TRESName,Used", "Cluster,Login,WCKey,TRESName,Used"
	const associations, users, keys = "cluster,account,user,tres,allocated", "cluster,user,account,tres,allocated", "cluster,user,wckey,tres,allocated"
	total := c.utilization(start, end)
	c.compare("cluster AccountUtilizationByUser", accountColumns, start, end, "associations", associations)
	c.compare("cluster AccountUtilizationByUser accounts=optics", accountColumns, start, end, "associations&account=optics", associations)
	c.compare("cluster UserUtilizationByAccount", userColumns, start, end, "users", users)
	c.compare("cluster UserUtilizationByAccount accounts=optics users=bob,dave", userColumns, start, end, "users&account=optics&user=bob,dave", users)
	c.compare("user TopUsage group topcount=99", userColumns, start, end, "top_users&top=99", "cluster,user,accounts,tres,allocated")
	if !c.private {
		c.compare("cluster WCKeyUtilizationByUser", keyColumns, start, end, "wckeys", keys)
		c.compare("cluster WCKeyUtilizationByUser wckeys=other", keyColumns, start, end, "wckeys&wckey=other", keys)
		c.compare("cluster WCKeyUtilizationByUser user=bob", keyColumns, start, end, "wckeys&user=bob", keys)
	}
	c.compare("cluster AccountUtilizationByQOS", "Cluster,Account,QOS,TRESName,Used", start, end, "qos", "cluster,account,qos,tres,allocated")
	c.compare("cluster AccountUtilizationByQOS qos=quick", "Cluster,Account,QOS,TRESName,Used", start, end, "qos&qos=quick", "cluster,account,qos,tres,allocated")
	if (total == 0) != (start == "2025-09-01") {
		c.t.Errorf("%s to %s: the cluster has %d rows", start, end, total)
	}
}

// usageTRES are the resources that the test compares. The tables have no usage of
// the last one.
const usageTRES = "cpu,mem,billing,gres/gpu,gres/gpu:tesla"

// sreport returns the rows of a report.
func (c *usageComparison) sreport(report, format, start, end, unit, tres string) (rows [][]string) {
	c.t.Helper()
	args := append([]string{"sreport", "-n", "-P", "-t", unit, "-T", tres}, strings.Fields(report)...)
	if c.m.release == "24.11" && strings.HasPrefix(start, "2025-10-25T") {
		start, end = "2025-10-25T13:00:00", "2025-10-27T05:00:00"
	}
	args = append(args, "start="+start, "end="+end)
	if format != "" {
		args = append(args, "format="+format)
	}
	for line := range strings.Lines(c.m.run(c.t, c.user, args...)) {
		rows = append(rows, strings.Split(strings.TrimRight(line, "\n"), "|"))
	}
	c.reports++
	return rows
}

// usage returns the columns of our report.
func (c *usageComparison) usage(report, columns, start, end string) (rows [][]string) {
	c.t.Helper()
	path := "/scheddb/v0.0.42/usage?tres=" + usageTRES + "&start=" + url.QueryEscape(start) + "&end=" + url.QueryEscape(end) + "&report=" + report + "&fields=" + columns
	answer, err := sendRequest(c.m.client(gatewaySocket), "GET", path, "", "X-SCHED-USER-TOKEN: "+c.token, "Accept: text/csv")
	must(c.t, err)
	all, err := csv.NewReader(strings.NewReader(string(answer.body))).ReadAll()
	if answer.status != 200 || err != nil || len(all) == 0 {
		c.t.Fatalf("%s: status %d, %v: %s", path, answer.status, err, answer.body)
	}
	for _, row := range all[1:] {
		var ordered []string
		for column := range strings.SplitSeq(columns, ",") {
			ordered = append(ordered, row[slices.Index(all[0], column)])
		}
		rows = append(rows, ordered)
	}
	return rows
}

// compare compares a report of usage with one of sreport. The last column is the
// amount. Rows whose amount is 0 don't count: sreport prints them for resources
// that a record has not used.
func (c *usageComparison) compare(report, format, start, end, ours, columns string) {
	c.t.Helper()
	kind, _, _ := strings.Cut(ours, "&")
	theirs := usageLines(c.sreport(report, format, start, end, "Seconds", usageTRES))
	var got map[string]uint64
	switch kind {
	case "associations":
		rows := c.usage(ours, columns+",partition", start, end)
		whole := map[string]bool{}
		for _, row := range rows {
			whole[row[1]+"/"+row[2]] = whole[row[1]+"/"+row[2]] || row[5] == ""
		}
		if c.m.release != "24.11" { // whose sreport omits associations with partitions if there is one without
			rows = slices.DeleteFunc(rows, func(row []string) bool { return row[5] != "" && whole[row[1]+"/"+row[2]] })
		}
		got = usageLines(rows)
	case "users", "top_users":
		if c.m.release == "24.11" {
			c.countOnce(theirs, start, end)
		}
		fallthrough
	default:
		got = usageLines(c.usage(ours, columns, start, end))
	}
	for _, line := range slices.Sorted(maps.Keys(theirs)) {
		if c.amounts++; got[line] != theirs[line] {
			c.t.Errorf("%s %s to %s: %s: ours %d, sreport's %d", report, start, end, line, got[line], theirs[line])
		}
		delete(got, line)
	}
	for line, amount := range got {
		c.t.Errorf("%s %s to %s: %s: ours %d, sreport has none", report, start, end, line, amount)
	}
}

// usageLines returns the amounts in the last column of rows, by their other
// columns. Equal rows count as one.
func usageLines(rows [][]string) map[string]uint64 {
	lines := map[string]uint64{}
	for _, row := range rows {
		last := min(len(row), 5) - 1
		names := strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ' ' }) // of several accounts
		slices.Sort(names)
		row[2] = strings.Join(names, ",")
		if n, err := strconv.ParseUint(row[last], 10, 64); n != 0 || err != nil {
			lines[strings.Join(row[:last], "|")] += n
		}
	}
	return lines
}

// countOnce corrects what sreport of 24.11 says about users that have, for the same
// account, associations with partitions and one without: it counts their usage
// twice.
func (c *usageComparison) countOnce(lines map[string]uint64, start, end string) {
	rows := c.usage("associations", "cluster,user,account,tres,allocated,partition", start, end)
	whole := map[string]bool{}
	for _, row := range rows {
		if row[5] == "" {
			whole[row[1]+"/"+row[2]] = true
		}
	}
	for _, row := range rows {
		line := strings.Join(row[:4], "|")
		if _, ok := lines[line]; ok && row[5] != "" && whole[row[1]+"/"+row[2]] {
			amount, err := strconv.ParseUint(row[4], 10, 64)
			must(c.t, err)
			lines[line] -= amount
		}
	}
}

// utilization compares the utilization of the cluster, in all units of sreport,
// and returns the number of rows.
func (c *usageComparison) utilization(start, end string) int {
	c.t.Helper()
	const columns = "cluster,tres,start,end,count,allocated,down,planned_down,idle,planned,overcommitted,reported"
	rows := c.usage("cluster", columns, start, end)
	for _, unit := range []string{"Seconds", "Minutes", "Hours", "Percent", "SecPer", "MinPer", "HourPer"} {
		var want [][]string
		for _, row := range rows {
			var n []uint64
			for _, cell := range row[2:] {
				v, err := strconv.ParseUint(cell, 10, 64)
				must(c.t, err)
				n = append(n, v)
			}
			line := []string{row[0], row[1], row[4]}
			for _, amount := range n[3:9] {
				line = append(line, usageText(unit, amount, n[9]))
			}
			want = append(want, append(line, usageText(unit, n[9], (n[1]-n[0])*n[2])))
			c.amounts += len(line) - 1
		}
		theirs := c.sreport("cluster utilization", "Cluster,TRESName,TRESCount,Allocated,Down,PlannedDown,Idle,Planned,Over,Reported", start, end, unit, usageTRES)
		if diff := cmp.Diff(theirs, want); diff != "" {
			c.t.Errorf("utilization from %s to %s in %s (theirs -, ours +):\n%s", start, end, unit, diff)
		}
	}
	return len(rows)
}

// usageText formats an amount of seconds as sreport does.
func usageText(unit string, amount, total uint64) string {
	seconds, percent := float64(amount), float64(amount)/float64(max(1, total))*100
	text := map[byte]string{'S': strconv.FormatUint(amount, 10), 'M': fmt.Sprintf("%.0f", seconds/60), 'H': fmt.Sprintf("%.0f", seconds/3600)}[unit[0]]
	switch {
	case unit == "Percent":
		return fmt.Sprintf("%.2f%%", percent)
	case strings.HasSuffix(unit, "Per"):
		return fmt.Sprintf("%s(%.2f%%)", text, percent)
	}
	return text
}

// comparePeriods compares each of the periods of a report with a report of sreport
// about that period alone.
func (c *usageComparison) comparePeriods(by, first string, n int) {
	c.t.Helper()
	zone, err := time.LoadLocation(usageZone)
	must(c.t, err)
	starts := []time.Time{}
	at, err := time.ParseInLocation(time.DateOnly, first, zone)
	must(c.t, err)
	for range n + 1 {
		starts = append(starts, at)
		if by == "month" {
			at = at.AddDate(0, 1, 0)
		} else {
			at = at.AddDate(0, 0, 1)
		}
	}
	for _, tt := range []struct{ ours, report, format, columns string }{
		{"cluster", "cluster utilization", "Cluster,TRESName,Reported", "start,end,cluster,tres,reported"},
		{"accounts", "cluster AccountUtilizationByUser", "Cluster,Account,Login,TRESName,Used", "start,end,cluster,account,tres,allocated"},
	} {
		rows := c.usage(tt.ours+"&by="+by, tt.columns, first, starts[n].Format(time.DateOnly))
		var want [][]string
		for i := range n {
			for _, row := range c.sreport(tt.report, tt.format, starts[i].Format(time.DateOnly), starts[i+1].Format(time.DateOnly), "Seconds", usageTRES) {
				if len(row) == 5 {
					if row[2] != "" {
						continue
					}
					row = slices.Delete(row, 2, 3)
				}
				if row[len(row)-1] != "0" {
					want = append(want, append([]string{fmt.Sprint(starts[i].Unix()), fmt.Sprint(starts[i+1].Unix())}, row...))
					c.amounts++
				}
			}
		}
		slices.SortFunc(rows, slices.Compare)
		slices.SortFunc(want, slices.Compare)
		if diff := cmp.Diff(want, rows); diff != "" {
			c.t.Errorf("%s by %s (theirs -, ours +):\n%s", tt.ours, by, diff)
		}
	}
}

// compareHours compares the hours of two days with the database, because sreport
// can't name an hour that occurs twice, and checks up to when usage is rolled up.
func (c *usageComparison) compareHours(db *database) {
	c.t.Helper()
	for _, span := range [][2]string{{"2025-10-25", "2025-10-27"}, {"2025-03-30", "2025-03-31"}, {"2025-11-01", "2025-11-03"}} {
		rows := c.usage("cluster&by=hour", "start,end,allocated,tres", span[0], span[1])
		var got []string
		for _, row := range rows {
			if row[3] == "cpu" {
				got = append(got, strings.Join(row[:3], "\t"))
			}
		}
		zone, err := time.LoadLocation(usageZone)
		must(c.t, err)
		start, _ := time.ParseInLocation(time.DateOnly, span[0], zone)
		end, _ := time.ParseInLocation(time.DateOnly, span[1], zone)
		want := db.query(fmt.Sprintf("select time_start, time_start + 3600, alloc_secs from lab_usage_hour_table where id_tres = 1 and time_start >= %d and time_start < %d order by time_start", start.Unix(), end.Unix()))
		hours := map[string]int{"2025-10-25": 49, "2025-03-30": 23, "2025-11-01": 29}[span[0]]
		if diff := cmp.Diff(want, got); diff != "" || len(got) != hours {
			c.t.Errorf("%v: %d hours, want %d (database -, ours +):\n%s", span, len(got), hours, diff)
		}
		c.amounts += len(got)
	}
	const until = 1762056000 // 2025-11-02 05:00 in Berlin
	answer, err := sendRequest(c.m.client(gatewaySocket), "GET", "/scheddb/v0.0.42/usage?report=accounts&account=physics&tres=cpu&start=2025-11-01T00:00&end=2025-11-02T08:00", "", "X-SCHED-USER-TOKEN: "+c.token)
	must(c.t, err)
	for _, want := range []string{fmt.Sprintf(`"end":%d,`, until), fmt.Sprintf(`"rolled_up":[{"cluster":"lab","until":%d}]`, until)} {
		if !strings.Contains(string(answer.body), want) {
			c.t.Errorf("no %s in %s", want, answer.body)
		}
	}
}

// compareJobSizes compares the sizes of jobs: their usage, and their number.
func (c *usageComparison) compareJobSizes(start, end string) {
	c.t.Helper()
	groups := map[string]int{"0": 0, "50": 1, "250": 2, "500": 3, "1000": 4}
	for _, tres := range []string{"cpu", "gres/gpu"} {
		ours, ourJobs := map[string][]string{}, map[string][]string{}
		for _, row := range c.usage("job_sizes", "cluster,account,min_size,tres,allocated,jobs", start, end) {
			if row[3] != tres {
				continue
			}
			key := row[0] + "|" + row[1]
			if ours[key] == nil {
				ours[key], ourJobs[key] = []string{"0", "0", "0", "0", "0"}, []string{"0", "0", "0", "0", "0"}
			}
			ours[key][groups[row[2]]], ourJobs[key][groups[row[2]]] = row[4], row[5]
		}
		compare := func(kind string, got map[string][]string, options string) {
			theirs := map[string][]string{}
			for _, row := range c.sreport("job SizesByAccount FlatView"+options, "", start, end, "Seconds", tres) {
				theirs[row[0]+"|"+row[1]] = row[2:7]
				c.amounts += 5
			}
			if diff := cmp.Diff(theirs, got); diff != "" || len(got) < 4 {
				c.t.Errorf("%s of %s of %d accounts, by job size (theirs -, ours +):\n%s", kind, tres, len(got), diff)
			}
		}
		compare("usage", ours, "")
		if tres == "cpu" {
			compare("jobs", ourJobs, " PrintJobCount")
		}
	}
}

// compareTable compares the table of schedctl with sreport's, in its default unit.
func (c *usageComparison) compareTable(start, end string) {
	c.t.Helper()
	out := c.m.run(c.t, "slurm", "env", "SLURM_JWT="+c.token, "SCHED_URL=unix:"+gatewaySocket, "SCHED_SERVER_USER=nobody",
		"/opt/gateway/schedctl", "usage", "accounts", "--since", start, "--until", end, "--tres", "cpu,mem")
	var got, want []string
	for line := range strings.Lines(out) {
		got = append(got, strings.Join(strings.Fields(line), "|"))
	}
	for _, row := range c.sreport("cluster AccountUtilizationByUser", "Cluster,Account,Login,TRESName,Used", start, end, "Minutes", "cpu,mem") {
		if row[2] == "" {
			want = append(want, strings.Join(slices.Delete(row, 2, 3), "|"))
			c.amounts++
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(append([]string{"CLUSTER|ACCOUNT|TRES|ALLOCATED"}, want...), got); diff != "" || len(want) < 10 {
		c.t.Errorf("table of schedctl (theirs -, ours +):\n%s", diff)
	}
}

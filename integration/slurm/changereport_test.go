package slurm

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/slurm/variant"
)

// changeRow is a row of changeTable. It permits differences between the effects
// of the same request through the two gateways.
type changeRow struct {
	line               int
	releases, versions string
	operation          *regexp.Regexp
	field, except      *regexp.Regexp // except: fields that the row does not cover, even together with another one; nil for none
	forms, differences *regexp.Regexp
	why                string
	times              int
}

type changeRows []*changeRow

// readChangeRows reads such a table.
func readChangeRows(t *testing.T, file string) (list changeRows) {
	t.Helper()
	for _, r := range readTable(t, file, 7) {
		cells := r.cells
		row := &changeRow{line: r.line, releases: cells[0], versions: cells[1], operation: alternatives(cells[2], "/"), forms: alternatives(cells[4], "\x00"),
			differences: alternatives(cells[5], "\x00"), why: cells[6]}
		fields, except, ok := strings.Cut(cells[3], " except ")
		if permitsAnything(fields) && permitsAnything(cells[4]) {
			t.Fatalf("%s:%d: name the fields or the forms: %s", file, r.line, row.why)
		}
		if row.field = alternatives(fields, "."); ok {
			row.except = alternatives(except, ".")
		}
		list = append(list, row)
	}
	return list
}

// permitsAnything reports whether a cell matches every field or every form. A row
// in which both cells do so would hide unknown differences.
func permitsAnything(cell string) bool {
	return slices.ContainsFunc(strings.Split(strings.Trim(cell, "`"), "; "), func(one string) bool { return strings.Trim(one, "*") == "" })
}

// alternatives returns the regular expression for several patterns with
// semicolons between them.
func alternatives(cell, separator string) *regexp.Regexp {
	var list []string
	for _, one := range strings.Split(cell, "; ") {
		list = append(list, pattern(one, separator).String())
	}
	return regexp.MustCompile(strings.Join(list, "|"))
}

// find returns the row that permits a difference of a trial, or nil. For a
// trial with two fields, a row for one of them is enough.
func (rows changeRows) find(release, version, operation string, cases []variant.Case, difference string) *changeRow {
	for _, r := range rows {
		if !listHas(r.releases, release) || !listHas(r.versions, version) || !r.operation.MatchString(operation) || !r.differences.MatchString(difference) {
			continue
		}
		if r.except != nil && slices.ContainsFunc(cases, func(c variant.Case) bool { return r.except.MatchString(c.Field) }) {
			continue
		}
		if slices.ContainsFunc(cases, func(c variant.Case) bool { return r.field.MatchString(c.Field) && r.forms.MatchString(c.Form) }) {
			r.times++
			return r
		}
	}
	return nil
}

// changeReport counts what a run compares and finds.
type changeReport struct {
	top                                             *testing.T
	requests, crashes, ended, resets, halved, alone int
	operations, fields, forms                       map[string]bool
	trials                                          int
	differences                                     int
	unexplained                                     map[string]*unexplained
	start                                           time.Time
	file                                            *os.File // for every difference; nil for none
}

func newChangeReport() *changeReport {
	r := &changeReport{operations: map[string]bool{}, fields: map[string]bool{}, forms: map[string]bool{}, unexplained: map[string]*unexplained{}, start: time.Now()}
	if name := os.Getenv("SLURM_CHANGES_OUT"); name != "" {
		r.file, _ = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	}
	return r
}

func (r *changeReport) count(tr *trial) {
	r.trials++
	r.operations[tr.target.operation()] = true
	for _, c := range tr.cases {
		r.fields[tr.target.operation()+" "+c.Field] = true
		r.forms[c.Form] = true
	}
}

// differs records a difference. It is a failure unless changeTable has a row for
// it.
func (c *changeForms) differs(tr *trial, difference string) {
	r, version, operation := c.report, c.version.String(), tr.target.operation()
	r.differences++
	var fields, forms []string
	for _, v := range tr.cases {
		fields, forms = append(fields, v.Field), append(forms, v.Form)
	}
	row := c.rows.find(c.m.release, version, operation, tr.cases, difference)
	if r.file != nil {
		line, err := json.Marshal(recordedChange{c.m.release, version, operation, tr.situation.name, fields, forms, difference, tr.requests[1], tr.statuses, tr.changed, tr.remarks, tr.values(difference)})
		must(c.t, err)
		fmt.Fprintf(r.file, "%s\n", line)
	}
	if row != nil {
		return
	}
	key := fmt.Sprintf("%s: %s: %s: %s", operation, strings.Join(fields, " + "), strings.Join(forms, " + "), difference)
	if r.unexplained[key] == nil {
		r.unexplained[key] = &unexplained{first: tr.explain(difference)}
	}
	r.unexplained[key].add(version)
}

// A recordedChange is a difference as a line of JSON in the file
// SLURM_CHANGES_OUT.
type recordedChange struct {
	Release, Version, Operation, Situation string
	Fields, Forms                          []string
	Difference                             string
	Request                                string // our gateway's
	Statuses                               [2]int
	Changed                                [2][]string
	Remarks                                [2]string
	Values                                 [2][]string
}

// TestRecordedChanges looks for the rows of differences that an earlier run has
// recorded in the files SLURM_CHANGES_RECORDED, which are separated by spaces.
// After a change of the table, this takes seconds instead of hours. The files
// must be those of whole runs, but each may contain some of the operations.
func TestRecordedChanges(t *testing.T) {
	files := strings.Fields(os.Getenv("SLURM_CHANGES_RECORDED"))
	if len(files) == 0 {
		return // for a person who changes the table
	}
	rows := readChangeRows(t, changeTable)
	releases, count, without := map[string]bool{}, 0, map[string]int{}
	for _, file := range files {
		f, err := os.Open(file)
		must(t, err)
		defer f.Close()
		for d := json.NewDecoder(f); d.More(); {
			var one recordedChange
			must(t, d.Decode(&one))
			var cases []variant.Case
			for i := range one.Fields {
				cases = append(cases, variant.Case{Field: one.Fields[i], Form: one.Forms[i]})
			}
			count++
			releases[one.Release] = true
			if rows.find(one.Release, one.Version, one.Operation, cases, one.Difference) == nil {
				text, _ := json.Marshal(one)
				if key := fmt.Sprintf("%s %q %q %s", one.Operation, one.Fields, one.Forms, one.Difference); without[key] == 0 {
					t.Errorf("no row: %s", text)
				}
				without[fmt.Sprintf("%s %q %q %s", one.Operation, one.Fields, one.Forms, one.Difference)]++
			}
		}
	}
	for _, row := range rows {
		if row.times == 0 && slices.ContainsFunc(slices.Collect(maps.Keys(releases)), func(release string) bool { return listHas(row.releases, release) }) {
			t.Errorf("%s:%d: not needed: %s", changeTable, row.line, row.why)
		}
	}
	t.Logf("%d differences, %d kinds without a row", count, len(without))
}

// values returns what the two gateways' objects show in the field that differs.
func (tr *trial) values(difference string) (list [2][]string) {
	for _, s := range tr.target.shows {
		for _, label := range []string{s.label, "gone from " + s.label} {
			field, ok := strings.CutPrefix(difference, "shows "+label+".")
			if !ok {
				continue
			}
			if strings.HasPrefix(field, "number of records") {
				return [2][]string{textsOf(tr.effects[0][label]), textsOf(tr.effects[1][label])}
			}
			for side := range 2 {
				for _, o := range tr.effects[side][label] {
					if value, ok := o[field]; ok {
						list[side] = append(list[side], value)
					} else {
						list[side] = append(list[side], "no such field: "+o.text())
					}
				}
			}
			return list
		}
	}
	for side, fields := range tr.changed { // no field differs between the gateways
		for _, field := range fields {
			list[side] = append(list[side], fmt.Sprintf("%s from %q to %q", field, valuesOf(tr.before[side], field), valuesOf(tr.effects[side], field)))
		}
	}
	return list
}

// valuesOf returns the values of a field, whose name begins with the label of a
// show.
func valuesOf(objects map[string][]shown, name string) (values []string) {
	for label, list := range objects {
		if field, ok := strings.CutPrefix(name, label+"."); ok {
			for _, o := range list {
				values = append(values, o[field])
			}
		}
	}
	return values
}

func textsOf(list []shown) (texts []string) {
	for _, o := range list {
		texts = append(texts, o.text())
	}
	return texts
}

func (tr *trial) explain(difference string) string {
	values := tr.values(difference)
	return fmt.Sprintf("%s: %.300s\n\ttheirs %d: %.300s, changes %.100q, %.300q\n\tours %d: %.300s, changes %.100q, %.300q",
		tr.situation.name, tr.requests[1], tr.statuses[0], tr.remarks[0], tr.changed[0], values[0], tr.statuses[1], tr.remarks[1], tr.changed[1], values[1])
}

// finish logs the counts, and fails the test for differences without a row. If
// all cases have run, it also fails for rows without a difference.
func (r *changeReport) finish(t *testing.T, c *changeForms) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(r.unexplained)) {
		u := r.unexplained[key]
		t.Errorf("%s, %d times, %v\n\t%s", key, u.times, u.versions, u.first)
	}
	for _, row := range c.rows {
		if row.times > 0 {
			t.Logf("%d differences: %s:%d: %s", row.times, changeTable, row.line, row.why)
		} else if c.part == 1 && listHas(row.releases, c.m.release) && len(r.operations) == len(targets)+len(deleteTargets) {
			t.Errorf("%s:%d: no longer needed with %s: %s", changeTable, row.line, c.m.release, row.why)
		}
	}
	t.Logf("Slurm %s: %d operations, %d fields, %d forms, %d cases, %d requests, %d differences, %d kinds of them without a row; slurmrestd crashed %d times, daemons ended %d times; %d cases alone, %d batches halved, %d clusters made again; %v",
		c.m.release, len(r.operations), len(r.fields), len(r.forms), r.trials, r.requests, r.differences, len(r.unexplained), r.crashes, r.ended, r.alone, r.halved, r.resets, time.Since(r.start).Round(time.Second))
}

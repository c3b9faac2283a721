package slurm

import (
	"bufio"
	"cmp"
	"io"
	"regexp"
	"strings"
	"testing"
)

// A database is a connection to the database of slurmdbd.
type database struct {
	in  io.WriteCloser
	out *bufio.Scanner
	t   *testing.T
}

func (m *machine) openDatabase(t *testing.T) *database {
	t.Helper()
	cmd := m.command(t.Context(), "root", "mariadb", "--default-character-set=utf8mb4", "--unbuffered", "-N", "-B", "slurm_acct_db")
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	d := &database{in, bufio.NewScanner(out), t}
	d.out.Buffer(nil, 1<<24)
	return d
}

// query returns the rows of a statement.
func (d *database) query(statement string) (rows []string) {
	d.t.Helper()
	if _, err := io.WriteString(d.in, statement+"; select 'END OF ROWS';\n"); err != nil {
		d.t.Fatal(err)
	}
	for d.out.Scan() {
		if d.out.Text() == "END OF ROWS" {
			return rows
		}
		rows = append(rows, d.out.Text())
	}
	d.t.Fatalf("the database ended: %v", d.out.Err())
	return nil
}

// tables returns the rows that requests can change. Quality of service is shown
// by name.
func (d *database) tables() []string {
	names := map[string]string{}
	for _, row := range d.query("select id, name from qos_table") {
		id, name, _ := strings.Cut(row, "\t")
		names[id] = name
	}
	rows := d.query(`select 'account', deleted, name, description, organization from acct_table union all select 'coordinator', deleted, acct, user, '' from acct_coord_table
		union all select 'user', deleted, name, admin_level, '' from user_table union all select 'cluster', deleted, name, '', '' from cluster_table
		union all select 'wckey', deleted, wckey_name, user, is_def from lab_wckey_table`)
	for _, row := range d.query("select 'association', deleted, acct, user, `partition`, parent_acct, is_def, shares, max_tres_pj, concat('qos ', qos, ' ', delta_qos, ' ', ifnull(def_qos_id, '')) from lab_assoc_table union all " +
		"select 'qos', deleted, name, description, '', '', '', priority, '', concat('qos ', preempt) from qos_table") {
		at := strings.LastIndex(row, "qos ")
		rows = append(rows, row[:at]+regexp.MustCompile(`\d+`).ReplaceAllStringFunc(row[at:], func(id string) string { return cmp.Or(names[id], id) }))
	}
	return rows
}

// changedRows returns the rows that are only in before or only in after.
func changedRows(before, after []string) (list []string) {
	count := map[string]int{}
	for _, row := range before {
		count[row]--
	}
	for _, row := range after {
		count[row]++
	}
	for row, n := range count {
		switch {
		case n > 0:
			list = append(list, "+ "+row)
		case n < 0:
			list = append(list, "- "+row)
		}
	}
	return list
}

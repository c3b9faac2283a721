package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestScale reads a month of recorded jobs, and makes associations with one
// request. Both must be whole, however long slurmdbd takes. SLURM_SCALE_JOBS and
// SLURM_SCALE_ASSOCIATIONS are their numbers.
func TestScale(t *testing.T) {
	number := func(variable string, otherwise int) int {
		if n, _ := strconv.Atoi(os.Getenv(variable)); n > 0 {
			return n
		}
		return otherwise
	}
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("not for this run: slurmdbd has other tables")
	}
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	token, err := m.createToken("root")
	must(t, err)
	client := m.client(gatewaySocket)
	client.Timeout = time.Hour
	send := func(method, path, body string) answer {
		t.Helper()
		start := time.Now()
		a, err := sendRequest(client, method, "/slurmdb/v0.0.42/"+path, body, "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		if a.status != http.StatusOK {
			t.Fatalf("%s %s: status %d after %s: %.2000s", method, path, a.status, time.Since(start), a.body)
		}
		t.Logf("%s %.30s: %d bytes sent, %d received in %.1f s", method, path, len(body), len(a.body), time.Since(start).Seconds())
		return a
	}
	memory := func() {
		t.Logf("most memory of each program in KiB: %s", m.run(t, "root", "sh", "-c",
			`for p in $(pgrep 'schedrestd|slurmdbd'); do awk '/^Name/ {n=$2} /VmHWM/ {print n, $2}' /proc/$p/status; done | sort -u`))
	}

	t.Run("jobs", func(t *testing.T) {
		n := number("SLURM_SCALE_JOBS", 2000)
		id := strings.TrimSpace(m.run(t, "alice", "sbatch", "--parsable", "-o", "/dev/null", "-p", "debug", "--wrap=true"))
		eventually(t, "the job is recorded", func() bool {
			return strings.TrimSpace(m.run(t, "root", "mariadb", "-N", "slurm_acct_db", "-e", "select count(*) from lab_job_table where time_end>0 and id_job="+id)) == "1"
		})
		// A job every five seconds of the last month. Each is like the one that ran.
		columns := strings.Split(strings.TrimSpace(m.run(t, "root", "mariadb", "-N", "slurm_acct_db", "-e",
			"select group_concat(column_name) from information_schema.columns where table_schema='slurm_acct_db' and table_name='lab_job_table' and column_name!='job_db_inx'")), ",")
		values := make([]string, len(columns))
		for i, name := range columns {
			values[i] = "`" + name + "`"
			switch {
			case name == "id_job":
				values[i] = "100000+seq"
			case strings.HasPrefix(name, "time_") && name != "time_suspended":
				values[i] += "-5*seq"
			}
			columns[i] = "`" + name + "`"
		}
		const portion = 20_000
		for from := 1; from <= n; from += portion {
			m.run(t, "root", "mariadb", "slurm_acct_db", "-e", fmt.Sprintf("insert into lab_job_table (%s) select %s from lab_job_table, seq_%d_to_%d where id_job=%s",
				strings.Join(columns, ","), strings.Join(values, ","), from, min(n, from+portion-1), id))
		}
		begun := time.Now().Add(-5*time.Second*time.Duration(n) - time.Hour)
		a := send("GET", fmt.Sprintf("jobs?start_time=%d&end_time=now", begun.Unix()), "")
		var shown struct {
			Jobs []struct {
				ID int `json:"job_id"`
			}
		}
		must(t, json.Unmarshal(a.body, &shown))
		seen := map[int]bool{}
		for _, j := range shown.Jobs {
			seen[j.ID] = true
		}
		if len(seen) != n+1 || len(shown.Jobs) != n+1 {
			t.Errorf("%d jobs of %d numbers, want %d", len(shown.Jobs), len(seen), n+1)
		}
		memory()
	})

	t.Run("associations", func(t *testing.T) {
		n := number("SLURM_SCALE_ASSOCIATIONS", 200)
		const users = 100
		var accounts, names, associations []string
		for i := range users {
			names = append(names, fmt.Sprintf(`{"name":"su%d","default":{"account":"sa0"}}`, i))
		}
		for i := range (n + users - 1) / users {
			accounts = append(accounts, fmt.Sprintf(`{"name":"sa%d","description":"d","organization":"o"}`, i))
			associations = append(associations, fmt.Sprintf(`{"account":"sa%d","cluster":"lab","user":""}`, i))
		}
		for i := range n {
			associations = append(associations, fmt.Sprintf(`{"account":"sa%d","cluster":"lab","user":"su%d","max":{"jobs":{"active":{"set":true,"number":%d}}}}`, i/users, i%users, i+1))
		}
		send("POST", "config", fmt.Sprintf(`{"accounts":[%s],"users":[%s],"associations":[%s]}`, strings.Join(accounts, ","), strings.Join(names, ","), strings.Join(associations, ",")))
		got := m.run(t, "root", "mariadb", "-N", "slurm_acct_db", "-e", "select count(*), count(distinct max_jobs), sum(max_jobs) from lab_assoc_table where acct like 'sa%' and user like 'su%' and deleted=0")
		if want := fmt.Sprintf("%d\t%d\t%d", n, n, n*(n+1)/2); strings.TrimSpace(got) != want {
			t.Errorf("associations, different limits and their sum: %s, want %s", got, want)
		}
		memory()
	})
}

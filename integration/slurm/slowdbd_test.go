package slurm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// lockTable locks a table of the accounting database until the function that it
// returns is called, or until the time is over.
func (m *machine) lockTable(t *testing.T, lock, limit string) (unlock func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := m.command(ctx, "root", "mariadb", "slurm_acct_db", "--unbuffered", "-e", "LOCK TABLES "+lock+"; SELECT 'locked'; DO SLEEP("+limit+")")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatalf("lock %s: %v", lock, err)
	}
	unlock = sync.OnceFunc(func() {
		m.try("root", "sh", "-c", `mariadb -Ne "SELECT CONCAT('KILL ', id, ';') FROM information_schema.processlist WHERE info LIKE 'DO SLEEP%'" | mariadb`)
		cancel()
		cmd.Wait()
	})
	t.Cleanup(unlock)
	return unlock
}

// TestSlowDatabase locks tables of the accounting database for longer than
// MessageTimeout. Queries must wait, and other users must be served meanwhile. A
// change whose client has left must be made and recorded.
func TestSlowDatabase(t *testing.T) {
	m := freshCluster(t)
	m.populate(t)
	gateway := m.startAudited(t)
	cluster := strings.TrimSuffix(m.run(t, "root", "mariadb", "-N", "slurm_acct_db", "-e", `SHOW TABLES LIKE "%\_job\_table"`), "_job_table")
	get := func(path, token string) int {
		a, err := sendRequest(m.client(gatewaySocket), "GET", path, "", "X-SLURM-USER-TOKEN: "+token)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return a.status
	}
	const jobs = "/slurmdb/v0.0.42/jobs?users=alice"
	if status := get(jobs, m.token); status != http.StatusOK {
		t.Fatalf("status %d without a lock", status)
	}
	t.Run("queries", func(t *testing.T) {
		unlock := m.lockTable(t, cluster+"_job_table WRITE", "100")
		begun := time.Now()
		var slow sync.WaitGroup
		for range 50 {
			slow.Go(func() {
				if status := get(jobs, m.token); status != http.StatusOK {
					t.Errorf("a query during the lock: status %d", status)
				}
			})
		}
		took := map[string][]time.Duration{}
		for time.Since(begun) < 18*time.Second {
			for _, path := range []string{"/slurm/v0.0.42/ping", "/slurm/v0.0.42/jobs", "/slurmdb/v0.0.42/qos"} {
				start := time.Now()
				if status := get(path, m.admin); status != http.StatusOK {
					t.Errorf("%s: status %d beside 50 slow queries", path, status)
				}
				took[path] = append(took[path], time.Since(start))
			}
			time.Sleep(50 * time.Millisecond)
		}
		for path, list := range took {
			slices.Sort(list)
			t.Logf("%s: p50 %v, p99 %v of %d", path, list[len(list)/2], list[len(list)*99/100], len(list))
		}
		unlock()
		slow.Wait()
		t.Logf("the queries were answered after %v", time.Since(begun))
	})
	t.Run("clusters", func(t *testing.T) {
		var body, names []string
		for i := range 6 {
			names = append(names, fmt.Sprint("slow", i))
			body = append(body, `{"name":"`+names[i]+`"}`)
		}
		unlock := m.lockTable(t, "cluster_table READ", "100")
		time.AfterFunc(12*time.Second, unlock)
		begun := time.Now()
		a, err := sendRequest(m.client(gatewaySocket), "POST", "/slurmdb/v0.0.42/clusters", `{"clusters":[`+strings.Join(body, ",")+`]}`, "X-SLURM-USER-TOKEN: "+m.admin)
		must(t, err)
		t.Logf("status %d after %v", a.status, time.Since(begun))
		if a.status != http.StatusOK {
			t.Errorf("status %d: %s", a.status, remarks(a.body))
		}
		if got := strings.Fields(m.run(t, "root", "sacctmgr", "-nP", "show", "cluster", strings.Join(names, ","), "format=cluster")); !slices.Equal(got, names) {
			t.Errorf("clusters %q, want %q", got, names)
		}
		m.run(t, "root", "sacctmgr", "-i", "add", "account", "afterslow", "clusters="+cluster)
	})
	t.Run("changes", func(t *testing.T) {
		unlock := m.lockTable(t, "acct_table READ", "100") // only the change waits
		c := m.client(gatewaySocket)
		c.Timeout = 3 * time.Second
		_, err := sendRequest(c, "POST", "/slurmdb/v0.0.42/accounts/", `{"accounts":[{"name":"slowone","description":"d","organization":"o"}]}`,
			"X-SLURM-USER-TOKEN: "+m.admin, "Content-Type: application/json")
		if err == nil {
			t.Fatal("answered in spite of the lock")
		}
		time.Sleep(12 * time.Second)
		unlock()
		eventually(t, "the account exists", func() bool {
			return strings.Contains(m.run(t, "root", "sacctmgr", "-nP", "show", "account", "slowone", "format=account"), "slowone")
		})
		gateway.stop(t)
		text, err := os.ReadFile(filepath.Join(m.root, auditLog))
		must(t, err)
		codes := []string{} // of the clusters and the account
		for line := range bytes.Lines(text) {
			var l struct {
				Event   string
				Gateway struct{ Ended string }
				Worker  struct{ Code string }
			}
			must(t, json.Unmarshal(line, &l))
			if l.Event != "intent" {
				codes = append(codes, l.Gateway.Ended+" "+l.Worker.Code)
			}
		}
		if want := []string{"reported ok", "reported ok"}; !slices.Equal(codes, want) {
			t.Errorf("the audit log has %q, want %q", codes, want)
		}
	})
}

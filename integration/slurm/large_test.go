package slurm

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// appendFile appends text to a file of the machine, and restores the file at the
// end of the test.
func (m *machine) appendFile(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(m.root, name)
	before, err := os.ReadFile(path)
	must(t, err)
	t.Cleanup(func() { must(t, os.WriteFile(path, before, 0)) }) // keeps owner and mode
	must(t, os.WriteFile(path, append(before[:len(before):len(before)], text...), 0))
}

// TestLargeNumbers checks jobs and users whose numbers need all 32 bits: in a
// federation the upper six bits of a job's number are those of its cluster, and
// a directory service may have such uids.
func TestLargeNumbers(t *testing.T) {
	m := freshCluster(t)
	const uid, gid = 3_000_000_001, 3_000_000_002
	m.appendFile(t, "etc/passwd", fmt.Sprintf("large:x:%d:%d::/tmp:/bin/sh\n", uid, gid))
	m.appendFile(t, "etc/group", fmt.Sprintf("large:x:%d:\n", gid))
	m.run(t, "root", "sacctmgr", "-i", "add", "user", "large", "account=physics")
	m.run(t, "root", "sacctmgr", "-i", "add", "federation", "fed", "clusters=lab")
	m.run(t, "root", "mariadb", "-e", "update slurm_acct_db.cluster_table set fed_id=60 where name='lab'")
	m.signal(t, "slurmdbd", "TERM")
	eventually(t, "slurmdbd has ended", func() bool {
		_, err := m.try("root", "pgrep", "-x", "slurmdbd")
		return err != nil
	})
	m.stopController(t)
	m.restart(t, "slurmdbd")
	m.restart(t, "slurmctld")
	eventually(t, "the controller is in the federation", func() bool {
		out, _ := m.try("root", "scontrol", "show", "federation")
		return strings.Contains(out, "ID:60")
	})
	token, err := m.createToken("large")
	must(t, err)
	d := m.gateway(t, "-u", "rest", "-g", "rest", "-a", "rest_auth/jwt")
	c := m.client(gatewaySocket)
	send := func(method, path, body string) map[string]any {
		t.Helper()
		a, err := sendRequest(c, method, path, body, "X-SLURM-USER-TOKEN: "+token)
		must(t, err)
		if a.status != http.StatusOK {
			t.Errorf("%s %s: status %d: %.500s", method, path, a.status, a.body)
		}
		var answer map[string]any
		must(t, json.Unmarshal(a.body, &answer))
		return answer
	}
	submitted := send("POST", "/slurm/v0.0.42/job/submit", `{"job":{"name":"large","hold":true,"current_working_directory":"/tmp","environment":["PATH=/bin"]},"script":"#!/bin/sh\n"}`)
	number, _ := submitted["job_id"].(float64)
	job := fmt.Sprintf("%.0f", number)
	if number < 1<<31 || m.run(t, "root", "squeue", "-h", "-o", "%i") != job {
		t.Fatalf("job %s", job)
	}
	for _, path := range []string{"/slurm/v0.0.42/job/" + job, "/slurm/v0.0.45/jobs/"} {
		jobs, _ := send("GET", path, "")["jobs"].([]any)
		if len(jobs) != 1 {
			t.Fatalf("%s: %d jobs", path, len(jobs))
		}
		shown, _ := jobs[0].(map[string]any)
		if shown["job_id"] != number || shown["user_id"] != float64(uid) || shown["group_id"] != float64(gid) || shown["user_name"] != "large" {
			t.Errorf("%s: job %v of user %v (%v), group %v", path, shown["job_id"], shown["user_id"], shown["user_name"], shown["group_id"])
		}
	}
	if m.release != "22.05" {
		states, _ := send("GET", "/slurm/v0.0.42/jobs/state/?job_id="+job, "")["jobs"].([]any)
		if len(states) != 1 {
			t.Errorf("states %v", states)
		}
	}
	send("POST", "/slurm/v0.0.42/job/"+job, `{"comment":"large"}`)
	if out := m.run(t, "root", "scontrol", "show", "job", job); !strings.Contains(out, "Comment=large") {
		t.Errorf("after a change:\n%s", out)
	}
	send("DELETE", "/slurm/v0.0.42/job/"+job, "")
	if out := m.run(t, "root", "scontrol", "show", "job", job); !strings.Contains(out, "JobState=CANCELLED") {
		t.Errorf("after a cancellation:\n%s", out)
	}
	output := "/tmp/large"
	os.Remove(filepath.Join(m.root, output))
	t.Cleanup(func() { os.Remove(filepath.Join(m.root, output)) })
	// Slurm's commands show such a uid as a negative number, and find no job with
	// such a number. So only the output shows who has run the job.
	checkOutput := func() {
		t.Helper()
		eventually(t, "the job has written its output", func() bool {
			text, _ := os.ReadFile(filepath.Join(m.root, output))
			return strings.TrimSpace(string(text)) == "large"
		})
		info, err := os.Stat(filepath.Join(m.root, output))
		must(t, err)
		if s := info.Sys().(*syscall.Stat_t); s.Uid != uid || s.Gid != gid {
			t.Errorf("the output belongs to %d:%d", s.Uid, s.Gid)
		}
	}
	ran := submitJob(t, c, output, "X-SLURM-USER-TOKEN: "+token)
	checkOutput()
	for _, user := range []string{"large", fmt.Sprint(uint32(uid))} {
		eventually(t, "accounting shows the job of "+user, func() bool {
			jobs, _ := send("GET", "/slurmdb/v0.0.42/jobs/?cluster=lab&users="+user, "")["jobs"].([]any)
			for _, j := range jobs {
				if shown, _ := j.(map[string]any); fmt.Sprintf("%.0f", shown["job_id"]) == ran && shown["user"] == "large" {
					return true
				}
			}
			return false
		})
	}
	d.stop(t)
	m.start(t, "gateway", gatewaySocket, []string{"SCHEDRESTD_SECURITY=become_user"}, "/opt/gateway/schedrestd", "-v", "-a", "rest_auth/local", "-f", "/etc/slurm/slurm.conf", "unix:"+gatewaySocket)
	must(t, os.Chmod(filepath.Join(m.root, gatewaySocket), 0o666))
	os.Remove(filepath.Join(m.root, output))
	submitJob(t, m.clientAs(uid, gid, gatewaySocket), output)
	checkOutput()
}

// TestBackupController checks a cluster with two controllers: which of them
// sends the configuration and answers, before and after the first one fails.
func TestBackupController(t *testing.T) {
	m := freshCluster(t)
	conf := filepath.Join(m.root, "etc/slurm/slurm.conf")
	text, err := os.ReadFile(conf)
	must(t, err)
	const primary = "SlurmctldHost=head(127.0.0.1)\n"
	two := strings.Replace(string(text), primary, primary+"SlurmctldHost=back(127.0.0.2)\nSlurmctldTimeout=10\nSlurmctldParameters=enable_configless\n", 1)
	must(t, os.WriteFile(conf, []byte(two), 0))
	m.appendFile(t, "etc/hosts", "127.0.0.2 back\n")
	m.restartController(t)
	// The backup has the same program and configuration, but another name, and a
	// directory of its own for the file with its process id.
	go m.try("root", "unshare", "--uts", "--mount", "sh", "-c", `hostname back; mount -t tmpfs none /run/slurm; chown slurm /run/slurm
		exec timeout 300 setpriv --reuid=slurm --regid=slurm --init-groups slurmctld -D -L /var/log/slurm/back.log`)
	up := func(name string, want bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("%s is up: %t", name, want), func() bool {
			out, _ := m.try("root", "scontrol", "ping")
			return strings.Contains(out, name+" is UP") == want
		})
	}
	up("back", true)
	token := filepath.Join(m.root, "etc/slurm/conf.jwt")
	must(t, os.WriteFile(token, []byte(m.token), 0o600))
	t.Cleanup(func() { os.Remove(token) })
	d := m.start(t, "gateway", gatewaySocket, []string{"SLURM_JWT=daemon", "SCHEDRESTD_CONF_TOKEN=/etc/slurm/conf.jwt"},
		"/opt/gateway/schedrestd", "-v", "-u", "rest", "-g", "rest", "--conf-server", "127.0.0.2,127.0.0.1", "unix:"+gatewaySocket)
	if log := d.text(t); !strings.Contains(log, `msg="configuration fetched" from=127.0.0.1:6817`) {
		t.Errorf("the backup sends no configuration while it is on standby:\n%s", log)
	}
	pings := func() string {
		t.Helper()
		a, err := sendRequest(m.client(gatewaySocket), "GET", "/slurm/v0.0.42/ping/", "", "X-SLURM-USER-TOKEN: "+m.token)
		must(t, err)
		var answer struct {
			Pings []struct{ Hostname, Pinged, Mode string }
		}
		must(t, json.Unmarshal(a.body, &answer))
		return fmt.Sprint(answer.Pings)
	}
	if got := pings(); got != "[{head UP primary} {back UP backup1}]" {
		t.Errorf("pings %s", got)
	}
	m.wantServed(t, 200)
	eventually(t, "the backup can see that the primary was alive", func() bool {
		_, err := os.Stat(filepath.Join(m.root, "var/lib/slurm-state/heartbeat"))
		return err == nil
	})
	m.run(t, "root", "sh", "-c", "kill -KILL $(cat /run/slurm/slurmctld.pid)")
	m.wantServed(t, 200) // by the backup, when it has taken over
	if got := pings(); got != "[{head DOWN primary} {back UP backup1}]" {
		t.Errorf("pings after the failure: %s", got)
	}
	d.reload(t, `msg="configuration fetched" from=127.0.0.2:6817`)
	m.restart(t, "slurmctld")
	up("head", true)
	m.wantServed(t, 200)
}

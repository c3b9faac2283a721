package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExplainRequest checks what is said about requests in logs of all formats.
func TestExplainRequest(t *testing.T) {
	const expired = `time=2026-11-28T14:00:00.000Z worker=2 worker_pid=7 worker_uid=990 level=WARN msg="request failed" id=AAAA error="no valid credential was sent: token: expired 5m0s ago"
time=2026-11-28T14:00:00.001Z worker=2 worker_pid=7 worker_uid=990 level=INFO msg=request id=AAAA peer=192.0.2.7:51344 user="" method=GET path=/slurm/v0.0.43/jobs/ route=get_jobs status=401 bytes=300 took=1ms unverified_user=alice
time=2026-11-28T14:00:00.002Z worker=2 level=INFO msg=request id=AAAAB peer=192.0.2.9:1 user=bob method=GET path=/slurm/v0.0.43/nodes/ route=get_nodes status=200 bytes=3 took=1ms
`
	for _, tt := range []struct {
		name, log string
		want      []string
		not       string
	}{
		{"401", expired, []string{"request  GET /slurm/v0.0.43/jobs/\n", "client   192.0.2.7:51344 alice\n", "status   401 Unauthorized\n", "because  no valid credential was sent: token: expired 5m0s ago\n",
			"remedy   Tokens of `scontrol token` are valid for half an hour", "\ntime=2026-11-28T14:00:00.001Z worker=2"}, "AAAAB"},
		{"503, JSON", `{"time":"2026-11-28T14:00:00.000Z","worker":2,"level":"WARN","msg":"request failed","id":"AAAA","error":"the controller can't be reached: dial tcp 192.0.2.1:6817: connect: connection refused"}
{"time":"2026-11-28T14:00:00.001Z","worker":2,"level":"INFO","msg":"request","id":"AAAA","peer":"192.0.2.7:51344","user":"alice","method":"GET","path":"/slurm/v0.0.43/ping/","status":503}
`, []string{"status   503 Service Unavailable\n", "remedy   (also for `ping`) slurmctld is down (try `scontrol ping`)"}, "firewall"},
		{"403 of the dispatcher", `time=2026-11-28T14:00:00Z level=WARN msg="connection refused" listener=unix:/run/s peer="uid 0" because="it is root's, who gets no worker" refused_so_far=1
time=2026-11-28T14:00:00Z worker=1 level=INFO msg=request id=AAAA peer="uid 0" user="" method="" path="" route=none status=403 bytes=0 took=0s because="this user may not use this server"
`, []string{"status   403 Forbidden\n", "because  it is root's, who gets no worker\n", "remedy   (with B) The client is root"}, ""},
		{"429 of a blocked source", `Nov 28 14:00:00 gw schedrestd[7]: time=2026-11-28T14:00:00Z level=WARN msg="source blocked" source=192.0.2.7 listener=:6820 last="rejected credential" pause=10s
Nov 28 14:00:00 gw schedrestd[7]: time=2026-11-28T14:00:00Z level=WARN msg="source blocked" source=192.0.2.8 listener=:6820 last="rejected credential" pause=10s
Nov 28 14:00:01 gw schedrestd[7]: time=2026-11-28T14:00:01Z worker=1 level=INFO msg=request id=AAAA peer=192.0.2.7:4 user="" method=GET path=/slurm/v0.0.43/jobs/ route=get_jobs status=429 bytes=0 took=0s because="too many failed requests from this address; temporarily blocked"
`, []string{"remedy   One address sent many different bad tokens", "source=192.0.2.7 "}, "source=192.0.2.8"},
		{"429 of a user", `level=INFO msg=request id=AAAA peer=192.0.2.7:4 user=alice method=GET path=/slurm/v0.0.43/jobs/ route=get_jobs status=429 bytes=0 took=0s because="rate limit of this user exceeded"
`, []string{"because  rate limit of this user exceeded\n", "remedy   This user exceeds"}, ""},
		{"success, and a proxy's id in the audit log", `{"time":"2026-11-21T02:31:09.700118Z","event":"outcome","worker":{"request":"proxy:AAAA","status":200}}
level=INFO msg=request id=AAAA peer=192.0.2.7:4 user=alice method=DELETE path=/slurm/v0.0.43/job/1 route=delete_job status=200 bytes=0 took=0s id_from=proxy
`, []string{"did not refuse the request", `"request":"proxy:AAAA"`}, "remedy"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(path, []byte(tt.log), 0o600); err != nil {
				t.Fatal(err)
			}
			var out, errOut bytes.Buffer
			if status := run([]string{"explain", "AAAA", path}, &out, &errOut); status != 0 || errOut.Len() > 0 {
				t.Fatalf("status %d: %s", status, errOut.String())
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in\n%s", want, out.String())
				}
			}
			if tt.not != "" && strings.Contains(out.String(), tt.not) {
				t.Errorf("%q is in\n%s", tt.not, out.String())
			}
		})
	}
}

// TestExplainUnknownRequest checks what is said if the log has no line of the request.
func TestExplainUnknownRequest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	for log, want := range map[string]string{
		"level=INFO msg=request id=AAAB status=200\n":                "a client finds the id in X-Request-Id",
		"level=WARN msg=\"log lines left out\" lines=7 source=bob\n": "LOGS.md, Omitted lines",
	} {
		if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errOut bytes.Buffer
		if status := run([]string{"explain", "AAAA", path}, &out, &errOut); status != 5 || !strings.Contains(errOut.String(), want) {
			t.Errorf("%s: status %d, %s", log, status, errOut.String())
		}
	}
}

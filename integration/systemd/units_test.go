package systemd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	curlWithToken = `eval "$(schedctl token)"; curl -sS --fail-with-body -H "X-SCHED-USER-TOKEN: $SCHED_JWT" `
	pingCommand   = curlWithToken + `http://127.0.0.1:6820/sched/v0.0.43/ping`
	usersPing     = `setpriv --reuid=alice --regid=alice --clear-groups curl -sS --fail-with-body --unix-socket /run/schedrestd-users/socket http://x/sched/v0.0.43/ping`
	submitCommand = curlWithToken + `-H 'Content-Type: application/json' -d '{"job":{"name":"n","current_working_directory":"/tmp","environment":["PATH=/bin"]},
		"script":"#!/bin/sh\nsleep '$seconds'\n"}' http://127.0.0.1:6820/sched/v0.0.43/job/submit`
	withRoot     = `install -D -m 0644 /usr/local/share/doc/schedrestd/examples/root.conf /etc/systemd/system/schedrestd.service.d/root.conf; systemctl daemon-reload`
	startCommand = `systemctl start schedrestd.socket schedrestd.service`
)

// unitStarts lists the ways of starting the gateway that are in the table of
// docs/INSTALL.md.
var unitStarts = map[string]struct {
	row        string // row in the table of the page
	unit, env  string
	before     string // script to run before the start
	start, ask string
	whole      bool // no layer of the sandbox is missing
}{
	"service": {"`schedrestd.service`", "schedrestd.service", "schedrestd.env", "", startCommand, pingCommand, false},
	"root":    {"… with `root.conf`", "schedrestd.service", "schedrestd.env", withRoot, startCommand, pingCommand, true},
	"users": {"`schedrestd-users.service`", "schedrestd-users.service", "schedrestd-users.env", "",
		"systemctl start schedrestd-users.socket schedrestd-users.service", usersPing, true},
	"dynamic user": {"… with `DynamicUser=yes`", "schedrestd.service", "schedrestd.env",
		`mkdir -p /etc/systemd/system/schedrestd.service.d
		printf '[Service]\nDynamicUser=yes\nUser=gate\nGroup=\n' >/etc/systemd/system/schedrestd.service.d/user.conf; systemctl daemon-reload`, startCommand, pingCommand, false},
}

// TestUnitsStart checks that each unit serves as soon as it reports that it is
// ready. The unit's line in the journal must name the layers that
// docs/INSTALL.md lists. With require_confinement, each unit must start or
// refuse to start, as the page says.
func TestUnitsStart(t *testing.T) {
	m := bootedMachine(t)
	page, err := os.ReadFile("../../docs/INSTALL.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range unitStarts {
		t.Run(name, func(t *testing.T) {
			m.reset(t)
			m.Run(t, tt.before+"\n"+tt.start)
			m.Run(t, tt.ask)
			log := m.journalSinceStart(t, tt.unit)
			line := regexp.MustCompile(`msg="confinement of the workers" on="([^"]*)"(?: unavailable="([^"]*)")?\n`).FindStringSubmatch(log)
			if line == nil {
				t.Fatalf("no line about the confinement:\n%s", log)
			}
			required := "starts"
			if !tt.whole {
				required = "does not start"
			}
			layers := strings.Split(line[1], ", no_new_privs")[0]
			row := fmt.Sprintf("| %s | %s | %s | %s |\n", tt.row, layers, line[2], required)
			if row = strings.ReplaceAll(row, "|  |", "| nothing |"); !strings.Contains(string(page), row) {
				t.Errorf("docs/INSTALL.md has no row\n%s", row)
			}
			const users = `msg="users of the processes" dispatcher=schedrestd-dispatcher keeper=schedrestd-keeper resolver=schedrestd-resolver ` +
				`auditor=schedrestd-auditor exporter=schedrestd-exporter standby=schedrestd-standby` + "\n"
			if strings.Contains(log, users) != tt.whole { // whole: root starts the gateway
				t.Errorf("the processes do not have the users of sysusers.d:\n%s", log)
			}
			if strings.Contains(log, "evaluates to an empty string") || strings.Contains(log, "level=ERROR") {
				t.Errorf("the journal:\n%s", log)
			}
			m.Write(t, "/etc/sched/"+tt.env, "SCHEDRESTD_SECURITY=require_confinement"+map[bool]string{true: ",become_user"}[name == "users"]+"\n")
			if out, err := m.Try("systemctl restart " + tt.unit); (err == nil) != tt.whole {
				t.Errorf("with require_confinement: %v\n%s\n%s", err, out, m.journalSinceStart(t, tt.unit))
			}
		})
	}
}

// TestFurtherCluster checks the units of a further cluster, as SLURM-CONF.md describes
// them: with and without root.conf they serve beside those of the first cluster, and they
// do not start without a configuration of their own.
func TestFurtherCluster(t *testing.T) {
	m := bootedMachine(t)
	const (
		start = `systemctl enable --now schedrestd@b.socket schedrestd@b.service 2>&1`
		ask   = curlWithToken + `--unix-socket /run/schedrestd@b/socket http://x/sched/v0.0.43/ping`
		root  = `install -D -m 0644 /usr/local/share/doc/schedrestd/examples/root.conf /etc/systemd/system/schedrestd@.service.d/root.conf; systemctl daemon-reload`
	)
	for name, before := range map[string]string{"plain": "", "root.conf": root} {
		t.Run(name, func(t *testing.T) {
			m.reset(t)
			defer m.reset(t)
			m.Run(t, before+"\n"+startCommand)
			if out, err := m.Try(start); err == nil {
				t.Errorf("started without its environment file: %s", out)
			}
			m.Write(t, "/etc/sched/schedrestd@b.env", "SCHED_CONF=/etc/sched/b.conf\nSCHEDRESTD_AUDIT_LOG=/var/log/schedrestd@b/audit.log\n")
			m.Run(t, "sed 's/^ClusterName=.*/ClusterName=b/' /etc/sched/sched.conf >/etc/sched/b.conf; systemctl reset-failed; "+start)
			if out := m.Run(t, ask); !strings.Contains(out, `"cluster":"b"`) {
				t.Errorf("answered:\n%s", out)
			}
			m.Run(t, pingCommand+" && systemctl reload schedrestd@b && systemctl restart schedrestd@b.socket schedrestd@b.service && "+ask+" && test -f /var/log/schedrestd@b/audit.log")
			if log := m.journalSinceStart(t, "schedrestd@b.service"); strings.Contains(log, "level=ERROR") {
				t.Errorf("the journal:\n%s", log)
			}
			m.Run(t, "systemctl disable --now --quiet schedrestd@b.socket schedrestd@b.service; rm /etc/sched/b.conf")
		})
	}
}

// TestInetdUnit checks that each connection starts an instance. With
// require_confinement, the instance must not answer, and must log the reason.
func TestInetdUnit(t *testing.T) {
	m := bootedMachine(t)
	m.reset(t)
	m.Run(t, "systemctl start schedrestd-inetd.socket")
	m.Run(t, pingCommand)
	m.Run(t, pingCommand)
	m.Write(t, "/etc/sched/schedrestd.env", "SCHEDRESTD_SECURITY=require_confinement\n")
	if out, err := m.Try(pingCommand); err == nil {
		t.Errorf("answered without the whole sandbox: %s", out)
	}
	if log := m.Run(t, `journalctl --sync; journalctl -o cat --no-pager -u 'schedrestd-inetd@*'`); !strings.Contains(log, "require_confinement") {
		t.Errorf("the journal:\n%s", log)
	}
	if leftovers := m.Run(t, `systemctl list-units --all --no-legend --plain 'schedrestd-inetd@*' --state=active`); leftovers != "" {
		t.Errorf("left:\n%s", leftovers)
	}
}

// makeCertificate creates the certificate that the TLS section of
// docs/INSTALL.md requires.
const makeCertificate = `cd /root
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -out server.pem -subj /CN=head -addext subjectAltName=DNS:localhost 2>&1
	`

// TestTLS follows the TLS section of docs/INSTALL.md, with a sched.conf, and
// with a site's slurm.conf that includes another file.
func TestTLS(t *testing.T) {
	m := bootedMachine(t)
	for name, before := range map[string]string{"sched.conf": "", "slurm.conf": `
		mkdir -p /etc/slurm
		sed 's/Sched/Slurm/; s/^NodeName/Include nodes.conf\n&/' /etc/sched/sched.conf >/etc/slurm/slurm.conf
		echo 'MessageTimeout=30' >/etc/slurm/nodes.conf
		rm /etc/sched/sched.conf`} {
		t.Run(name, func(t *testing.T) {
			m.reset(t)
			m.Run(t, "cp /etc/sched/sched.conf /tmp")
			defer m.Run(t, "cp /tmp/sched.conf /etc/sched/; rm -rf /etc/slurm")
			m.Run(t, before)
			m.Run(t, makeCertificate)
			if out, err := m.follow("4. TLS"); err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, m.journalSinceStart(t, "schedrestd"))
			}
			m.Run(t, curlWithToken+"--cacert /root/server.pem https://localhost:6821/sched/v0.0.43/ping")
			m.Run(t, "systemctl reload schedrestd; sleep 1; "+curlWithToken+"--cacert /root/server.pem https://localhost:6821/sched/v0.0.43/ping")
			if out, err := m.Try(`setpriv --reuid=schedrestd --regid=schedrestd --clear-groups cat /etc/sched/tls.key`); err == nil {
				t.Errorf("the workers' user can read the key: %s", out)
			}
		})
	}
}

// TestCheckInsideTheUnit runs the commands in docs/INSTALL.md that test the
// confinement inside a unit's own sandbox.
func TestCheckInsideTheUnit(t *testing.T) {
	m := bootedMachine(t)
	list, err := blocks("Verify the sandbox")
	if err != nil {
		t.Fatal(err)
	}
	_, check, found := strings.Cut(list[len(list)-1].Text, "unit=schedrestd\n")
	check, _, end := strings.Cut(check, "rm /run/systemd/system/schedrestd-check.service\n")
	if !found || !end {
		t.Fatalf("not in docs/INSTALL.md:\n%s", list[len(list)-1].Text)
	}
	for name, tt := range unitStarts {
		t.Run(name, func(t *testing.T) {
			m.reset(t)
			out := m.Run(t, tt.before+"\nunit="+strings.TrimSuffix(tt.unit, ".service")+"\n"+check+
				"rm /run/systemd/system/schedrestd-check.service\nsystemctl daemon-reload\n")
			out = out[max(0, strings.LastIndex(out, "PART ")):] // the journal may also contain earlier checks
			died := regexp.MustCompile(`(\d+) death tests were run, each in its own process: (\d+) were killed`).FindStringSubmatch(out)
			if died == nil || died[1] != died[2] || !strings.Contains(out, "All confinement that a start ") {
				t.Errorf("%s", out)
			}
			if whole := !strings.Contains(out, "requires a start as root"); whole != tt.whole {
				t.Errorf("whole: %v\n%s", whole, out)
			}
		})
	}
}

// TestCheckBeforeRestart runs the commands in docs/INSTALL.md that check changed
// settings inside a unit. They must print all of the report and nothing else,
// also when they are run again.
func TestCheckBeforeRestart(t *testing.T) {
	m := bootedMachine(t)
	list, err := blocks("7. Reload, restart and upgrade")
	if err != nil {
		t.Fatal(err)
	}
	_, check, found := strings.Cut(list[0].Text, "unit=schedrestd\n")
	if !found {
		t.Fatalf("not in docs/INSTALL.md:\n%s", list[0].Text)
	}
	for name, tt := range unitStarts {
		t.Run(name, func(t *testing.T) {
			m.reset(t)
			for _, settings := range []struct{ line, first, last string }{
				{"", "configuration ", "The gateway can start with these settings."},
				{"SCHEDRESTD_RATE=many", "Job for ", "hint: give requests per second"},
				{"SCHEDRESTD_AUDIT_LOG=/var/log/audit-sched.log", "Job for ", "hint: findmnt -T /var/log  # a systemd unit may write only to its directory"},
			} {
				m.Write(t, "/etc/sched/"+tt.env, settings.line+"\n")
				out, _ := m.Try(tt.before + "\nset +e; sleep 1\nunit=" + strings.TrimSuffix(tt.unit, ".service") + "\n" + check)
				lines := strings.Split(strings.TrimSpace(out), "\n")
				if !strings.HasPrefix(lines[0], settings.first) || !strings.HasPrefix(lines[len(lines)-1], settings.last) || strings.Count(out, settings.last) != 1 {
					t.Errorf("%q printed\n%s", settings.line, out)
				}
			}
		})
	}
}

// TestRestartUnderLoad checks that no client is refused while the service
// restarts and reloads. New connections must wait in the socket.
func TestRestartUnderLoad(t *testing.T) {
	m := bootedMachine(t)
	m.reset(t)
	m.Run(t, startCommand)
	token := strings.TrimPrefix(m.Run(t, `eval "$(schedctl token lifespan=3600 2>/dev/null || schedctl token)"; echo $SCHED_JWT`), "SCHED_JWT=")
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", m.Root+"/run/schedrestd/socket")
	}}}
	var answered atomic.Int64
	done := make(chan struct{})
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				r, _ := http.NewRequest("GET", "http://x/sched/v0.0.43/ping", nil)
				r.Header.Set("X-SCHED-USER-TOKEN", token)
				resp, err := client.Do(r)
				if err != nil {
					t.Errorf("after %d answers: %v", answered.Load(), err)
					return
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("after %d answers: %s, %v\n%s", answered.Load(), resp.Status, err, text)
					return
				}
				answered.Add(1)
				time.Sleep(5 * time.Millisecond) // on a fast machine there would be more connections than the parent accepts from a user
			}
		})
	}
	for range 3 {
		before := answered.Load()
		m.Run(t, "systemctl restart schedrestd; systemctl reload schedrestd; sleep 0.5; systemctl kill --signal=HUP --kill-whom=main schedrestd")
		if answered.Load() == before {
			t.Error("no client was answered during the restarts")
		}
	}
	close(done)
	clients.Wait()
	t.Logf("%d answers", answered.Load())
}

// TestSocketActivation checks that the first client starts the service.
func TestSocketActivation(t *testing.T) {
	m := bootedMachine(t)
	m.reset(t)
	m.Run(t, "systemctl start schedrestd.socket schedrestd-users.socket; ! systemctl is-active schedrestd.service")
	m.Run(t, pingCommand)
	m.Run(t, usersPing)
	m.Run(t, "systemctl is-active schedrestd.service schedrestd-users.service")
}

// TestStartedAgain checks that the parent is started again each time it is
// killed, and that clients wait for it.
func TestStartedAgain(t *testing.T) {
	m := bootedMachine(t)
	m.reset(t)
	m.Run(t, startCommand)
	for range 8 { // within a few seconds; systemd's default limit is 5 starts in 10 seconds
		m.Run(t, "systemctl kill --signal=KILL --kill-whom=main schedrestd; sleep 0.2\n"+pingCommand)
	}
	m.Run(t, "systemctl is-active schedrestd.service schedrestd.socket")
}

// TestStop checks that nothing is left after the service is stopped: no
// process, no socket, no control group, no failed unit.
func TestStop(t *testing.T) {
	m := bootedMachine(t)
	for _, before := range []string{"", withRoot} {
		m.reset(t)
		m.Run(t, before+"\n"+startCommand+"\nsystemctl start schedrestd-users.socket schedrestd-users.service")
		m.Run(t, pingCommand)
		m.Run(t, usersPing)
		m.Run(t, `systemctl stop schedrestd.socket schedrestd.service schedrestd-users.socket schedrestd-users.service`)
		leftovers := m.Run(t, `ps -eo pid,comm | grep 'schedrestd' || true
			ls -d /run/schedrestd*/socket /sys/fs/cgroup/system.slice/schedrestd* 2>/dev/null || true
			systemctl list-units --no-legend --plain --state=failed,active 'schedrestd*'`)
		if leftovers != "" {
			t.Errorf("left:\n%s", leftovers)
		}
	}
}

// TestAuditLog checks that the gateway writes the audit log in the only
// directory to which the unit may write. If an administrator changes the unit's
// user, the gateway must append to the same log.
func TestAuditLog(t *testing.T) {
	m := bootedMachine(t)
	m.reset(t)
	for i, before := range []string{"", withRoot, "rm /etc/systemd/system/schedrestd.service.d/root.conf; systemctl daemon-reload"} {
		m.Write(t, "/etc/sched/schedrestd.env", "SCHEDRESTD_AUDIT_LOG=/var/log/schedrestd/audit.log\n")
		m.Run(t, before+"\nsystemctl start schedrestd.socket; systemctl restart schedrestd.service")
		m.Run(t, "seconds=0\n"+submitCommand)
		lines := strings.Split(m.Run(t, "cat /var/log/schedrestd/audit.log"), "\n")
		if len(lines) != 2*(i+1) || !json.Valid([]byte(lines[len(lines)-1])) {
			t.Errorf("%q", lines)
		}
		if mode := m.Run(t, "stat -c %a /var/log/schedrestd /var/log/schedrestd/audit.log"); mode != "700\n600" {
			t.Errorf("modes %q", mode)
		}
	}
}

// TestJobsOutliveTheController checks that jobs continue while the controller
// is restarted.
func TestJobsOutliveTheController(t *testing.T) {
	m := bootedMachine(t)
	m.reset(t)
	m.Run(t, startCommand)
	var submitted struct {
		Job int `json:"job_id"`
	}
	if err := json.Unmarshal([]byte(m.Run(t, "seconds=60\n"+submitCommand)), &submitted); err != nil {
		t.Fatal(err)
	}
	state := func() string {
		return m.Run(t, curlWithToken+fmt.Sprintf("http://127.0.0.1:6820/sched/v0.0.43/job/%d", submitted.Job)+` | grep -o '"job_state":\["[A-Z]*"'`)
	}
	for deadline := time.Now().Add(time.Minute); !strings.Contains(state(), "RUNNING"); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(state())
		}
	}
	m.Run(t, "systemctl restart schedctld")
	if got := state(); !strings.Contains(got, "RUNNING") {
		t.Error(got)
	}
}

// TestUnitsVerify checks that the machine's systemd finds no fault in the
// units.
func TestUnitsVerify(t *testing.T) {
	m := bootedMachine(t)
	m.reset(t)
	for _, before := range []string{"", withRoot} {
		out := m.Run(t, before+`
			cd /usr/local/lib/systemd/system; systemd-analyze verify --man=no $(ls | sed -E 's/-(relisten|waiting)@\./-\1@schedrestd.socket./; s/@\./@1./') 2>&1`)
		if out != "" {
			t.Error(out)
		}
	}
}

// TestMemoryMax checks that systemd accepts the limits of memory in the units. TestMemoryLimit
// in integration/chaos exceeds such a limit.
func TestMemoryMax(t *testing.T) {
	m := bootedMachine(t)
	for unit, want := range map[string]string{
		"schedrestd.service":         `MemoryMax=4294967296\nOOMPolicy=continue`,
		"schedrestd@b.service":       `MemoryMax=4294967296\nOOMPolicy=continue`,
		"schedrestd-users.service":   `MemoryMax=\d+\nOOMPolicy=continue`,
		"schedrestd-inetd@1.service": `MemoryMax=1073741824\nOOMPolicy=stop`,
		"scheddbd.service":           `MemoryMax=536870912\nOOMPolicy=stop`,
		"schedctld.service":          `MemoryMax=infinity\nOOMPolicy=continue`,
	} {
		if out := m.Run(t, "systemctl show -p MemoryMax -p OOMPolicy "+unit+" | sort"); !regexp.MustCompile("^" + want + `\s*$`).MatchString(out) {
			t.Errorf("%s: %q, want %q", unit, out, want)
		}
	}
}

// TestNotifyReload checks the drop-in of INSTALL.md that makes "systemctl reload"
// return only when the gateway has its new settings, or has refused them.
func TestNotifyReload(t *testing.T) {
	m := bootedMachine(t)
	if version := m.Run(t, "systemctl --version | awk 'NR == 1 { print $2 }'"); version < "253" {
		t.Log("Type=notify-reload is new in systemd 253") // no t.Skip, which would mean that this machine lacks something
		return
	}
	m.reset(t)
	const dropIn = "/etc/systemd/system/schedrestd.service.d/reload.conf"
	defer m.Run(t, "rm "+dropIn+"; systemctl daemon-reload")
	m.Run(t, `install -d /etc/systemd/system/schedrestd.service.d; printf '[Service]\nType=notify-reload\nExecReload=\n' >`+dropIn+"; systemctl daemon-reload; "+startCommand)
	const conf = "/etc/sched/sched.conf"
	defer m.Run(t, "mv "+conf+".right "+conf)
	for _, tt := range []struct{ edit, status string }{
		{"cp -p " + conf + " " + conf + ".right", ""},
		{"echo nonsense >>" + conf, "reload failed"},
		{"cp -p " + conf + ".right " + conf, ""},
	} {
		text := m.Run(t, tt.edit+"; systemctl reload schedrestd; systemctl show -P StatusText schedrestd")
		if !strings.HasPrefix(text, tt.status) || tt.status == "" && text != "" {
			t.Errorf("the status after %q is %q", tt.edit, text)
		}
	}
	m.Run(t, pingCommand)
}

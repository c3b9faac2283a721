package slurm

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// confServer is the controller's address in the machine.
const confServer = "127.0.0.1:6817"

// addConfiguration appends lines to the cluster's slurm.conf.
func (m *machine) addConfiguration(t *testing.T, lines string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(m.root, "etc/slurm/slurm.conf"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.WriteString(lines)
	must(t, err)
	must(t, f.Close())
}

// restartController ends the controller and starts it again.
func (m *machine) restartController(t *testing.T) {
	t.Helper()
	m.stopController(t)
	m.restart(t, "slurmctld")
}

func (m *machine) stopController(t *testing.T) {
	t.Helper()
	m.signal(t, "slurmctld", "TERM")
	eventually(t, "slurmctld has ended", func() bool {
		_, err := m.try("root", "pgrep", "-x", "slurmctld")
		return err != nil
	})
}

// check runs schedrestd --check as user, and returns its output.
func (m *machine) check(user string, env []string, args ...string) (string, error) {
	command := append(append([]string{"env"}, env...), "/opt/gateway/schedrestd", "--check")
	socket := "/var/cache/rest/socket" // in a directory of the user rest
	if user == "root" {
		command, socket = append(command, "-u", "rest", "-g", "rest"), gatewaySocket
	}
	return m.try(user, append(append(command, args...), "unix:"+socket)...)
}

// settings returns what --check prints about the cluster, without the rows that
// say where the configuration comes from, and without the log.
func settings(output string) string {
	var rows []string
	for line := range strings.Lines(output) {
		switch name, _, _ := strings.Cut(line, " "); {
		case name == "configuration", name == "copy", name == "variables", strings.HasPrefix(name, "time="):
		default:
			rows = append(rows, line)
		}
	}
	return strings.TrimSpace(strings.Join(rows, ""))
}

// TestConfigless checks a gateway that fetches slurm.conf from slurmctld: with
// MUNGE, with auth/slurm and with a token; at the start, after SIGHUP, and while
// slurmctld is down.
func TestConfigless(t *testing.T) {
	m := freshCluster(t)
	byServer := []string{"--conf-server", confServer}
	tokenFile := filepath.Join(m.root, "etc/slurm/conf.jwt")
	must(t, os.WriteFile(tokenFile, []byte("SLURM_JWT="+m.token+"\n"), 0o600))
	t.Cleanup(func() { os.Remove(tokenFile) })
	cache := filepath.Join(m.root, "var/cache/rest")
	must(t, os.MkdirAll(cache, 0o755))
	t.Cleanup(func() { os.RemoveAll(cache) })
	m.run(t, "root", "install", "-d", "-o", "rest", "-g", "rest", "-m", "0700", "/var/cache/rest")
	kept := []string{"SLURM_JWT=daemon", "SCHEDRESTD_CONF_CACHE=/var/cache/rest"}
	jwt := []string{"SLURM_JWT=daemon", "SCHEDRESTD_CONF_TOKEN=/etc/slurm/conf.jwt"}

	out, err := m.check("root", kept, byServer...)
	if err == nil || !strings.Contains(err.Error(), "SlurmctldParameters=enable_configless") {
		t.Errorf("slurmctld sends no configuration: %v\n%s", err, out)
	}

	extra := filepath.Join(m.root, "etc/slurm/sent.conf")
	must(t, os.WriteFile(extra, []byte("MessageTimeout=33\n"), 0o644))
	t.Cleanup(func() { os.Remove(extra) })
	m.addConfiguration(t, "SlurmctldParameters=enable_configless\nInclude sent.conf\n")
	m.restartController(t)
	fromFile, err := m.check("root", []string{"SLURM_JWT=daemon"}, "-f", "/etc/slurm/slurm.conf")
	must(t, err)
	for _, tt := range []struct {
		name, user string
		env        []string
	}{
		{"MUNGE, an unused uid", "root", []string{"SLURM_JWT=daemon"}},
		{"MUNGE, the gateway's user", "rest", kept},
		{"token", "root", jwt},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := m.check(tt.user, tt.env, byServer...)
			must(t, err)
			if !strings.Contains(out, confServer+"/slurm.conf, "+confServer+"/sent.conf\n") {
				t.Errorf("printed:\n%s", out)
			}
			if tt.user == "root" && settings(out) != settings(fromFile) {
				t.Errorf("the settings differ from those of the file:\n%s\n\n%s", out, fromFile)
			}
		})
	}

	t.Run("copies of a gateway that root starts", func(t *testing.T) {
		const dir = "/var/cache/schedrestd-config"
		t.Cleanup(func() { os.RemoveAll(filepath.Join(m.root, dir)) })
		for _, tt := range []struct{ owner, mode, want string }{
			{"root", "0700", "copy           not usable: "},
			{"bob", "0750", "copy           not usable: "},
			{"bob", "0700", "copy           in " + dir + ", "},
		} {
			m.run(t, "root", "install", "-d", "-o", tt.owner, "-g", tt.owner, "-m", tt.mode, dir)
			out, err := m.check("root", []string{"SLURM_JWT=daemon"}, byServer...)
			if err != nil || !strings.Contains(out, tt.want) {
				t.Errorf("%+v: %v\n%s", tt, err, out)
			}
		}
		if got := m.run(t, "root", "sh", "-c", "stat -c '%U %G %a' "+dir+"/*"); got != "bob bob 600" {
			t.Errorf("the copy is %s", got)
		}
	})

	t.Run("serve", func(t *testing.T) {
		args := []string{"setpriv", "--reuid=rest", "--regid=rest", "--clear-groups", "/opt/gateway/schedrestd", "-v", "-a", "rest_auth/jwt", "--conf-server", confServer, "unix:" + gatewaySocket}
		m.run(t, "root", "install", "-d", "-m", "1777", "/run")
		d := m.start(t, "gateway", gatewaySocket, kept, args...)
		m.wantServed(t, 200)
		must(t, os.WriteFile(extra, []byte("MessageTimeout=34\n"), 0o644))
		m.restartController(t) // after "scontrol reconfigure" its process would have another name
		d.reload(t, "configuration reloaded")
		m.stopController(t)
		d.reload(t, "new configuration rejected; keeping the old one")
		m.wantServed(t, 503)
		d.stop(t)
		d = m.start(t, "gateway", gatewaySocket, kept, args...)
		if log := d.text(t); !strings.Contains(log, "using the copy of an earlier start") || !strings.Contains(log, `path="copy of `+confServer+`/slurm.conf"`) {
			t.Errorf("log:\n%s", log)
		}
		out, err := m.check("rest", kept, byServer...)
		if err != nil || !strings.Contains(out, "copy of "+confServer+"/sent.conf") {
			t.Errorf("%v:\n%s", err, out)
		}
		a, err := sendRequest(m.client(gatewaySocket), "GET", "/slurmdb/v0.0.42/accounts", "", "X-SLURM-USER-TOKEN: "+m.token)
		if err != nil || a.status != http.StatusOK {
			t.Errorf("accounting without the controller: %v, status %d: %.300s", err, a.status, a.body)
		}
		m.restart(t, "slurmctld")
		m.wantServed(t, 200)
		d.reload(t, "configuration reloaded")
	})

	t.Run("become_user", func(t *testing.T) {
		m.start(t, "gateway", gatewaySocket, []string{"SCHEDRESTD_SECURITY=become_user"}, "/opt/gateway/schedrestd", "-v", "-a", "rest_auth/local", "--conf-server", confServer, "unix:"+gatewaySocket)
		must(t, os.Chmod(filepath.Join(m.root, gatewaySocket), 0o666))
		m.checkLocalUsers(t, "configless")
	})

	t.Run("inetd", func(t *testing.T) {
		out := m.run(t, "root", "env", "SLURM_JWT=daemon", "sh", "-c",
			`printf 'GET /slurm/v0.0.42/ping HTTP/1.1\r\nHost: x\r\nX-SLURM-USER-TOKEN: `+m.token+`\r\nConnection: close\r\n\r\n' | /opt/gateway/schedrestd -u rest -g rest --conf-server `+confServer)
		if !strings.HasPrefix(out, "HTTP/1.1 200 OK") {
			t.Errorf("%.500s", out)
		}
	})

	t.Run("auth/slurm", func(t *testing.T) {
		if m.release == "22.05" {
			t.Skip("auth/slurm is new in 23.11")
		}
		m.useAuthSlurm(t)
		out, err := m.check("root", []string{"SLURM_JWT=daemon"}, byServer...)
		if err != nil || !strings.Contains(out, confServer+"/slurm.conf") {
			t.Errorf("%v:\n%s", err, out)
		}
	})
}

// wantServed checks the status of a list of nodes.
func (m *machine) wantServed(t *testing.T, status int) {
	t.Helper()
	var got int
	eventually(t, "the status is right", func() bool {
		a, err := sendRequest(m.client(gatewaySocket), "GET", "/slurm/v0.0.42/nodes", "", "X-SLURM-USER-TOKEN: "+m.token)
		must(t, err)
		got = a.status
		return got == status
	})
}

// text returns the daemon's log.
func (d *daemon) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(d.log)
	must(t, err)
	return string(text)
}

// reload sends SIGHUP, and waits until the log has one more line with outcome.
func (d *daemon) reload(t *testing.T, outcome string) {
	t.Helper()
	before := strings.Count(d.text(t), outcome)
	d.m.run(t, "root", "kill", "-HUP", d.pid)
	eventually(t, outcome, func() bool { return strings.Count(d.text(t), outcome) > before })
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/become/nss"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// TestMain runs the daemon instead of the tests if SCHEDDBD_TEST is set.
func TestMain(m *testing.M) {
	if os.Getenv("SCHEDDBD_TEST") == "run" {
		os.Exit(program.Run(os.Args[1:], os.Stderr))
	}
	os.Exit(m.Run())
}

// started is a running scheddbd.
type started struct {
	*exec.Cmd
	log    bytes.Buffer
	socket string
}

func start(t testing.TB, conf, socket string) *started {
	t.Helper()
	d := &started{Cmd: exec.Command(os.Args[0], "-f", conf), socket: socket}
	d.Env = append(os.Environ(), "SCHEDDBD_TEST=run")
	d.Stderr = &d.log
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Process.Kill() })
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		if nc, err := net.Dial("unix", socket); err == nil {
			nc.Close()
			return d
		}
		time.Sleep(10 * time.Millisecond)
	}
	d.Process.Kill()
	d.Wait()
	t.Fatalf("does not listen:\n%s", d.log.String())
	return nil
}

// writeConfig writes a configuration file that contains the lines that all
// tests need, followed by the given lines.
func writeConfig(t testing.TB, dir string, lines ...string) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	text := fmt.Sprintf("DbdHost=127.0.0.1\nDbdPort=%d\nStorageLoc=%s\nAuthInfo=socket=%s\n%s\n",
		ln.Addr().(*net.TCPAddr).Port, filepath.Join(dir, "jobs.sqlite"), filepath.Join(dir, "s"), strings.Join(lines, "\n"))
	path := filepath.Join(dir, "dbd.conf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRestartAfterKill checks that the daemon can be restarted after kill -9.
// The new daemon must replace the old socket, and must accept a job that the
// old daemon has already recorded. After SIGTERM, the new daemon must remove
// its socket.
func TestRestartAfterKill(t *testing.T) {
	dir := sockettest.Dir(t)
	path := writeConfig(t, dir, "SchedUser="+strconv.Itoa(os.Geteuid()))
	c := client.NewAccounting(client.Config{Cluster: "c1", Accounting: []client.Address{{Name: "dbd", Network: "unix", Address: filepath.Join(dir, "s")}}})
	batch := []model.Job{{StepID: model.StepID{JobID: 7}, Detailed: true}}
	d := start(t, path, filepath.Join(dir, "s"))
	if err := c.RecordJobs(context.Background(), model.Credential{}, batch); err != nil {
		t.Fatal(err)
	}
	d.Process.Kill()
	d.Wait()
	d = start(t, path, d.socket)
	if err := c.RecordJobs(context.Background(), model.Credential{}, batch); err != nil {
		t.Error(err)
	}
	d.Process.Signal(syscall.SIGTERM)
	if err := d.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, d.log.String())
	}
	if _, err := os.Lstat(d.socket); err == nil {
		t.Error("the socket is left behind")
	}
}

// TestRootBecomesSchedUser starts the daemon as root. It checks that the daemon
// runs as the scheduler's user before it listens.
func TestRootBecomesSchedUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	user, err := nss.LookupUser("daemon")
	if err != nil {
		t.Skip(err)
	}
	uid, gid := int(user.UID), int(user.GID)
	top := sockettest.Dir(t)
	os.Chmod(filepath.Dir(top), 0o755)
	dir := filepath.Join(top, "d")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := writeConfig(t, dir, "SchedUser=daemon")
	for _, name := range []string{top, dir, path} {
		if err := os.Chown(name, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	d := start(t, path, filepath.Join(dir, "s"))
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", d.Process.Pid))
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	for _, thread := range threads {
		status, err := os.ReadFile(thread)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			value = strings.TrimSpace(value)
			switch name {
			case "Uid":
				if value != strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d\t", uid), 4), "\t") {
					t.Errorf("%s: %s", thread, line)
				}
			case "Gid":
				if value != strings.TrimSuffix(strings.Repeat(fmt.Sprintf("%d\t", gid), 4), "\t") {
					t.Errorf("%s: %s", thread, line)
				}
			case "Groups":
				if value != "" {
					t.Errorf("%s: %s", thread, line)
				}
			case "CapEff", "CapPrm":
				if strings.Trim(value, "0") != "" {
					t.Errorf("%s: %s", thread, line)
				}
			}
		}
	}
	c := client.NewAccounting(client.Config{Accounting: []client.Address{{Name: "dbd", Network: "unix", Address: d.socket}},
		Trusted: func(peerUID uint32) bool { return int(peerUID) == uid }})
	if err := c.RecordJobs(context.Background(), model.Credential{}, nil); err != nil {
		t.Errorf("root records: %v", err)
	}
}

// TestRootNeedsSchedUsersGroup checks that the daemon refuses a SchedUser
// without an entry in the user database. The daemon would not know the group of
// such a user.
func TestRootNeedsSchedUsersGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	var out bytes.Buffer
	if status := program.Run([]string{"-f", writeConfig(t, t.TempDir(), "SchedUser=123456789")}, &out); status != 1 || !strings.Contains(out.String(), "no group") {
		t.Errorf("status %d:\n%s", status, out.String())
	}
}

func TestErrors(t *testing.T) {
	dir := sockettest.Dir(t)
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{name: "no file", args: []string{"-f", filepath.Join(dir, "none")}, want: []string{"error: "}},
		{name: "bad value", args: []string{"-f", writeConfig(t, t.TempDir(), "DbdPort=many")}, want: []string{"error: ", "dbd.conf:5"}},
		{name: "munge", args: []string{"-f", writeConfig(t, t.TempDir(), "AuthType=auth/munge")}, want: []string{"error: ", "AuthType=auth/munge", "hint: "}},
		{name: "an argument", args: []string{"x"}, want: []string{"error: "}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			if status := program.Run(tt.args, &out); status != 1 {
				t.Errorf("status %d", status)
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("no %q in:\n%s", want, out.String())
				}
			}
		})
	}
}

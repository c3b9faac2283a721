package slurm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/integration/page"
)

// symptomsPage returns the text of docs/TROUBLESHOOTING.md.
func symptomsPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/TROUBLESHOOTING.md")
	must(t, err)
	return string(text)
}

// A step is a block of commands on the page docs/SLURM.md. The block's first
// line states the step's name and the user who runs the commands.
type step struct{ name, user, text string }

// stepTimeout is the time limit of a step.
const stepTimeout = 90 * time.Second

var (
	stepHeader   = regexp.MustCompile(`^# ([A-Z][0-9]*(?: by hand)?), .*(as root|as yourself|in the same shell)\n`)
	wantedOutput = regexp.MustCompile(`(?m)# → (.+)$`)
)

// testedSteps are the steps that TestPage runs.
var testedSteps = []string{"A1", "A2", "A3", "A4", "A4 by hand", "A5", "A6", "B1", "B3", "B3 by hand", "B4", "B5"}

// TestPageSteps checks that TestPage runs every command block on the page.
// TestPageSteps needs no Slurm.
func TestPageSteps(t *testing.T) {
	want := map[string]bool{}
	for _, name := range testedSteps {
		want[name] = true
	}
	got := map[string]bool{}
	for name := range readSteps(t) {
		got[name] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps of the page (-that TestPage runs +that are there):\n%s", diff)
	}
}

// readSteps returns the steps of the page. A block that continues in the same
// shell belongs to the step before it.
func readSteps(t *testing.T) map[string]step {
	t.Helper()
	blocks, err := page.Blocks("../../docs/SLURM.md")
	must(t, err)
	found, last := map[string]step{}, ""
	for _, b := range blocks {
		m := stepHeader.FindStringSubmatch(b.Text)
		if m == nil {
			t.Fatalf("docs/SLURM.md:%d: the first line must name the step and its user: # A1, WHERE, as root", b.Line)
		}
		s := step{name: m[1], user: "root", text: strings.TrimPrefix(b.Text, m[0])}
		if m[2] != "as root" {
			s.user = "alice"
		}
		if m[2] == "in the same shell" {
			s.text = found[last].text + s.text
		}
		if _, duplicate := found[s.name]; duplicate {
			t.Fatalf("docs/SLURM.md:%d: a second step %s", b.Line, s.name)
		}
		last = s.name
		found[last] = s
	}
	return found
}

// site is a machine on which an administrator follows the page.
type site struct {
	*machine
	t     *testing.T
	steps map[string]step
}

// runStep runs a step. It fails the test unless the output contains everything
// that the page shows, in the same order.
func (s *site) runStep(name string) string {
	s.t.Helper()
	b, ok := s.steps[name]
	if !ok {
		s.t.Fatalf("the page has no step %s", name)
	}
	var out strings.Builder
	for _, piece := range pieces(b.text) {
		if words := strings.Fields(piece); words[0] == "systemctl" {
			s.systemctl(words[1:])
			continue
		}
		// timeout(1) runs in the machine, where it can end the step together
		// with all processes that the step started. From outside, the test
		// could kill only the process that entered the machine.
		ctx, cancel := context.WithTimeout(context.Background(), stepTimeout+20*time.Second)
		cmd := s.command(ctx, b.user, "timeout", "--kill-after=5", fmt.Sprint(stepTimeout.Seconds()), "env", "-C", "/root/page", "HOME=/tmp/page-"+b.user, "USER="+b.user,
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "bash", "-ec", piece)
		start := time.Now()
		text, err := cmd.CombinedOutput()
		cancel()
		if out.Write(text); err != nil && time.Since(start) >= stepTimeout {
			s.t.Fatalf("step %s did not end within %v\n%s\n%s\nthe jobs:\n%s", name, stepTimeout, piece, text, s.queue())
		} else if err != nil {
			s.t.Fatalf("step %s: %v\n%s\n%s", name, err, piece, text)
		}
	}
	rest := out.String()
	for _, w := range wantedOutput.FindAllStringSubmatch(b.text, -1) {
		_, after, ok := strings.Cut(rest, w[1])
		if !ok {
			s.t.Fatalf("step %s does not show %q:\n%s", name, w[1], out.String())
		}
		rest = after
	}
	return out.String()
}

// queue returns Slurm's view of all jobs.
func (m *machine) queue() string {
	out, err := m.try("root", "squeue", "--all")
	if err != nil {
		return err.Error()
	}
	return out
}

// pieces splits a step at its systemctl commands. The test replaces these
// commands, because the machine has no service manager.
func pieces(text string) (list []string) {
	var piece strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "systemctl ") {
			piece.WriteString(line)
			continue
		}
		list = append(list, piece.String(), line)
		piece.Reset()
	}
	return slices.DeleteFunc(append(list, piece.String()), func(p string) bool { return strings.TrimSpace(p) == "" })
}

// systemctl performs what a systemctl command requests.
func (s *site) systemctl(words []string) {
	s.t.Helper()
	switch request := strings.Join(words, " "); request {
	case "daemon-reload":
	case "restart slurmdbd slurmctld":
		for _, name := range words[1:] {
			s.signal(s.t, name, "TERM")
			eventually(s.t, name+" has ended", func() bool {
				_, err := s.try("root", "pgrep", "-x", name)
				return err != nil
			})
			s.restart(s.t, name)
		}
	default:
		name := strings.TrimSuffix(words[len(words)-1], ".service")
		if request != fmt.Sprintf("enable --now %s.socket %[1]s.service", name) {
			s.t.Fatalf("the test has no replacement for: systemctl %s", request)
		}
		s.startService(name)
	}
}

// unitValues returns the values of a key in an installed unit, one for each
// line that sets the key.
func (s *site) unitValues(unit, key string) (values []string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.root, "usr/local/lib/systemd/system", unit))
	must(s.t, err)
	for _, m := range regexp.MustCompile(`(?m)^`+key+`=(.*)$`).FindAllStringSubmatch(string(text), -1) {
		values = append(values, m[1])
	}
	return values
}

// startService starts a service as its installed units would: with sockets that
// another process opened, and with the units' user, environment and command. It
// does not apply the units' confinement.
func (s *site) startService(name string) {
	s.t.Helper()
	args := []string{"systemd-socket-activate"}
	var socket string
	for _, address := range s.unitValues(name+".socket", "ListenStream") {
		args = append(args, "-l", address)
		if strings.HasPrefix(address, "/") {
			socket = address
		}
	}
	dir := filepath.Join(s.root, filepath.Dir(socket))
	must(s.t, os.MkdirAll(dir, 0o755))
	if user := s.unitValues(name+".service", "User"); len(user) == 1 {
		args = append(args, "setpriv", "--reuid="+user[0], "--regid="+user[0], "--clear-groups")
	}
	args = append(append(args, "env"), strings.Fields(strings.Join(s.unitValues(name+".service", "Environment"), " "))...)
	command := strings.ReplaceAll(strings.Join(s.unitValues(name+".service", "ExecStart"), " "), "$SCHEDRESTD_OPTIONS", "")
	// systemd-socket-activate runs the service when the first client connects.
	// Here s.machine.start is that client.
	s.machine.start(s.t, name, socket, nil, append(args, strings.Fields(command)...)...)
	must(s.t, os.Chmod(filepath.Join(s.root, socket), os.FileMode(octal(s.t, s.unitValues(name+".socket", "SocketMode")))))
}

func octal(t *testing.T, values []string) (mode uint32) {
	t.Helper()
	if len(values) != 1 {
		t.Fatalf("no single mode in %v", values)
	}
	_, err := fmt.Sscanf(values[0], "%o", &mode)
	must(t, err)
	return mode
}

// newSite returns a machine on which nothing has been set up yet. Its directory
// /root/page contains the archive that "make dist" builds.
func newSite(t *testing.T) *site {
	m := freshCluster(t)
	s := &site{machine: m, t: t, steps: readSteps(t)}
	work := filepath.Join(m.root, "root/page")
	must(t, os.RemoveAll(work))
	must(t, os.MkdirAll(work, 0o755))
	must(t, os.Chmod(filepath.Join(m.root, "root"), 0o711)) // so that alice can use /root/page, which both parts of docs/SLURM.md need
	for _, user := range []string{"root", "alice"} {
		home := "/tmp/page-" + user
		m.run(t, "root", "rm", "-rf", home)
		m.run(t, user, "mkdir", home)
	}
	archive(t, work)
	t.Cleanup(func() {
		m.try("root", "make", "-s", "-C", "/root/page/schedrestd-page", "uninstall")
		os.RemoveAll(work)
	})
	return s
}

// archive builds an archive with "make dist" and copies it into dir. The
// archives in the source tree stay unchanged.
func archive(t *testing.T, dir string) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "dist")
	if out, err := exec.Command("make", "-s", "-C", "../..", "dist", "VERSION=page", "DIST="+to).CombinedOutput(); err != nil {
		t.Fatalf("make dist: %v\n%s", err, out)
	}
	if out, err := exec.Command("sh", "-c", `cp "$0"/*.tar.gz "$1"`, to, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// removeTokens removes the settings that step A1 adds to Slurm's
// configuration.
func (s *site) removeTokens() {
	s.t.Helper()
	for _, name := range []string{"slurm.conf", "slurmdbd.conf"} {
		file := filepath.Join(s.root, "etc/slurm", name)
		before, err := os.ReadFile(file)
		must(s.t, err)
		after := regexp.MustCompile(`(?m)^AuthAlt.*\n`).ReplaceAll(before, nil)
		must(s.t, os.WriteFile(file, after, 0)) // keeps owner and mode
	}
	s.systemctl([]string{"restart", "slurmdbd", "slurmctld"})
	if out, err := s.try("root", "scontrol", "token"); err == nil {
		s.t.Fatalf("there are tokens before step A1: %s", out)
	}
}

// TestPage follows both parts of docs/SLURM.md. It starts with a Slurm that
// accepts no tokens, and ends with jobs that a user has submitted.
func TestPage(t *testing.T) {
	s := newSite(t)
	alice := users[0]
	s.removeTokens()
	s.runStep("A1")
	s.runStep("A2")
	s.runStep("A3")
	t.Run("tokens", func(t *testing.T) {
		s := &site{s.machine, t, s.steps}
		s.runStep("A4")
		s.runStep("A5")
		s.runSubmitStep("A6", alice.name, alice.id, "first")
	})
	t.Run("tokens, by hand", func(t *testing.T) {
		s := &site{s.machine, t, s.steps}
		s.runByHand("A4 by hand", "curl -sS http://127.0.0.1:6820/readyz")
		s.runSubmitStep("A6", alice.name, alice.id, "first")
	})
	t.Run("users", func(t *testing.T) {
		s := &site{s.machine, t, s.steps}
		s.runStep("B1")
		s.runStep("B3")
		s.runSubmitStep("B4", alice.name, alice.id, "second")
		if out := s.runStep("B5"); !regexp.MustCompile(`(?m)^root +schedrestd$`).MatchString(out) ||
			!regexp.MustCompile(`(?m)^alice +schedrestd-work$`).MatchString(out) {
			t.Errorf("want a parent of root's and a worker of alice's:\n%s", out)
		}
	})
	t.Run("users, by hand", func(t *testing.T) {
		s := &site{s.machine, t, s.steps}
		s.runByHand("B3 by hand", "setpriv --reuid=alice --regid=alice --init-groups curl -sS --unix-socket /run/schedrestd-users/socket http://x/readyz")
		s.runSubmitStep("B4", alice.name, alice.id, "second")
	})
}

// runByHand runs a step that continues until the test ends. ready is a command
// that succeeds when the gateway serves.
func (s *site) runByHand(name, ready string) {
	s.t.Helper()
	log, err := os.Create(filepath.Join(s.root, "var/log/slurm/byhand.log"))
	must(s.t, err)
	defer log.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := s.command(ctx, "root", "env", "PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/bin", "bash", "-c", s.steps[name].text)
	cmd.Stdout, cmd.Stderr = log, log
	must(s.t, cmd.Start())
	s.t.Cleanup(func() {
		s.try("root", "pkill", "-INT", "-x", "schedrestd") // only in the machine
		defer time.AfterFunc(stepTimeout, cancel).Stop()
		cmd.Wait()
		if ctx.Err() != nil {
			s.t.Errorf("step %s did not end within %v of Ctrl-C", name, stepTimeout)
			s.try("root", "pkill", "-KILL", "-x", "schedrestd")
		}
	})
	eventually(s.t, name+" serves", func() bool {
		_, err := s.try("root", "sh", "-c", ready)
		return err == nil
	})
}

// runSubmitStep runs a step that submits a job. It fails the test unless the
// job belongs to the user.
func (s *site) runSubmitStep(name, user string, uid uint32, job string) {
	s.t.Helper()
	output := "/tmp/page-" + user + "/" + job + ".out"
	os.Remove(filepath.Join(s.root, output))
	out := s.runStep(name)
	m := regexp.MustCompile(`"job_id":(\d+)`).FindStringSubmatch(out)
	if m == nil {
		s.t.Fatalf("step %s shows no job: %s", name, out)
	}
	s.checkRanAs(s.t, m[1], user, uid, output)
}

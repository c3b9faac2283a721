package kernels

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/kernels/plan"
)

// etc maps the names of the files in the machine's /etc to their contents.
var etc = map[string]string{
	"passwd": "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1:daemon:/:/bin/false\nsched:x:990:990::/:/bin/false\ngate:x:991:991::/:/bin/false\n" +
		"alice:x:1000:1000::/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
	"group":           "root:x:0:\ndaemon:x:1:\nsched:x:990:\ngate:x:991:\nalice:x:1000:\nnogroup:x:65534:\n",
	"hosts":           "127.0.0.1 localhost guest\n::1 localhost\n",
	"hostname":        "guest\n",
	"nsswitch.conf":   "passwd: files\ngroup: files\nhosts: files\n",
	"sched/tcp.conf":  "ClusterName=c\nSchedctldHost=127.0.0.1\nAuthAltTypes=auth/jwt\n",
	"sched/unix.conf": "ClusterName=c\nSchedctldHost=127.0.0.1\nAuthInfo=socket=/nowhere\nAuthAltTypes=auth/jwt\n",
}

// startup is a way to start the gateway.
type startup struct {
	name  string // name on the page
	uid   uint32
	args  string
	write map[string]string // files to write before the start; if the kernel lacks one of them, the start is skipped
	env   []string

	profile string // AppArmor profile (profiles)
}

var startups = []startup{
	{name: "root", uid: 0, args: "-u gate -g gate -f /etc/sched/tcp.conf 127.0.0.1:6820"},
	{name: "root, with UNIX sockets", uid: 0, args: "-u gate -g gate -f /etc/sched/unix.conf unix:/run/s"},
	{name: "a user who may not create user namespaces", uid: 1000, args: "-f /etc/sched/tcp.conf 127.0.0.1:6820", write: map[string]string{usernsSysctl: "0\n"}},
	{name: "a user", uid: 1000, args: "-f /etc/sched/tcp.conf 127.0.0.1:6820", write: map[string]string{usernsSysctl: "1\n"}},
	{name: "a user, without capabilities in user namespaces", uid: 1000, args: "-f /etc/sched/tcp.conf 127.0.0.1:6820", profile: "ubuntu"},
	{name: "root, with AppArmor's profile", uid: 0, args: "-u gate -g gate -f /etc/sched/tcp.conf 127.0.0.1:6820", profile: "installed"},
	{name: "a user, with AppArmor's profile", uid: 1000, args: "-f /etc/sched/tcp.conf 127.0.0.1:6820", profile: "installed"},
}

// steps returns the steps to run in a machine.
func steps() []plan.Step {
	list := []plan.Step{
		{Name: "release", Argv: []string{"/bin/cat", "/proc/sys/kernel/osrelease"}, Limit: checkLimit},
		{Name: "users make user namespaces", Write: map[string]string{usernsSysctl: "1\n"}, Optional: true},
	}
	for _, s := range startups {
		if s.profile != "" {
			list = append(list, withProfile(s.profile, checkStep(s))...)
			continue
		}
		list = append(list, checkStep(s))
	}
	list = append(list, checkStep(startup{name: "root, all required", args: startups[0].args, env: []string{"SCHEDRESTD_SECURITY=require_confinement"}}))
	for _, p := range testPackages {
		for _, uid := range p.as {
			list = append(list, plan.Step{Name: fmt.Sprintf("tests of %s as %d", p.name, uid), Dir: "/src/" + p.name, UID: uid, Limit: time.Hour,
				Argv: append([]string{"./test", "-test.v", "-test.short", "-test.parallel", "1", "-test.timeout", "50m"}, p.flags()...), Env: append([]string{"TMPDIR=/tmp"}, p.env...)})
		}
	}
	filter := regexp.MustCompile(os.Getenv("KERNELS_STEPS"))
	return slices.DeleteFunc(list, func(s plan.Step) bool {
		return len(s.Argv) > 0 && s.Name != "release" && !filter.MatchString(s.Name)
	})
}

const (
	usernsSysctl = "/proc/sys/kernel/unprivileged_userns_clone" // setting that only Debian's kernels have
	checkLimit   = 10 * time.Minute
)

func checkStep(s startup) plan.Step {
	return plan.Step{Name: "check as " + s.name, Write: s.write, Optional: true, UID: s.uid, Dir: "/", Limit: checkLimit,
		Argv: strings.Fields("/usr/local/sbin/schedrestd --check-confinement " + s.args), Env: append(s.env, "SCHED_JWT=daemon")}
}

// TestKernel checks that each layer of the sandbox is on or off as
// docs/KERNELS.md says for this kernel, and that the sandbox tests pass.
func TestKernel(t *testing.T) {
	m := bootMachine(t)
	page, err := os.ReadFile("../../docs/KERNELS.md")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`^\d+\.\d+`).FindString(m.output("release"))
	for _, s := range startups {
		if r, done := m.results["check as "+s.name]; !done || r.Status == plan.Skipped {
			continue
		}
		row := fmt.Sprintf("| %s | %s | %s |", version, s.name, layers(m.output("check as "+s.name)))
		if !strings.Contains(string(page), "\n"+row+"\n") {
			t.Errorf("docs/KERNELS.md has no row\n%s\n%s", row, m.output("check as "+s.name))
		}
		for _, landlock := range landlockDetail.FindAllString(m.output("check as "+s.name), -1) {
			if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), landlock) {
				t.Errorf("docs/KERNELS.md does not explain %s", landlock)
			}
		}
		if strings.Contains(m.output("check as "+s.name), "These were not killed:") {
			t.Errorf("as %s:\n%s", s.name, m.output("check as "+s.name))
		}
	}
	if r, done := m.results["check as root, all required"]; done {
		_, off, _ := strings.Cut(layers(m.output("check as root")), " | ")
		if succeeded := r.Status == 0; succeeded != (off == "nothing") {
			t.Errorf("with require_confinement a start as root has exit status %d:\n%s", r.Status, r.Output)
		}
	}
	for name, r := range m.results {
		if strings.Contains(name, "AppArmor profile") && r.Status != 0 {
			t.Errorf("%s: exit status %d\n%s", name, r.Status, r.Output)
		}
		if strings.HasPrefix(name, "tests of") && r.Status != 0 {
			t.Errorf("%s: exit status %d\n%s", name, r.Status, failures(string(r.Output)))
		}
	}
}

// output returns the output of a step.
func (m *machine) output(step string) string {
	return strings.TrimSpace(string(m.results[step].Output))
}

// landlockDetail matches a version of Landlock with what it denies.
var landlockDetail = regexp.MustCompile(`Landlock \d+ \([^)]*\)`)

// theFive are layers that are usually on or off together. docs/KERNELS.md calls
// them "the five".
const theFive = "IPC namespace, network namespace, root of their own, PID namespace, empty capability bounding set"

// layers lists the layers that the output of a check reports as on, and those
// that it reports as off.
func layers(check string) string {
	lists := map[string][]string{}
	table, _, _ := strings.Cut(check, "\n\n")
	for _, l := range regexp.MustCompile(`(?m)^(.{34}) (on|off)\b *(.*)$`).FindAllStringSubmatch(table, -1) {
		part, state, detail := strings.TrimSpace(l[1]), l[2], l[3]
		switch {
		case part == "the worker's own uid and gid", part == "no_new_privs", part == "system call filter" && state == "on":
			continue
		case part == "Landlock" && state == "on":
			part, _, _ = strings.Cut(detail, " (")
		}
		lists[state] = append(lists[state], part)
	}
	list := func(state string) string {
		return strings.Replace(cmp.Or(strings.Join(lists[state], ", "), "nothing"), theFive, "the five", 1)
	}
	return list("on") + " | " + list("off")
}

// failures returns the parts of a test's output that contain a failure or a
// panic.
func failures(out string) string {
	var list []string
	for _, part := range strings.Split(out, "=== RUN") {
		if strings.Contains(part, "--- FAIL") || strings.Contains(part, "panic:") {
			list = append(list, part)
		}
	}
	text := strings.Join(list, "")
	return text[:min(len(text), 20000)]
}

// TestListedTestsExist checks that each name in testPackages matches a test of
// the named package. It needs no virtual machine.
func TestListedTestsExist(t *testing.T) {
	for _, p := range testPackages {
		files, _ := filepath.Glob(filepath.Join("../..", p.name, "*_test.go"))
		var sources []byte
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sources = append(sources, text...)
		}
		for _, name := range append(slices.Concat(p.run, p.skip), `\w+`) {
			if !regexp.MustCompile(`(?m)^func Test` + strings.ReplaceAll(name, ".", `\w`) + `\(`).Match(sources) {
				t.Errorf("package %s has no Test%s", p.name, name)
			}
		}
	}
}

// TestLayers checks that the function layers finds the layers in the output of
// a check. It needs no virtual machine.
func TestLayers(t *testing.T) {
	const output = `PART                               IS   WHY
the worker's own uid and gid       on   gate (991:991)
PID namespace                      on
root of their own                  off  shared
no_new_privs                       on
Landlock                           on   Landlock 2 (files)
Landlock for TCP                   off  workers connect UNIX sockets, and this kernel's knows no TCP: Linux 6.7
system call filter                 on   seccomp

A worker was started
`
	if got, want := layers(output), "PID namespace, Landlock 2 | root of their own, Landlock for TCP"; got != want {
		t.Errorf("it is\n%s\nnot\n%s", got, want)
	}
	var all strings.Builder
	for _, part := range strings.Split(theFive, ", ") {
		fmt.Fprintf(&all, "%-34s off\n", part)
	}
	if got, want := layers(all.String()), "nothing | the five"; got != want {
		t.Errorf("it is\n%s\nnot\n%s", got, want)
	}
}

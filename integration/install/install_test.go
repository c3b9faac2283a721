package install

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/integration/harness"
)

// installedFiles contains the mode of each file that "make install" puts below
// PREFIX. It omits some of the documents and manual pages.
var installedFiles = map[string]fs.FileMode{
	"bin/schedctl":               0o755,
	"sbin/schedrestd":            0o755,
	"sbin/scheddbd":              0o755,
	"sbin/schedctld":             0o711,
	"sbin/schedrestd-config":     0o711,
	"sbin/schedrestd-keeper":     0o711,
	"sbin/schedrestd-resolver":   0o711,
	"sbin/schedrestd-auditor":    0o711,
	"sbin/schedrestd-exporter":   0o711,
	"sbin/schedrestd-output":     0o711,
	"sbin/schedrestd-credential": 0o711,
	"sbin/schedrestd-dispatcher": 0o711,
	"sbin/schedrestd-worker":     0o711,

	"lib/systemd/system/schedctld.service":            0o644,
	"lib/systemd/system/scheddbd.service":             0o644,
	"lib/systemd/system/schedctld.socket":             0o644,
	"lib/systemd/system/scheddbd.socket":              0o644,
	"lib/systemd/system/schedrestd.service":           0o644,
	"lib/systemd/system/schedrestd.socket":            0o644,
	"lib/systemd/system/schedrestd@.service":          0o644,
	"lib/systemd/system/schedrestd@.socket":           0o644,
	"lib/systemd/system/schedrestd-https.socket":      0o644,
	"lib/systemd/system/schedrestd-inetd.socket":      0o644,
	"lib/systemd/system/schedrestd-inetd@.service":    0o644,
	"lib/systemd/system/schedrestd-relisten@.service": 0o644,
	"lib/systemd/system/schedrestd-waiting@.service":  0o644,
	"lib/systemd/system/schedctld-relisten@.service":  0o644,
	"lib/systemd/system/schedrestd-users.service":     0o644,
	"lib/systemd/system/schedrestd-users.socket":      0o644,
	"lib/sysusers.d/schedrestd.conf":                  0o644,
	"lib/tmpfiles.d/schedrestd.conf":                  0o644,

	"share/bash-completion/completions/schedrestd":         0o644,
	"share/zsh/site-functions/_schedrestd":                 0o644,
	"share/fish/vendor_completions.d/schedrestd.fish":      0o644,
	"share/bash-completion/completions/schedctl":           0o644,
	"share/zsh/site-functions/_schedctl":                   0o644,
	"share/fish/vendor_completions.d/schedctl.fish":        0o644,
	"share/man/man1/schedctl.1":                            0o644,
	"share/man/man5/sched.conf.5":                          0o644,
	"share/man/man8/schedctld.8":                           0o644,
	"share/man/man8/scheddbd.8":                            0o644,
	"share/man/man8/schedrestd.8":                          0o644,
	"share/doc/schedrestd/INSTALL.md":                      0o644,
	"share/doc/schedrestd/generated/ENDPOINTS.md":          0o644,
	"share/doc/schedrestd/generated/RPC.md":                0o644,
	"share/doc/schedrestd/LICENSE":                         0o644,
	"share/doc/schedrestd/THIRD-PARTY.txt":                 0o644,
	"share/doc/schedrestd/examples/root.conf":              0o644,
	"share/doc/schedrestd/examples/controllers.conf":       0o644,
	"share/doc/schedrestd/examples/sched.conf":             0o644,
	"share/doc/schedrestd/examples/scheddbd.conf":          0o644,
	"share/doc/schedrestd/examples/schedrestd.env":         0o644,
	"share/doc/schedrestd/examples/prometheus.yml":         0o644,
	"share/doc/schedrestd/examples/prometheus-alerts.yml":  0o644,
	"share/doc/schedrestd/examples/haproxy.cfg":            0o644,
	"share/doc/schedrestd/examples/haproxy-clusters.cfg":   0o644,
	"share/doc/schedrestd/examples/haproxy-clusters.map":   0o644,
	"share/doc/schedrestd/examples/clusters":               0o644,
	"share/doc/schedrestd/examples/nginx.conf":             0o644,
	"share/doc/schedrestd/examples/proxy-socket.conf":      0o644,
	"share/doc/schedrestd/examples/grafana-dashboard.json": 0o644,
	"share/doc/schedrestd/examples/grafana-cluster.json":   0o644,
}

// makeIn runs make with arguments in the project's directory. The umask is
// strict, because the modes of installed files must not depend on it.
func makeIn(t *testing.T, arguments ...string) {
	t.Helper()
	cmd := exec.Command("sh", append([]string{"-c", `umask 077; exec make -s -C "$0" "$@"`, harness.Root}, arguments...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

// install runs "make install" with a temporary directory as PREFIX, so that the
// paths in the units exist. It returns the directory.
func install(t *testing.T) (prefix string) {
	t.Helper()
	prefix = t.TempDir()
	makeIn(t, "install", "PREFIX="+prefix, "SYSCONFDIR="+prefix+"/etc")
	return prefix
}

// filesIn returns the files below dir with their modes. It also checks that the
// user of this process owns the files.
func filesIn(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	files := map[string]fs.FileMode{}
	harness.Must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() {
			if path != dir && info.Mode().Perm() != 0o755 {
				t.Errorf("%s has mode %o", path, info.Mode().Perm())
			}
			return nil
		}
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() || os.Geteuid() == 0 && st.Gid != 0 {
			t.Errorf("%s belongs to %d:%d", path, st.Uid, st.Gid)
		}
		name, err := filepath.Rel(dir, path)
		files[name] = info.Mode()
		return err
	}))
	return files
}

// TestVersion checks that every program prints the commit from which it was
// built.
func TestVersion(t *testing.T) {
	head, _ := exec.Command("git", "-C", harness.Root, "rev-parse", "HEAD").Output()
	for name := range installedFiles {
		if !strings.HasPrefix(name, "bin/") && !strings.HasPrefix(name, "sbin/") {
			continue
		}
		name = filepath.Base(name)
		out, err := exec.Command(filepath.Join(harness.Bin, name), "-V").CombinedOutput()
		m := regexp.MustCompile(`^` + name + ` \d+\.\d+\.\d+(?: \(commit ([0-9a-f]+)(-dirty)?, \d{4}-\d\d-\d\d\))?(?:, FIPS 140-3 module \S+)?\n$`).FindSubmatch(out)
		if err != nil || m == nil || len(head) > 0 && (len(m[1]) == 0 || !bytes.HasPrefix(head, m[1])) {
			t.Errorf("%s -V: %v, printed %q; HEAD is %s", name, err, out, head)
		}
	}
}

// TestArchive checks that the archive contains the licences, and can be
// installed without the project and without Go.
func TestArchive(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	makeIn(t, "dist", "VERSION=test", "COMPRESSION=1", "DIST="+filepath.Join(dir, "dist"))
	script := `cd "$0" && (cd dist && sha256sum --quiet -c SHA256SUMS)
		tar -xzf dist/schedrestd-test-linux-*.tar.gz && cd schedrestd-test
		grep -q 'Apache License' LICENSE && grep -q 'golang.org/x/sys' deploy/THIRD-PARTY.txt
		PATH=/usr/bin:/bin:/usr/sbin:/sbin make -s install PREFIX=/usr/local DESTDIR="$0/root"`
	if out, err := exec.Command("sh", "-ec", script, dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name := range installedFiles {
		if _, err := os.Stat(filepath.Join(dir, "root/usr/local", name)); err != nil {
			t.Error(err)
		}
	}
}

// TestInstall installs twice into the same DESTDIR, and then uninstalls. After
// the installation, exactly the expected files must exist, each with its mode.
// At the end, no file may be left.
func TestInstall(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for range 2 {
		makeIn(t, "install", "DESTDIR="+root, "PREFIX=/opt/gate")
	}
	got := filesIn(t, filepath.Join(root, "opt/gate"))
	maps.DeleteFunc(got, func(name string, mode fs.FileMode) bool {
		_, listed := installedFiles[name]
		document := strings.HasPrefix(name, "share/doc/") || strings.HasPrefix(name, "share/man/")
		return !listed && document && mode == 0o644
	})
	if diff := cmp.Diff(installedFiles, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	pages, err := filepath.Glob(filepath.Join(harness.Root, "docs/man/*.[1-9]"))
	harness.Must(t, err)
	for _, page := range pages {
		if _, err := os.Stat(filepath.Join(root, "opt/gate/share/man/man"+page[len(page)-1:], filepath.Base(page))); err != nil {
			t.Error(err)
		}
	}
	design, err := filepath.Glob(filepath.Join(harness.Root, "docs/design/*.md"))
	harness.Must(t, err)
	for _, page := range design {
		if _, err := os.Stat(filepath.Join(root, "opt/gate/share/doc/schedrestd", filepath.Base(page))); err == nil {
			t.Errorf("%s is for contributors and was installed", page)
		}
	}
	makeIn(t, "uninstall", "DESTDIR="+root, "PREFIX=/opt/gate")
	for name := range filesIn(t, root) {
		t.Errorf("%s was not removed", name)
	}
}

// TestUnitsNameWhatIsInstalled checks that each program that a unit starts is
// installed at the path that the unit names.
func TestUnitsNameWhatIsInstalled(t *testing.T) {
	t.Parallel()
	prefix := install(t)
	var files []string
	for name := range installedFiles {
		if dir := filepath.Base(filepath.Dir(name)); dir == "system" || dir == "examples" {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	command := regexp.MustCompile(`(?m)^ExecStart=(\S+)`)
	programs := 0
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(prefix, name))
		harness.Must(t, err)
		if placeholder := regexp.MustCompile(`@[A-Z]+@`).Find(text); placeholder != nil {
			t.Errorf("%s has %s in it", name, placeholder)
		}
		// If ExecStart= uses a variable that is not set, systemd writes a line
		// to the journal at each start. So the unit itself must set each
		// variable. The environment file can still override the value.
		for _, m := range regexp.MustCompile(`(?m)^ExecStart=.* \$(\w+)`).FindAllSubmatch(text, -1) {
			if !strings.HasSuffix(name, ".conf") && !regexp.MustCompile(`(?m)^Environment=(.* )?`+string(m[1])+`=`).Match(text) {
				t.Errorf("%s sets no %s", name, m[1])
			}
		}
		for _, m := range command.FindAllSubmatch(text, -1) {
			programs++
			program := string(m[1])
			if program == "/bin/sh" && strings.Contains(name, "-relisten@") {
				continue // starts what systemd itself provides
			}
			if info, err := os.Stat(program); !strings.HasPrefix(program, prefix) || err != nil || info.Mode()&0o111 == 0 {
				t.Errorf("%s starts %s: %v", name, program, err)
			}
		}
	}
	if programs < 6 {
		t.Errorf("%d programs are started", programs)
	}
}

// systemdProgram returns the path of a program of Debian's package systemd.
func systemdProgram(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not here; apt-get install systemd", name)
	}
	return path
}

// TestUnitsMatchSystemdVersion checks that a unit contains DelegateSubgroup=
// only for systemd 254 or later. Earlier versions would warn about this
// setting.
func TestUnitsMatchSystemdVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"252": false, "253": false, "254": true, "257": true} {
		prefix := t.TempDir()
		makeIn(t, "install", "PREFIX="+prefix, "SYSTEMD_VERSION="+version)
		text, err := os.ReadFile(filepath.Join(prefix, "lib/systemd/system/schedctld.service"))
		harness.Must(t, err)
		if got := strings.Contains(string(text), "\nDelegateSubgroup=schedctld\n"); got != want {
			t.Errorf("systemd %s: DelegateSubgroup is there: %v", version, got)
		}
	}
}

// TestUnitsVerify checks that systemd finds no fault in the units.
func TestUnitsVerify(t *testing.T) {
	t.Parallel()
	program := systemdProgram(t, "systemd-analyze")
	prefix := install(t)
	dir := filepath.Join(prefix, "lib/systemd/system")
	names, err := os.ReadDir(dir)
	harness.Must(t, err)
	arguments := []string{"verify", "--man=no"}
	for _, n := range names {
		instance := "@1."
		if strings.Contains(n.Name(), "-relisten@") || strings.Contains(n.Name(), "-waiting@") {
			instance = "@schedrestd.socket."
		}
		arguments = append(arguments, strings.Replace(n.Name(), "@.", instance, 1))
	}
	cmd := exec.Command(program, arguments...)
	cmd.Env = append(os.Environ(), "SYSTEMD_UNIT_PATH="+dir+":") // in addition to the machine's own units
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, prefix) {
			t.Error(line)
		}
	}
}

// TestUnitsAreHardened checks that the exposure level of each unit does not
// exceed its limit in the map levels. The limits are on the scale of
// systemd-analyze's option --threshold=, where a printed level of 2.0
// corresponds to 20. The unit of slurmrestd would have 92.
func TestUnitsAreHardened(t *testing.T) {
	t.Parallel()
	program := systemdProgram(t, "systemd-analyze")
	prefix := install(t)
	dir := filepath.Join(prefix, "lib/systemd/system")
	levels := map[string]int{
		"schedrestd.service": 20, "schedrestd@.service": 20, "schedrestd-inetd@.service": 20, "scheddbd.service": 20,
		"schedrestd-users.service": 40, "with root.conf/schedrestd.service": 40,
	}
	dropInDir := filepath.Join(dir, "with root.conf")
	harness.Must(t, os.MkdirAll(filepath.Join(dropInDir, "schedrestd.service.d"), 0o755))
	for to, from := range map[string]string{
		"schedrestd.service":             filepath.Join(dir, "schedrestd.service"),
		"schedrestd.service.d/root.conf": filepath.Join(prefix, "share/doc/schedrestd/examples/root.conf"),
	} {
		text, err := os.ReadFile(from)
		harness.Must(t, err)
		harness.Must(t, os.WriteFile(filepath.Join(dropInDir, to), text, 0o644))
	}
	for name, maxExposure := range levels {
		out, err := exec.Command(program, "security", "--offline=true", "--no-pager", fmt.Sprintf("--threshold=%d", maxExposure), filepath.Join(dir, name)).CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Logf("%s: %s", name, lines[len(lines)-1])
		if err != nil {
			t.Errorf("%s: more than %d: %v\n%s", name, maxExposure, err, out)
		}
	}
}

// TestUnitsPermitTheSandbox checks that the units permit everything that the
// gateway needs, with and without root, to set up its sandbox and to confine
// its workers. The units name sets of system calls. The test expands these sets
// as the installed systemd does, because the sets differ between versions of
// systemd.
func TestUnitsPermitTheSandbox(t *testing.T) {
	t.Parallel()
	sets, err := exec.Command(systemdProgram(t, "systemd-analyze"), "syscall-filter", "--no-pager").Output()
	harness.Must(t, err)
	prefix := install(t)
	dir, unprivileged := filepath.Join(prefix, "lib/systemd/system"), []string{"unshare", "clone", "seccomp", "prctl", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"}
	root := append(unprivileged[:len(unprivileged):len(unprivileged)], "mount", "umount2", "pivot_root", "open_tree", "move_mount", "setns", "setresuid", "setresgid", "setgroups")
	service := filepath.Join(dir, "schedrestd.service")
	for name, tt := range map[string]struct {
		files, calls []string
		namespaces   string
	}{
		"service": {[]string{service}, unprivileged, "user net ipc"},
		"root":    {[]string{service, filepath.Join(prefix, "share/doc/schedrestd/examples/root.conf")}, root, "net ipc mnt pid"},
		"users":   {[]string{filepath.Join(dir, "schedrestd-users.service")}, root, "net ipc mnt pid"},
		"inetd":   {[]string{filepath.Join(dir, "schedrestd-inetd@.service")}, unprivileged, "user net ipc"},
	} {
		var text strings.Builder
		for _, f := range tt.files {
			part, err := os.ReadFile(f)
			harness.Must(t, err)
			text.Write(part)
		}
		permitted := permittedWords(text.String(), "SystemCallFilter", callSets(string(sets)))
		for _, call := range tt.calls {
			if !permitted[call] {
				t.Errorf("%s: the filter forbids %s", name, call)
			}
		}
		want := permittedWords("N="+tt.namespaces, "N", nil)
		if diff := cmp.Diff(want, permittedWords(text.String(), "RestrictNamespaces", nil)); diff != "" {
			t.Errorf("%s: namespaces (-want +got):\n%s", name, diff)
		}
		if strings.Contains(tt.namespaces, "mnt") && !strings.Contains(text.String(), "CAP_SYS_ADMIN") {
			t.Errorf("%s: no user may create these namespaces", name)
		}
		// With User=root, systemd 257 starts the service without CAP_SETUID.
		// Without User=, the service has all capabilities in the bounding set.
		user := regexp.MustCompile(`(?m)^User=(.*)$`).FindAllStringSubmatch(text.String(), -1)
		if strings.Contains(tt.namespaces, "mnt") && len(user) > 0 && user[len(user)-1][1] != "" {
			t.Errorf("%s: User=%s", name, user[len(user)-1][1])
		}
		if !regexp.MustCompile(`(?m)^LogsDirectory=\S`).MatchString(text.String()) {
			t.Errorf("%s: there is no directory for an audit log", name)
		}
	}
}

// callSets parses the output of "systemd-analyze syscall-filter". It returns
// the members of each set, which may be sets themselves.
func callSets(text string) map[string][]string {
	sets, name := map[string][]string{}, ""
	for line := range strings.Lines(text) {
		word := strings.TrimSpace(line)
		switch {
		case word == "" || strings.HasPrefix(word, "#"):
		case strings.HasPrefix(line, "@"):
			name = word
		default:
			sets[name] = append(sets[name], word)
		}
	}
	return sets
}

// permittedWords returns the words that a unit permits with the setting key.
// Each line with this setting adds words. If the value begins with ~, the line
// removes words instead.
func permittedWords(unit, key string, sets map[string][]string) map[string]bool {
	permitted := map[string]bool{}
	var apply func(word string, on bool)
	apply = func(word string, on bool) {
		for _, member := range sets[word] {
			apply(member, on)
		}
		switch {
		case strings.HasPrefix(word, "@"):
		case on:
			permitted[word] = true
		default:
			delete(permitted, word)
		}
	}
	for line := range strings.Lines(unit) {
		value, ok := strings.CutPrefix(strings.TrimSpace(line), key+"=")
		if !ok {
			continue
		}
		value, off := strings.CutPrefix(value, "~")
		for word := range strings.FieldsSeq(value) {
			apply(word, !off)
		}
	}
	return permitted
}

// TestSysusers checks that systemd can read the sysusers.d file, and would
// create the users that the units name.
func TestSysusers(t *testing.T) {
	t.Parallel()
	program := systemdProgram(t, "systemd-sysusers")
	root := t.TempDir()
	makeIn(t, "install", "DESTDIR="+root, "PREFIX=/usr")
	out, err := exec.Command(program, "--dry-run", "--root="+root).CombinedOutput()
	harness.Must(t, err)
	for _, user := range []string{"schedrestd", "sched"} {
		if !strings.Contains(string(out), "Creating user '"+user+"'") {
			t.Errorf("no user %s:\n%s", user, out)
		}
	}
}

// TestInstalledProgramsServe checks that the installed programs can run a job,
// from its submission over REST to its output.
func TestInstalledProgramsServe(t *testing.T) {
	t.Parallel()
	prefix := install(t)
	cmd := exec.Command(filepath.Join(prefix, "bin/schedctl"), "demo", "--once", "--listen", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "TMPDIR=/tmp") // for sockets, whose paths must be short
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "COMPLETED, exit code 0") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestSystemdActivates checks that a service manager can open the port and
// start the gateway when a client connects. The manager may start one gateway
// for all clients. Or it may start a gateway for each connection, and pass it
// the connection as standard input.
func TestSystemdActivates(t *testing.T) {
	for name, options := range map[string][]string{"once": nil, "for each connection": {"--inetd", "--accept"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := systemdProgram(t, "systemd-socket-activate")
			l := harness.NewLab(t, func(l *harness.Lab) {
				gateway, last := l.Restd.Path, len(l.Restd.Args)-1
				arguments := append([]string{"--listen", l.Restd.Args[last]}, options...)
				for _, variable := range l.Restd.Env {
					arguments = append(arguments, "--setenv="+variable)
				}
				l.Restd.Path = program
				l.Restd.Args = append(append(arguments, gateway), l.Restd.Args[:last]...)
			})
			for range 3 {
				c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				a, err := l.TryRequest(c, "GET", "/sched/"+harness.Version+"/ping", "")
				harness.Must(t, err)
				a.Want(t, 200)
			}
		})
	}
}

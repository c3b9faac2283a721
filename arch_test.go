// Package schedrestd_test checks the architecture: which packages may import
// which, and which packages the privileged parent links (docs/ARCHITECTURE.md,
// docs/TRUST.md).
package schedrestd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/schedrestd.deps")

const module = "schedrestd/"

// floors lists the layers of packages (see "Floors" in docs/ARCHITECTURE.md),
// from the lowest up. A package may import packages from lower floors and from
// its own folder. A folder stands for all packages in it, except packages that
// have an entry of their own.
var floors = [][]string{
	{"errs", "exitstatus", "loglevel", "metric", "model", "printable", "release", "fdpass", "sockaddr", "typo"},
	{"api/schema", "become", "endpoint", "guard", "hmackey", "http1", "ipc", "metric/cluster", "notify", "penalty", "feature", "privsep/thread", "rate", "rpc/codec", "rpc/fault", "rpc/munge", "rpc/sack", "rpc/wire", "security", "semaphore", "sockdiag", "socket", "throttle", "zone"},
	{"confinement", "security/self"},
	{"api", "conf", "dispatcher/admission", "dispatcher/relay", "privsep/identity", "privsep/netns", "privsep/spawn", "proof", "rpc/message", "service"},
	{"auth", "dispatcher/dial", "dispatcher/process", "handlers", "metric/table", "privsep/auditlog", "privsep/inetd", "privsep/keys", "privsep/listen", "privsep/planner", "privsep/program", "rpc/client", "rpc/server"},
	{"dispatcher/inetd", "dispatcher/service"},
	{"dispatcher/pool"},
	{"daemon", "dispatcher/auditlog", "dispatcher/dispatch"}, // daemon contains the code that ctld and dbd share, so that neither has a copy
	{"auditor", "ctld", "dbd", "dispatcher", "exporter", "keeper", "plan", "privsep", "resolver", "worker"},
	{"cli", "demo"},
	{"bench", "cmd", "integration", "lint", "packaging"},
}

// sameFloorImports lists the permitted imports between folders of the same
// floor, each with its reason.
var sameFloorImports = map[[2]string]string{
	{"handlers", "auth"}:      "a handler is given the credential that auth made",
	{"endpoint", "become"}:    "become looks up host names",
	{"endpoint", "guard"}:     "it writes paths in hints",
	{"endpoint", "ipc"}:       "the kinds of network are ipc's",
	{"endpoint", "socket"}:    "a UNIX socket's path has a longest length",
	{"rpc/sack", "rpc/munge"}: "both connect to a socket whose user is checked",
	{"rpc/munge", "become"}:   "the user who serves munged's socket is checked",
	{"socket", "guard"}:       "a user who could replace a socket's directory could serve in its place",
}

// allowedImports maps a package to all packages of this module that it may
// import. It contains only the packages for which the rules of floors are too
// lenient.
var allowedImports = map[string][]string{
	"privsep":              {"become", "errs", "exitstatus", "ipc", "notify", "printable", "privsep/auditlog", "privsep/identity", "privsep/inetd", "privsep/keys", "privsep/listen", "privsep/netns", "privsep/program", "privsep/spawn", "privsep/thread", "fdpass", "rate", "security", "socket"}, // runs as root
	"privsep/auditlog":     {"become", "errs", "guard", "ipc"},
	"privsep/identity":     {"become", "errs", "ipc", "security"},
	"privsep/inetd":        {"become", "errs", "ipc", "privsep/identity", "security", "sockaddr"},
	"privsep/keys":         {"become", "errs", "guard", "ipc", "privsep/spawn", "security"},
	"privsep/listen":       {"become", "errs", "ipc", "notify", "privsep/netns", "fdpass", "sockaddr", "socket"},
	"privsep/netns":        {"become", "errs", "guard", "privsep/thread"},
	"privsep/planner":      {"become", "errs", "exitstatus", "guard", "ipc", "privsep/spawn", "security"},
	"privsep/program":      {"errs", "ipc", "privsep/spawn", "security"},
	"privsep/spawn":        {"become", "errs", "exitstatus", "guard", "ipc", "printable", "privsep/thread", "security"},
	"privsep/thread":       {},
	"dispatcher":           {"confinement", "errs", "ipc", "loglevel", "dispatcher/auditlog", "dispatcher/dial", "dispatcher/dispatch", "dispatcher/inetd", "dispatcher/pool", "dispatcher/process", "dispatcher/relay", "dispatcher/service", "privsep/thread", "rate", "security", "security/self", "service", "sockdiag"},
	"dispatcher/admission": {"ipc", "penalty"}, // makes decisions, and has no other effects
	"dispatcher/auditlog":  {"dispatcher/process", "dispatcher/service", "ipc", "rate"},
	"dispatcher/dial":      {"become", "ipc", "rate", "sockaddr", "sockdiag"},
	"dispatcher/dispatch":  {"dispatcher/admission", "dispatcher/pool", "dispatcher/process", "ipc", "rate", "security", "sockdiag"},
	"dispatcher/inetd":     {"dispatcher/dial", "dispatcher/process", "dispatcher/relay", "errs", "exitstatus", "ipc", "printable"},
	"dispatcher/pool":      {"dispatcher/admission", "dispatcher/dial", "dispatcher/process", "dispatcher/relay", "errs", "ipc", "metric", "penalty", "printable", "rate", "fdpass", "security", "sockdiag"},
	"dispatcher/process":   {"dispatcher/relay", "errs", "exitstatus", "ipc", "security"},
	"dispatcher/relay":     {"printable", "rate"},
	"dispatcher/service":   {"dispatcher/process", "dispatcher/relay", "errs", "ipc", "printable", "rate", "security"},
	"conf":                 {"errs", "guard", "typo"},
	"endpoint":             {"become", "errs", "guard", "ipc", "socket"},
	"loglevel":             {}, // linked into a program that runs as root
	"plan":                 {"become", "conf", "endpoint", "errs", "guard", "ipc", "loglevel", "feature", "release", "security/self", "typo", "zone"},
	"auth":                 {"errs", "guard", "hmackey"},
	"guard":                {"errs"},
	"hmackey":              {},
	"http1":                {}, // can be reviewed without other packages
	"ipc":                  {"errs"},
	"exitstatus":           {}, // linked into a program that runs as root
	"printable":            {}, // linked into a program that runs as root
	"notify":               {}, // linked into a program that runs as root
	"penalty":              {}, // linked into a program that runs as root
	"rate":                 {},
	"feature":              {"errs"},
	"confinement":          {"ipc", "security"},
	"security/self":        {"become", "errs", "ipc", "security"},
	"proof":                {"confinement", "errs", "ipc", "security", "security/self"},               // runs with the rights of a worker
	"keeper":               {"hmackey", "ipc", "rate", "security", "security/self"},                   // holds keys
	"resolver":             {"become", "errs", "ipc", "rate", "security", "security/self", "service"}, // parses answers of a directory service
	"service":              {"ipc", "security", "security/self"},
	"auditor":              {"ipc", "rate", "security", "security/self", "service"}, // writes reports of workers
	"exporter":             {"ipc", "metric", "metric/table", "release", "security", "security/self", "service"},
	"metric":               {},
	"metric/cluster":       {"errs", "metric", "model"},
	"metric/table":         {"api", "api/schema", "metric", "rpc/message"},
	"fdpass":               {}, // linked into a program that runs as root
	"sockaddr":             {}, // linked into a program that runs as root
	"socket":               {"errs", "guard", "fdpass"},
	"typo":                 {},
}

// forbiddenImports maps a package to packages that it must not import.
var forbiddenImports = map[string][]string{
	"handlers": {"rpc"}, // uses the controller through an interface
	"model":    {"errs"},
}

type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string // for linux/amd64, without test files
	Imports    []string
	Standard   bool
}

func TestFloors(t *testing.T) {
	used := map[[2]string]bool{}
	for _, p := range list(t, "./...") {
		from, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok || len(p.Imports) == 0 {
			continue
		}
		fromFolder, fromFloor := place(from)
		if fromFloor < 0 {
			t.Errorf("%s: on no floor; give it a place in this test and in docs/ARCHITECTURE.md", from)
			continue
		}
		for _, imported := range p.Imports {
			to, ok := strings.CutPrefix(imported, module)
			if !ok {
				continue
			}
			toFolder, toFloor := place(to)
			pair := [2]string{fromFolder, toFolder}
			used[pair] = true
			if toFloor > fromFloor || toFloor == fromFloor && toFolder != fromFolder && sameFloorImports[pair] == "" {
				t.Errorf("%s imports %s, which is not below it", from, to)
			}
			if allowed, strict := allowedImports[fromFolder]; strict && toFolder != fromFolder && !slices.Contains(allowed, toFolder) {
				t.Errorf("%s imports %s; it may import only %s", from, to, strings.Join(allowed, ", "))
			}
			for _, folder := range forbiddenImports[fromFolder] {
				if within(to, folder) {
					t.Errorf("%s imports %s, which is forbidden", from, to)
				}
			}
		}
	}
	for pair := range sameFloorImports {
		if !used[pair] {
			t.Errorf("%s no longer imports %s: remove the exception", pair[0], pair[1])
		}
	}
	for from, allowed := range allowedImports {
		for _, to := range allowed {
			if !used[[2]string{from, to}] {
				t.Errorf("%s no longer imports %s: remove that import from its list", from, to)
			}
		}
	}
}

// place returns the floor of the package called name, and the folder that
// determines this floor. Of the folders in floors that contain the package,
// this is the one with the longest path. If no folder contains the package, the
// floor is -1.
func place(name string) (folder string, floor int) {
	floor = -1
	for i, folders := range floors {
		for _, f := range folders {
			if within(name, f) && len(f) > len(folder) {
				folder, floor = f, i
			}
		}
	}
	return folder, floor
}

func within(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

// TestNames checks that no package has a meaningless name, because packages
// with such names collect unrelated code.
func TestNames(t *testing.T) {
	meaningless := []string{"base", "common", "core", "helper", "helpers", "lib", "manager", "misc", "shared", "types", "util", "utils"}
	for _, p := range list(t, "./...") {
		if slices.Contains(meaningless, path.Base(p.ImportPath)) {
			t.Errorf("%s: name the package after its contents", p.ImportPath)
		}
	}
}

// Limits on the number of our code lines that the parent links. A line that
// contains both code and a comment is a code line.
const (
	maxLines          = 7100 // of all packages
	maxPrivsep        = 3750 // of privsep and the packages in its folder
	maxPrivsepPackage = 1300 // of each package in the folder
)

// TestParentSize fails when the parent exceeds the limits.
func TestParentSize(t *testing.T) {
	var all, privsep int
	for _, p := range list(t, "-deps", "./cmd/schedrestd") {
		name, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok {
			continue
		}
		n := codeLines(t, p)
		all += n
		if within(name, "privsep") {
			privsep += n
			if n > maxPrivsepPackage {
				t.Errorf("%s has %d code lines, more than %d", name, n, maxPrivsepPackage)
			}
		}
	}
	if all > maxLines {
		t.Errorf("the parent has %d lines of our code, more than %d", all, maxLines)
	}
	if privsep > maxPrivsep {
		t.Errorf("the packages of privsep have %d code lines, more than %d", privsep, maxPrivsep)
	}
}

// codeLines returns how many lines of p contain code. Blank lines and lines
// with only comments do not count.
func codeLines(t *testing.T, p goPackage) (n int) {
	t.Helper()
	for _, name := range p.GoFiles {
		source, err := os.ReadFile(path.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		files := token.NewFileSet()
		file := files.AddFile(name, -1, len(source))
		var s scanner.Scanner
		s.Init(file, source, nil, 0) // omits comments
		last := 0
		for pos, tok, text := s.Scan(); tok != token.EOF; pos, tok, text = s.Scan() {
			if tok == token.SEMICOLON && text == "\n" { // inserted at the end of a line
				continue
			}
			first := file.Line(pos)
			end := first + strings.Count(text, "\n") // a raw string may have several lines
			n += max(0, end-max(first-1, last))
			last = end
		}
	}
	return n
}

// TestParent checks which packages the parent links. It compares them with a
// golden file, which auditors can read. The parent may run as root, so it is
// the most valuable target for an attacker. An attacker who takes over the
// parent can use only the code that is linked into it.
func TestParent(t *testing.T) {
	deps := list(t, "-deps", "./cmd/schedrestd")
	forbidden := []string{"net/http", "crypto/tls", "database/sql", "encoding/gob", "net/rpc"}
	for _, folder := range []string{"api", "auditor", "auth", "conf", "ctld", "dbd", "feature", "handlers", "hmackey", "ipc/query", "ipc/work",
		"keeper", "plan", "resolver", "rpc", "service", "sockdiag", "worker"} {
		if _, err := os.Stat(folder); err != nil {
			t.Error(err)
		}
		forbidden = append(forbidden, module+folder)
	}
	decoders := []string{"encoding/json", "encoding/xml", "gopkg.in/yaml.v3"}
	for _, p := range deps {
		for _, r := range forbidden {
			if within(p.ImportPath, r) {
				t.Errorf("the parent links %s", p.ImportPath)
			}
		}
		// log/slog and cobra import a JSON package, but our own packages must
		// not.
		for _, d := range decoders {
			if strings.HasPrefix(p.ImportPath, module) && slices.Contains(p.Imports, d) {
				t.Errorf("%s, which the parent links, imports %s", p.ImportPath, d)
			}
		}
	}

	const golden = "testdata/schedrestd.deps"
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(page(t, deps, true)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (make golden writes it)", err)
	}
	// The internal packages of the standard library differ between Go releases.
	internals := strings.HasPrefix(runtime.Version(), "go1.26")
	outer, _, _ := strings.Cut(string(want), internalsTitle)
	if internals {
		outer = string(want)
	}
	if d := cmp.Diff(strings.Split(outer, "\n"), strings.Split(page(t, deps, internals), "\n")); d != "" {
		t.Errorf("the parent's packages changed (make golden accepts it): -want +got\n%s", d)
	}
}

const internalsTitle = "# internals of the standard library (Go 1.26)\n"

// page returns a list of packages, grouped by origin. For each of our packages,
// the list includes the number of code lines.
func page(t *testing.T, deps []goPackage, internals bool) string {
	var own, thirdParty, standard, internal []string
	total := 0
	for _, p := range deps {
		switch name := p.ImportPath; {
		case strings.HasPrefix(name, module):
			n := codeLines(t, p)
			total += n
			own = append(own, fmt.Sprintf("%s %d", name, n))
		case !p.Standard:
			thirdParty = append(thirdParty, name)
		case slices.Contains(strings.Split(name, "/"), "internal") || within(name, "vendor"):
			internal = append(internal, name)
		default:
			standard = append(standard, name)
		}
	}
	var b strings.Builder
	section := func(title string, names []string) {
		slices.Sort(names)
		b.WriteString(title + strings.Join(append(names, ""), "\n"))
	}
	section("# this project, with code lines\n", own)
	fmt.Fprintf(&b, "total %d\n", total)
	section("# other modules\n", thirdParty)
	section("# standard library\n", standard)
	if internals {
		section(internalsTitle, internal)
	}
	return b.String()
}

// TestPrograms checks that the Makefile builds and installs exactly the
// programs in cmd, and that docs/ARCHITECTURE.md names each of them.
func TestPrograms(t *testing.T) {
	var programs, built []string
	folders, err := os.ReadDir("cmd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		programs = append(programs, f.Name())
	}
	makefile, err := os.ReadFile("deploy/install.mk")
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range regexp.MustCompile(`(?m)^(?:SERVERS|COMMANDS|UNREADABLE) *= *(.*)$`).FindAllSubmatch(makefile, -1) {
		built = append(built, strings.Fields(string(list[1]))...)
	}
	slices.Sort(built)
	if d := cmp.Diff(programs, built); d != "" {
		t.Errorf("-cmd +deploy/install.mk\n%s", d)
	}
	page, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		if _, err := os.Stat("cmd/" + name + "/main.go"); err != nil {
			t.Error(err)
		}
		if !regexp.MustCompile(`\b` + name + `(?:[^\w-]|$)`).Match(page) {
			t.Errorf("docs/ARCHITECTURE.md does not name %s", name)
		}
	}
}

// list runs go list for linux/amd64, the platform of the golden file.
func list(t *testing.T, args ...string) []goPackage {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,GoFiles,Imports,Standard"}, args...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	var packages []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

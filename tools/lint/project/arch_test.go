// Package project contains tests that read the sources and texts of the whole
// project. The tests in this file check the architecture: which packages may
// import which, and which packages the privileged parent links
// (docs/design/ARCHITECTURE.md, docs/design/TRUST.md).
package project

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/tools/lint/section"
)

var update = flag.Bool("update", false, "rewrite testdata/schedrestd.deps, deploy/THIRD-PARTY.txt and docs/design/PRIVSEP.md")

// root is the root folder of the project. Each test changes to it by itself, because go test
// knows the files that a test reads, and runs it again after a change, only if it also knows
// the directory.
const root = "../../.."

const module = "schedrestd/"

// floors lists the layers of packages (see "Floors" in docs/design/ARCHITECTURE.md),
// from the lowest up. A package may import packages from lower floors and from
// its own folder. A folder stands for all packages in it, except packages that
// have an entry of their own.
var floors = [][]string{
	{"docs", "internal/asset", "internal/closeonexec", "internal/errs", "internal/excerpt", "internal/exitstatus", "internal/fdpass", "internal/fips", "internal/keystate", "internal/loglevel", "internal/origin", "internal/printable", "internal/programtest", "internal/release", "internal/setting", "internal/sockaddr", "internal/typo", "metric", "model"},
	{"api/schema", "api/scope", "become", "gateway/endpoint", "gateway/worker/count", "gateway/worker/logger", "gateway/worker/stdio", "internal/completion", "internal/feature", "internal/guard", "internal/hmackey", "internal/http1", "internal/notify", "internal/penalty", "internal/rate", "internal/semaphore", "internal/sockdiag", "internal/socket", "internal/thread", "internal/zone", "ipc", "metric/cluster", "rpc/codec", "rpc/fault", "rpc/munge", "rpc/payload", "rpc/sack", "rpc/tlsconn", "rpc/wire", "security", "web"},
	{"auth/gatewaytoken", "auth/jose", "gateway/confinement", "internal/limit", "security/self"},
	{"api", "become/subuid", "conf", "gateway/dispatcher/admission", "gateway/dispatcher/relay", "gateway/proof", "gateway/service", "gateway/worker/http1server", "gateway/worker/http2server", "metric/table", "privsep/identity", "privsep/netns", "privsep/spawn", "rpc/message", "rpc/serveruid"},
	{"auth", "gateway/dispatcher/dial", "gateway/dispatcher/process", "handlers", "metric/label", "privsep/auditlog", "privsep/inetd", "privsep/keys", "privsep/listen", "privsep/planner", "privsep/program", "rpc/client", "rpc/confserver", "rpc/server"},
	{"gateway/dispatcher/inetd", "gateway/dispatcher/service", "gateway/dispatcher/tokenfile", "gateway/worker/broker", "gateway/worker/clientconn", "gateway/worker/proxy", "rpc/confserver/confservertest", "rpc/confserver/request"},
	{"gateway/dispatcher/pool", "gateway/fetcher", "gateway/worker/conns", "gateway/worker/keys", "gateway/worker/meter"},
	{"bundled/daemon", "gateway/dispatcher/auditlog", "gateway/dispatcher/dispatch", "gateway/fetcher/confined", "gateway/worker/limiter"}, // daemon contains the code that ctld and dbd share, so that neither has a copy
	{"bundled/ctld", "bundled/dbd", "gateway/auditor", "gateway/credential", "gateway/dispatcher", "gateway/exporter", "gateway/keeper", "gateway/output", "gateway/plan", "gateway/resolver", "gateway/worker", "privsep"},
	{"bundled/demo", "cli"},
	{"bench", "cmd", "integration", "tools/lint", "tools/packaging"},
}

// sameFloorImports lists the permitted imports between folders of the same
// floor, each with its reason.
var sameFloorImports = map[[2]string]string{
	{"handlers", "auth"}:                    "a handler is given the credential that auth made",
	{"gateway/endpoint", "become"}:          "become looks up host names",
	{"gateway/endpoint", "internal/guard"}:  "it writes paths in hints",
	{"gateway/endpoint", "ipc"}:             "the kinds of network are ipc's",
	{"gateway/endpoint", "internal/socket"}: "a UNIX socket's path has a longest length",
	{"rpc/sack", "rpc/munge"}:               "both connect to a socket whose user is checked",
	{"rpc/munge", "become"}:                 "the user who serves munged's socket is checked",
	{"internal/socket", "internal/guard"}:   "a user who could replace a socket's directory could serve in its place",
}

// allowedImports maps a package to all packages of this module that it may
// import. It contains only the packages for which the rules of floors are too
// lenient.
var allowedImports = map[string][]string{
	"auth":                         {"api/scope", "auth/gatewaytoken", "auth/jose", "internal/errs", "internal/guard", "internal/hmackey", "internal/limit", "internal/penalty", "internal/semaphore", "internal/setting"},
	"auth/gatewaytoken":            {"api/scope"},     // linked into the keeper
	"auth/jose":                    {"internal/errs"}, // linked into the keeper
	"become/subuid":                {"internal/errs", "internal/guard", "ipc"},
	"conf":                         {"internal/errs", "internal/guard", "internal/typo"},
	"gateway/auditor":              {"gateway/service", "internal/keystate", "internal/limit", "internal/rate", "ipc", "security", "security/self"}, // writes reports of workers
	"gateway/confinement":          {"ipc", "security"},
	"gateway/dispatcher":           {"gateway/confinement", "gateway/dispatcher/auditlog", "gateway/dispatcher/dial", "gateway/dispatcher/dispatch", "gateway/dispatcher/inetd", "gateway/dispatcher/pool", "gateway/dispatcher/process", "gateway/dispatcher/relay", "gateway/dispatcher/service", "gateway/dispatcher/tokenfile", "gateway/service", "internal/errs", "internal/limit", "internal/loglevel", "internal/rate", "internal/setting", "internal/sockdiag", "internal/thread", "ipc", "security", "security/self"},
	"gateway/dispatcher/admission": {"internal/limit", "internal/penalty", "internal/rate", "internal/semaphore", "ipc"}, // makes decisions, and has no other effects
	"gateway/dispatcher/auditlog":  {"gateway/dispatcher/process", "gateway/dispatcher/service", "internal/exitstatus", "internal/limit", "internal/rate", "ipc"},
	"gateway/dispatcher/dial":      {"become", "internal/limit", "internal/rate", "internal/sockaddr", "internal/sockdiag", "ipc"},
	"gateway/dispatcher/dispatch":  {"gateway/dispatcher/admission", "gateway/dispatcher/pool", "gateway/dispatcher/process", "internal/limit", "internal/rate", "internal/semaphore", "internal/sockdiag", "ipc", "security"},
	"gateway/dispatcher/inetd":     {"gateway/dispatcher/dial", "gateway/dispatcher/process", "gateway/dispatcher/relay", "internal/errs", "internal/exitstatus", "internal/printable", "ipc"},
	"gateway/dispatcher/pool":      {"gateway/dispatcher/admission", "gateway/dispatcher/dial", "gateway/dispatcher/process", "gateway/dispatcher/relay", "internal/errs", "internal/fdpass", "internal/limit", "internal/penalty", "internal/printable", "internal/rate", "internal/semaphore", "internal/sockdiag", "ipc", "metric", "security"},
	"gateway/dispatcher/process":   {"gateway/dispatcher/relay", "internal/errs", "internal/exitstatus", "ipc", "security"},
	"gateway/dispatcher/relay":     {"internal/limit", "internal/printable", "internal/rate"},
	"gateway/dispatcher/service":   {"gateway/dispatcher/process", "gateway/dispatcher/relay", "internal/errs", "internal/limit", "internal/printable", "internal/rate", "ipc", "security"},
	"gateway/dispatcher/tokenfile": {"auth/gatewaytoken", "internal/errs", "internal/guard", "ipc"},
	"gateway/endpoint":             {"become", "internal/errs", "internal/guard", "internal/socket", "ipc"},
	"gateway/exporter":             {"gateway/service", "internal/limit", "internal/penalty", "internal/release", "internal/semaphore", "ipc", "metric", "metric/table", "security", "security/self"},
	"gateway/fetcher":              {"conf", "internal/errs", "internal/excerpt", "internal/exitstatus", "internal/fdpass", "internal/printable", "model", "rpc/confserver", "rpc/serveruid"},                                                    // linked into schedrestd-config, which needs no client
	"gateway/fetcher/confined":     {"conf", "gateway/fetcher", "rpc/confserver", "rpc/confserver/request", "rpc/tlsconn", "security", "security/self"},                                                                                          // parses answers of a controller
	"gateway/keeper":               {"api/scope", "auth/gatewaytoken", "auth/jose", "become", "gateway/service", "internal/hmackey", "internal/limit", "internal/rate", "internal/semaphore", "ipc", "rpc/payload", "security", "security/self"}, // holds keys
	"gateway/plan":                 {"api/scope", "become", "become/subuid", "conf", "gateway/endpoint", "gateway/fetcher", "internal/completion", "internal/errs", "internal/excerpt", "internal/feature", "internal/fips", "internal/guard", "internal/loglevel", "internal/release", "internal/typo", "internal/zone", "ipc", "rpc/confserver", "rpc/munge", "rpc/tlsconn", "security/self"},
	"gateway/proof":                {"gateway/confinement", "internal/errs", "internal/limit", "ipc", "security", "security/self"}, // runs with the rights of a worker
	"gateway/output":               {"gateway/service", "ipc", "security", "security/self"},
	"gateway/credential":           {"become", "gateway/service", "internal/errs", "internal/fdpass", "ipc", "rpc/munge", "rpc/sack", "security", "security/self"},
	"gateway/resolver":             {"become", "gateway/service", "internal/errs", "internal/limit", "internal/rate", "internal/semaphore", "ipc", "security", "security/self"}, // parses answers of a directory service
	"gateway/service":              {"ipc", "security", "security/self"},
	"gateway/worker/broker":        {"api", "auth", "become", "gateway/worker/count", "handlers", "internal/errs", "internal/fdpass", "internal/keystate", "internal/limit", "internal/rate", "internal/semaphore", "ipc", "rpc/client", "rpc/munge", "rpc/sack", "security"},
	"gateway/worker/http1server":   {"internal/errs", "internal/http1"}, // can be reviewed without other packages
	"gateway/worker/clientconn":    {"auth", "gateway/worker/count", "internal/fdpass", "ipc"},
	"gateway/worker/conns":         {"gateway/worker/clientconn", "gateway/worker/count", "internal/limit", "internal/penalty", "internal/rate", "ipc"},
	"gateway/worker/count":         {},
	"gateway/worker/http2server":   {"internal/limit", "internal/rate"},
	"gateway/worker/keys":          {"api/scope", "auth", "auth/gatewaytoken", "auth/jose", "gateway/worker/broker", "internal/errs", "ipc", "model"},
	"gateway/worker/limiter":       {"auth", "gateway/worker/conns", "gateway/worker/count", "gateway/worker/proxy", "handlers", "internal/errs", "internal/limit", "internal/rate", "internal/semaphore", "ipc"},
	"gateway/worker/logger":        {},
	"gateway/worker/proxy":         {"auth", "internal/penalty", "ipc"},
	"gateway/worker/stdio":         {},
	"internal/asset":               {},
	"internal/closeonexec":         {}, // linked into a program that runs as root
	"internal/completion":          {"internal/errs"},
	"internal/excerpt":             {},
	"internal/exitstatus":          {}, // linked into a program that runs as root
	"internal/fdpass":              {}, // linked into a program that runs as root
	"internal/feature":             {"internal/errs"},
	"internal/fips":                {},
	"internal/guard":               {"internal/errs"},
	"internal/hmackey":             {},
	"internal/http1":               {}, // can be reviewed without other packages
	"internal/keystate":            {},
	"internal/limit":               {"internal/penalty", "internal/rate", "internal/semaphore"},
	"internal/loglevel":            {}, // linked into a program that runs as root
	"internal/notify":              {}, // linked into a program that runs as root
	"internal/penalty":             {},
	"internal/origin":              {},
	"internal/printable":           {}, // linked into a program that runs as root
	"internal/rate":                {}, // linked into a program that runs as root
	"internal/setting":             {},
	"internal/sockaddr":            {}, // linked into a program that runs as root
	"internal/socket":              {"internal/errs", "internal/fdpass", "internal/guard"},
	"internal/thread":              {},
	"internal/typo":                {},
	"ipc":                          {"internal/errs", "internal/keystate", "internal/setting"},
	"metric":                       {},
	"metric/cluster":               {"internal/errs", "metric", "model"},
	"metric/label":                 {"api", "api/schema", "rpc/message"},
	"metric/table":                 {"internal/limit", "metric"},
	"privsep":                      {"become", "internal/errs", "internal/exitstatus", "internal/fdpass", "internal/guard", "internal/notify", "internal/printable", "internal/rate", "internal/socket", "internal/thread", "ipc", "privsep/auditlog", "privsep/identity", "privsep/inetd", "privsep/keys", "privsep/listen", "privsep/netns", "privsep/program", "privsep/spawn", "security"}, // runs as root
	"privsep/auditlog":             {"become", "internal/errs", "internal/guard", "ipc"},
	"privsep/identity":             {"become", "internal/errs", "ipc", "security"},
	"privsep/inetd":                {"become", "internal/errs", "internal/sockaddr", "ipc", "privsep/identity", "security"},
	"privsep/keys":                 {"become", "internal/errs", "internal/guard", "ipc", "privsep/spawn", "security"},
	"privsep/listen":               {"become", "internal/errs", "internal/fdpass", "internal/notify", "internal/sockaddr", "internal/socket", "ipc", "privsep/netns"},
	"privsep/netns":                {"become", "internal/errs", "internal/guard", "internal/thread"},
	"privsep/planner":              {"become", "internal/errs", "internal/exitstatus", "internal/guard", "ipc", "privsep/spawn", "security"},
	"privsep/program":              {"internal/errs", "ipc", "privsep/identity", "privsep/spawn", "security"},
	"privsep/spawn":                {"become", "internal/errs", "internal/exitstatus", "internal/guard", "internal/printable", "internal/thread", "ipc", "security"},
	"rpc/confserver":               {"become", "conf", "internal/errs", "internal/fdpass", "model"}, // linked into schedrestd-config, which needs no client
	"rpc/serveruid":                {"become", "internal/sockdiag"},
	"security/self":                {"become", "internal/errs", "ipc", "security"},
	"web":                          {"internal/asset"},
}

// forbiddenImports maps a package to packages that it must not import.
var forbiddenImports = map[string][]string{
	"handlers": {"rpc"}, // uses the controller through an interface
	"model":    {"internal/errs"},
}

type goPackage struct {
	ImportPath string
	Dir        string
	GoFiles    []string // for linux/amd64, without test files
	Imports    []string
	Standard   bool
}

func TestFloors(t *testing.T) {
	t.Chdir(root)
	used := map[[2]string]bool{}
	for _, p := range list(t, "./...") {
		from, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok || len(p.Imports) == 0 {
			continue
		}
		fromFolder, fromFloor := place(from)
		if fromFloor < 0 {
			t.Errorf("%s: on no floor; give it a place in this test", from)
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

// TestFolders checks that README.md describes every top-level folder, that there
// are few of them, and that no folder imports itself by way of other folders.
func TestFolders(t *testing.T) {
	t.Chdir(root)
	const maxFolders = 24
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(readme), "\n## Repository layout\n")
	if !found {
		t.Fatal("README.md has no section Repository layout")
	}
	count := 0
	for _, e := range entries {
		if name := e.Name(); e.IsDir() && name[0] != '.' && name != "bin" && name != "dist" { // the two are built
			count++
			if !strings.Contains(table, "`"+name+"/`") {
				t.Errorf("README.md does not describe the folder %s", name)
			}
		}
	}
	if count > maxFolders {
		t.Errorf("%d top-level folders, more than %d", count, maxFolders)
	}

	imports := map[string]map[string]bool{} // between top-level folders
	for _, p := range list(t, "./...") {
		from, ok := strings.CutPrefix(p.ImportPath, module)
		if !ok {
			continue
		}
		from, _, _ = strings.Cut(from, "/")
		if imports[from] == nil {
			imports[from] = map[string]bool{}
		}
		for _, imported := range p.Imports {
			if to, ok := strings.CutPrefix(imported, module); ok {
				to, _, _ = strings.Cut(to, "/")
				if to != from {
					imports[from][to] = true
				}
			}
		}
	}
	for changed := true; changed; { // follow the imports
		changed = false
		for _, direct := range imports {
			for middle := range maps.Clone(direct) {
				for to := range imports[middle] {
					changed = changed || !direct[to]
					direct[to] = true
				}
			}
		}
	}
	for folder, below := range imports {
		if below[folder] {
			t.Errorf("the folder %s imports itself by way of other folders", folder)
		}
	}
}

// TestNames checks that no package has a meaningless name, because packages
// with such names collect unrelated code.
func TestNames(t *testing.T) {
	t.Chdir(root)
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
	maxLines          = 7000 // of all packages
	maxPrivsep        = 3500 // of privsep and the packages in its folder
	maxPrivsepPackage = 1300 // of each package in the folder
)

// TestParentSize fails when the parent exceeds the limits, or if
// docs/design/PRIVSEP.md states other numbers.
func TestParentSize(t *testing.T) {
	t.Chdir(root)
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
	text := fmt.Sprintf("The parent's program contains %d code lines of this project, %d of them below `privsep/`. Apart from it, only the init processes start as root: they mount a /proc (`gateway/worker/namespaceinit.go`), read no input, and change to an unused uid.\n", all, privsep)
	section.Check(t, "docs/design/PRIVSEP.md", "<!-- privileged code: generated by go test ./tools/lint/project -update -->\n", "<!-- end of privileged code -->\n", text, *update)
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
	t.Chdir(root)
	deps := list(t, "-deps", "./cmd/schedrestd")
	forbidden := []string{"net/http", "crypto/tls", "database/sql", "encoding/gob", "net/rpc"}
	for _, folder := range []string{"api", "auth", "bundled", "conf", "gateway", "handlers", "internal/feature", "internal/hmackey", "internal/sockdiag", "ipc/query", "ipc/work", "rpc"} {
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

	const golden = "tools/lint/project/testdata/schedrestd.deps"
	if *update {
		if err := os.WriteFile(golden, []byte(page(t, deps, true)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatalf("%v (make golden writes it)", err)
	}
	// The packages of the standard library differ between Go releases.
	library := strings.HasPrefix(runtime.Version(), "go1.26")
	compared, _, _ := strings.Cut(string(want), libraryTitle)
	if library {
		compared = string(want)
	}
	if d := cmp.Diff(strings.Split(compared, "\n"), strings.Split(page(t, deps, library), "\n")); d != "" {
		t.Errorf("the parent's packages changed (make golden accepts it): -want +got\n%s", d)
	}
}

const libraryTitle = "# standard library (Go 1.26)\n"

// page returns a list of packages, grouped by origin. For each of our packages,
// the list includes the number of code lines.
func page(t *testing.T, deps []goPackage, library bool) string {
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
	if library {
		section(libraryTitle, standard)
		section("# internals of the standard library\n", internal)
	}
	return b.String()
}

// TestPrograms checks that the Makefile builds and installs exactly the
// programs in cmd, and that docs/design/ARCHITECTURE.md names each of them.
func TestPrograms(t *testing.T) {
	t.Chdir(root)
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
	page, err := os.ReadFile("docs/design/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range programs {
		if _, err := os.Stat("cmd/" + name + "/main.go"); err != nil {
			t.Error(err)
		}
		if !regexp.MustCompile(`\b` + name + `(?:[^\w-]|$)`).Match(page) {
			t.Errorf("docs/design/ARCHITECTURE.md does not name %s", name)
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

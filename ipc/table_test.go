package ipc_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/keystate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
	"schedrestd/tools/lint/section"
)

var update = flag.Bool("update", false, "rewrite generated pages")

// TestTableIsSound checks that the rows of the protocol table match the
// messages that they describe.
func TestTableIsSound(t *testing.T) {
	kinds, names, meaning := map[ipc.Kind]bool{}, map[string]bool{}, meanings(t)
	for _, r := range ipc.Table() {
		t.Run(r.Name, func(t *testing.T) {
			if r.Kind == 0 || kinds[r.Kind] {
				t.Errorf("kind %d is zero or used twice", r.Kind)
			}
			kinds[r.Kind] = true
			if names[r.Name] {
				t.Error("another message has the same name")
			}
			names[r.Name] = true
			if r.Min > r.Max || r.Max >= ipc.MaxMessage {
				t.Errorf("sizes %d to %d", r.Min, r.Max)
			}
			if r.FDs >= ipc.MaxFDs {
				t.Errorf("%d descriptors: surplus descriptors could not be detected", r.FDs)
			}
			for _, route := range r.Routes {
				if route.From == 0 || route.To == 0 || route.From&route.To != 0 || route.Phases == 0 {
					t.Errorf("route from %s to %s while %s", route.From, route.To, route.Phases)
				}
			}
			if meaning[r.Name] == "" {
				t.Error("there is no comment above the row")
			}
			m := r.New()
			if _, name, _ := strings.Cut(fmt.Sprintf("%T", m), "."); len(r.Routes) == 0 || ipc.KindOf(m) != r.Kind || name != r.Name {
				t.Fatalf("%d routes, reader %s of kind %d", len(r.Routes), name, ipc.KindOf(m))
			}
			if got := len(frameOf(t, minMessage(r))) - 1; got != r.Min {
				t.Errorf("the empty message has %d bytes, the protocol table says %d", got, r.Min)
			}
			m, again := fullMessage(r), r.New()
			frame := frameOf(t, m)
			if got := len(frame) - 1; got > r.Max || got == r.Min && r.Min < r.Max {
				t.Errorf("a message has %d bytes, the protocol table says %s", got, r.Size())
			}
			if err := ipc.Decode(frame[1:], again); err != nil {
				t.Error(err)
			}
			if d := cmp.Diff(m, again, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
				cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); d != "" {
				t.Errorf("-sent +received:\n%s", d)
			}
		})
	}
}

func TestPermit(t *testing.T) {
	tests := []struct {
		name      string
		kind      ipc.Kind
		from, to  ipc.Role
		phase     ipc.Phase
		size, fds int
		want      string // part of the violation; "" when permitted
	}{
		{"in turn", ipc.KindOf(new(work.ConnectionDone)), ipc.Worker, ipc.Dispatcher, ipc.Serving, 8, 0, ""},
		{"connection", ipc.KindOf(new(ipc.Connection)), ipc.Dispatcher, ipc.Worker, ipc.Serving, 31, 1, ""},
		{"unknown kind", 200, ipc.Worker, ipc.Dispatcher, ipc.Serving, 8, 0, "not in the protocol table"},
		{"kind 0", 0, ipc.Worker, ipc.Dispatcher, ipc.Serving, 8, 0, "not in the protocol table"},
		{"wrong way", ipc.KindOf(new(work.ConnectionDone)), ipc.Dispatcher, ipc.Worker, ipc.Serving, 8, 0, "may not be sent by the dispatcher"},
		{"too early", ipc.KindOf(new(work.ConnectionDone)), ipc.Worker, ipc.Dispatcher, ipc.Proving, 8, 0, "not permitted while proving"},
		{"twice", ipc.KindOf(new(ipc.Ready)), ipc.Worker, ipc.Dispatcher, ipc.Serving, 0, 0, "not permitted while serving"},
		{"after the end", ipc.KindOf(new(work.ConnectionDone)), ipc.Worker, ipc.Dispatcher, ipc.Closed, 8, 0, "not permitted while closed"},
		{"too short", ipc.KindOf(new(work.ConnectionDone)), ipc.Worker, ipc.Dispatcher, ipc.Serving, 7, 0, "has 7 bytes, not 8"},
		{"too long", ipc.KindOf(new(work.ConnectionDone)), ipc.Worker, ipc.Dispatcher, ipc.Serving, 9, 0, "has 9 bytes, not 8"},
		{"descriptor missing", ipc.KindOf(new(ipc.Connection)), ipc.Dispatcher, ipc.Worker, ipc.Serving, 31, 0, "came with 0 descriptors, not 1"},
		{"descriptor too many", ipc.KindOf(new(work.ConnectionDone)), ipc.Worker, ipc.Dispatcher, ipc.Serving, 8, 1, "came with 1 descriptors, not 0"},
		{"no phase at all", ipc.KindOf(new(work.ConnectionDone)), ipc.Worker, ipc.Dispatcher, ipc.AllPhases, 8, 0, "not permitted"},
		{"setup", ipc.KindOf(new(ipc.Setup)), ipc.Parent, ipc.Worker, ipc.Initial, 40, 0, ""},
		{"setup from the dispatcher", ipc.KindOf(new(ipc.Setup)), ipc.Dispatcher, ipc.Worker, ipc.Initial, 40, 0, "may not be sent by the dispatcher"},
		{"connection from the parent", ipc.KindOf(new(ipc.Connection)), ipc.Parent, ipc.Worker, ipc.Serving, 31, 1, "may not be sent by the parent"},
		{"report to the parent", ipc.KindOf(new(work.ConnectionDone)), ipc.Worker, ipc.Parent, ipc.Serving, 8, 0, "may not be sent by the worker to the parent"},
		{"setup after the handover", ipc.KindOf(new(ipc.Setup)), ipc.Managers, ipc.Worker, ipc.Serving, 40, 0, "not permitted while serving"},
		{"connection before the handover", ipc.KindOf(new(ipc.Connection)), ipc.Managers, ipc.Worker, ipc.Configured, 31, 1, "not permitted while configured"},
		{"keys during the handover", ipc.KindOf(new(ipc.SecretKeys)), ipc.Managers, ipc.Keeper, ipc.Handover, 8, 7, ""},
		{"keys after the handover", ipc.KindOf(new(ipc.SecretKeys)), ipc.Managers, ipc.Keeper, ipc.Serving, 8, 7, "not permitted while serving"},
		{"another log after the handover", ipc.KindOf(new(ipc.LogFD)), ipc.Managers, ipc.Auditor, ipc.Serving, 5, 1, ""},
		{"a worker's question in the phase of the dispatcher's", ipc.KindOf(new(work.Lookup)), ipc.Worker, ipc.Resolver, ipc.Serving, 15, 0, "not permitted while serving"},
		{"the dispatcher's question in the phase of a worker's", ipc.KindOf(new(work.Lookup)), ipc.Managers, ipc.Resolver, ipc.Initial, 15, 0, "not permitted while new"},
		{"an answer for schedrestd-config to the dispatcher", ipc.KindOf(new(ipc.CheckResult)), ipc.Parent, ipc.Dispatcher, ipc.Configured, 6, 0, "not permitted while configured"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := ipc.Permit(tt.kind, tt.from, tt.to, tt.phase, tt.size, tt.fds)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestParentThenDispatcher checks that a worker or a service accepts messages
// of the parent only until the handover, and messages of the dispatcher only
// from the handover on. There are two exceptions: the audit log, of which the
// parent opens a new file when the old one was moved, and the resolver's channel to
// a keeper, because the keeper starts later.
func TestParentThenDispatcher(t *testing.T) {
	for _, r := range ipc.Table() {
		for _, route := range r.Routes {
			if !route.To.Has(ipc.Worker | ipc.Services) {
				continue
			}
			for p := range ipc.AllPhases {
				late := route.From.Has(ipc.Parent) && p > ipc.Handover && ipc.KindOf(new(ipc.LogFD)) != r.Kind && ipc.KindOf(new(ipc.KeeperChannel)) != r.Kind
				early := route.From.Has(ipc.Dispatcher) && p < ipc.Handover
				if route.Phases.Has(p) && (late || early) {
					t.Errorf("%s from %s to %s is permitted while %s", r.Name, route.From.Names(), route.To.Names(), p)
				}
			}
		}
	}
}

// TestSenderIsHeldToTheWords checks that Send refuses messages that no receiver
// would accept.
func TestSenderIsHeldToTheWords(t *testing.T) {
	for _, m := range []ipc.Message{
		(&work.Setup{Names: work.NamesSlurm << 1}).Opaque(), (&work.Setup{Content: work.ContentUtil << 1}).Opaque(), (&work.Setup{JSON: work.NoTag << 1}).Opaque(), (&work.Setup{YAML: work.NoTag << 1}).Opaque(),
		&ipc.Setup{Reach: ipc.ReachMunge << 1},
		&ipc.Setup{Sandbox: ipc.SandboxFile << 1}, &ipc.ServiceSetup{Sandbox: ipc.SandboxFile << 1}, &ipc.Connection{}, &ipc.StdioConnection{}, &work.Progress{ID: 1}, &work.Offence{ID: 1},
		&work.Dial{Upstream: work.UpstreamSack + 1}, &work.DialBatch{Upstream: work.UpstreamSack + 1}, &query.IntentDecision{Decision: query.TryLater + 1}, &query.Verified{Verdict: query.Outdated + 1},
		&query.IntentDecision{State: keystate.NotDone + 1}, &query.Outcome{State: keystate.NotDone + 1}, &query.Intent{Key: make([]query.Key, 2)},
	} {
		if frame, err := ipc.Encode(m); err == nil {
			t.Errorf("%+v was sent", m)
		} else if err := ipc.Decode(frame[1:], reflect.New(reflect.TypeOf(m).Elem()).Interface().(ipc.Message)); err == nil {
			t.Errorf("%+v was read", m)
		}
	}
}

// TestEveryRowIsHeard checks that each process handles every message that the
// protocol table permits it to receive, and calls Unhandled for all other
// messages.
func TestEveryRowIsHeard(t *testing.T) {
	handled := map[ipc.Role]map[string]bool{}
	for role, dirs := range map[ipc.Role][]string{ipc.Parent: {"../privsep", "../privsep/*"}, ipc.Dispatcher: {"../gateway/service", "../gateway/dispatcher", "../gateway/dispatcher/*"}, ipc.Worker: {"../gateway/worker", "../gateway/worker/*"}, ipc.Keeper: {"../gateway/service", "../gateway/keeper"}, ipc.Config: {"../gateway/plan"}, ipc.Resolver: {"../gateway/service", "../gateway/resolver"}, ipc.Auditor: {"../gateway/service", "../gateway/auditor"}, ipc.Exporter: {"../gateway/service", "../gateway/exporter"}, ipc.Output: {"../gateway/service", "../gateway/output"}, ipc.Credential: {"../gateway/service", "../gateway/credential"}} {
		handled[role] = map[string]bool{"Attributes": true} // ReceiveSetup does
		var files []string
		for _, dir := range dirs {
			found, err := filepath.Glob(dir + "/*.go")
			if err != nil || found == nil {
				t.Fatal(dir, err)
			}
			files = append(files, found...)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			var receives, unhandled int
			ast.Inspect(file, func(n ast.Node) bool {
				var types []ast.Expr
				switch n := n.(type) {
				case *ast.SelectorExpr:
					switch n.Sel.Name {
					case "Receive":
						receives++
					case "Unhandled":
						unhandled++
					}
				case *ast.CaseClause:
					types = n.List
				case *ast.IndexExpr: // ReceiveSetup[*ipc.Setup]
					types = []ast.Expr{n.Index}
				}
				for _, expr := range types {
					if p, ok := expr.(*ast.StarExpr); ok {
						if s, ok := p.X.(*ast.SelectorExpr); ok && (slices.Contains([]string{"ipc", "query", "work"}, fmt.Sprint(s.X))) {
							handled[role][s.Sel.Name] = true
						}
					}
				}
				return true
			})
			if receives > unhandled {
				t.Errorf("%s has %d calls of Receive and %d of ipc.Unhandled", name, receives, unhandled)
			}
		}
	}
	for _, r := range ipc.Table() {
		for _, role := range []ipc.Role{ipc.Parent, ipc.Worker, ipc.Keeper, ipc.Resolver, ipc.Auditor, ipc.Config, ipc.Dispatcher, ipc.Exporter, ipc.Output, ipc.Credential} {
			for _, route := range r.Routes {
				if route.To.Has(role) && !handled[role][r.Name] {
					t.Errorf("no %s handles %s", role, r.Name)
				}
			}
		}
	}
}

const (
	page  = "../docs/generated/MESSAGES.md"
	begin = "<!-- protocol table: generated by go test ./ipc -update -->\n"
	end   = "<!-- end of the protocol table -->\n"
)

// meanings returns the comment above each row, by the name of the row's
// messages. The descriptions are comments and not strings, because only the
// tests need them.
func meanings(t *testing.T) map[string]string {
	list := map[string]string{}
	for _, name := range []string{"table.go", "work/work.go", "query/query.go"} {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		above := map[int]string{}
		for _, c := range file.Comments {
			above[files.Position(c.End()).Line+1] = strings.Join(strings.Fields(c.Text()), " ")
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if of, ok := call.Fun.(*ast.IndexExpr); ok { // Of[Setup](…)
					list[fmt.Sprint(of.Index)] = above[files.Position(call.Pos()).Line]
				}
			}
			return true
		})
	}
	return list
}

// markdown returns the protocol table in Markdown, for docs/generated/MESSAGES.md.
func markdown(t *testing.T) string {
	meaning := meanings(t)
	var b strings.Builder
	b.WriteString("| kind | message | from → to | permitted while | bytes | descriptors | then | meaning |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, r := range ipc.Table() {
		then := ""
		if r.Then != ipc.Initial {
			then = r.Then.String()
		}
		for _, route := range r.Routes {
			fmt.Fprintf(&b, "| %d | %s | %s → %s | %s | %s | %d | %s | %s |\n",
				r.Kind, r.Name, route.From.Names(), route.To.Names(), route.Phases, r.Size(), r.FDs, then, meaning[r.Name])
		}
	}
	return b.String()
}

// TestPageShowsTheTable checks that docs/generated/MESSAGES.md has the same table as the
// code.
func TestPageShowsTheTable(t *testing.T) {
	section.Check(t, page, begin, end, markdown(t), *update)
}

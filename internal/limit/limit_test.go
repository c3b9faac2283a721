package limit

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/internal/rate"
	"schedrestd/internal/semaphore"
	"schedrestd/tools/lint/section"
)

// root is the top folder of the module.
const root = "../.."

// TestPlacesAreFair takes the places of each row for one key, and checks that
// the answer of allPlaces to the question who can take all of them is true. In
// any case, another key that waits must get one of the next two places.
func TestPlacesAreFair(t *testing.T) {
	for _, row := range Places {
		switch {
		case row.Setting != "":
			row = row.Of(10)
		case row.Total > 100: // bytes, for which no caller waits
			row = row.Of(100).WithShare(max(1, min(100, int(float64(row.Share)/float64(row.Total)*100))))
		}
		if row.Displaces || row.Shared != "" || row.Name == Slots.Name {
			continue // TestDisplacedPlacesAreFair, or a Queue whose user decides; the user has tests
		}
		t.Run(row.Process+"/"+row.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				row.Wait, row.Hold = semaphore.Forever, 0
				s := semaphore.New[string](row)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				type place = *semaphore.Place[string]
				var held []place
				got := map[string]int{}
				begin := func(key string) {
					p, err := s.Acquire(ctx, key)
					if err == nil {
						held = append(held, p)
						got[key]++
					}
				}
				for range 2 * row.Total {
					go begin("greedy")
					synctest.Wait()
				}
				takesAll := got["greedy"] == row.Total
				if says := allPlaces(row) != "none"; says != takesAll {
					t.Errorf("one %s holds %d of %d places, but the page says: %s", row.Key, got["greedy"], row.Total, allPlaces(row))
				}
				go begin("modest")
				synctest.Wait()
				for i := 0; i < 2 && got["modest"] == 0; i++ {
					held[i].Release()
					synctest.Wait()
				}
				if got["modest"] != 1 {
					t.Errorf("another %s gets none of the next places", row.Key)
				}
			})
		})
	}
}

// TestDisplacedPlacesAreFair checks the same for rows whose places are taken with
// Displace: two keys that take what they can get do not keep a third one out.
func TestDisplacedPlacesAreFair(t *testing.T) {
	for _, row := range []semaphore.Row{Parked.Of(10), MetricsConns} {
		s := semaphore.New[string](row)
		for _, key := range []string{"greedy", "other"} {
			for range 2 * row.Total {
				s.Displace(key, func() {})
			}
			if says, takesAll := allPlaces(row) != "none", s.Held(key) == row.Total; says != takesAll {
				t.Errorf("%s: one %s holds %d of %d places, but the page says: %s", row.Name, row.Key, s.Held(key), row.Total, allPlaces(row))
			}
		}
		if taken, _ := s.Counts(); taken != row.Total {
			t.Errorf("%s: %d places are taken, although all are asked for", row.Name, taken)
		}
		if s.Displace("modest", func() {}) == nil || s.Held("modest") != 1 {
			t.Errorf("%s: another %s gets none", row.Name, row.Key)
		}
	}
}

// TestRowsAnswer checks that each row says what a reader needs to know, and that
// every bucket that several users share has a reason.
func TestRowsAnswer(t *testing.T) {
	names := map[string]bool{}
	check := func(process, name, key string, complete bool) {
		if process == "" || name == "" || key == "" || !complete {
			t.Errorf("%s, %s: the row is incomplete", process, name)
		}
		if names[process+name] {
			t.Errorf("%s, %s: two rows have this name", process, name)
		}
		names[process+name] = true
	}
	for _, r := range Places {
		check(r.Process, r.Name, r.Key, (r.Setting != "") != (r.Total > 0) && r.Refused != "" && (r.Total < math.MaxInt || r.Share > 0))
	}
	own := []string{"user", "source", "user or source", "credential", "connection", "worker", "worker or service", "service", "dispatcher", "keeper", "auditor", "exporter"}
	for _, r := range Rates {
		check(r.Process, r.Name, r.Key, (r.Setting != "") != (r.Burst > 0 && r.PerSecond > 0) && r.Refused != "")
		if (r.Shared == "") != slices.Contains(own, r.Key) {
			t.Errorf("%s, %s: whose bucket is it, and why may all share it?", r.Process, r.Name)
		}
		if perUser := strings.Contains(r.Key, "user") || strings.Contains(r.Key, "source"); perUser && r.Max == 0 {
			t.Errorf("%s, %s: the number of buckets has no limit", r.Process, r.Name)
		}
		if r.All > 0 && r.Burst >= r.All {
			t.Errorf("%s, %s: one %s can take all", r.Process, r.Name, r.Key)
		}
	}
	for _, r := range Penalties {
		check(r.Process, r.Name, r.Key, r.Size > 0)
	}
}

// TestLimitsAreRows checks that all limits of the program are rows of the table,
// and that each row is in use: no other package makes a row or an engine without
// its constructor, counts by itself up to the number of a row, gives a bucket
// for each key to all of them, or uses a channel or an atomic counter as a semaphore.
func TestLimitsAreRows(t *testing.T) {
	rows, keyed := rowNames(t)
	unused, excused := maps.Clone(rows), maps.Clone(exceptions)
	for _, f := range sources(t) {
		folder := filepath.Dir(f.name)
		if folder == "internal/limit" {
			continue
		}
		ast.Inspect(f.file, func(n ast.Node) bool {
			fault := func(format string, args ...any) {
				if exceptions[f.name] == "" {
					t.Errorf("%s "+format, append([]any{f.files.Position(n.Pos())}, args...)...)
				}
				delete(excused, f.name)
			}
			switch n := n.(type) {
			case *ast.CompositeLit:
				if made := typeName(n.Type); slices.Contains(engines, made) && f.name != "privsep/monitor.go" {
					t.Errorf("%s makes a %s: add a row to package limit", f.files.Position(n.Pos()), made)
				}
			case *ast.ValueSpec: // a zero value
				if made := typeName(n.Type); slices.Contains(engines, made) {
					t.Errorf("%s declares a %s", f.files.Position(n.Pos()), made)
				}
			case *ast.CallExpr:
				if made := typeName(n.Fun); made == "rate.New" || made == "rate.NewBuckets" {
					if row := rowOf(n.Args[0]); rows[row] && keyed[row] != (made == "rate.NewBuckets") {
						t.Errorf("%s calls %s for the row %s: NewBuckets is for those with Max", f.files.Position(n.Pos()), made, row)
					}
				}
				if isLargeChannel(n) {
					fault("makes a channel with several places: if callers wait for one, use package semaphore, where they have turns")
				}
			case *ast.BinaryExpr:
				if call, ok := n.X.(*ast.CallExpr); ok && (n.Op == token.GTR || n.Op == token.GEQ) && isIncrement(call) {
					fault("compares a counter with a limit: use Place.Grow")
				}
			case *ast.SelectorExpr:
				if row := rowOf(n); rows[row] {
					delete(unused, row)
				}
				if row := rowOf(n.X); rows[row] && n.Sel.Name != "Of" && n.Sel.Name != "WithShare" {
					fault("reads %s of the row %s: let an engine compare it", n.Sel.Name, row)
				}
			}
			return true
		})
	}
	delete(unused, "ParentArrivals") // see TestParentRows in package privsep
	delete(unused, "ParentRestarts")
	delete(unused, "ParentVouches")
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("nothing uses the row %s", name)
	}
	for _, name := range slices.Sorted(maps.Keys(excused)) {
		t.Errorf("%s is no exception any longer", name)
	}
}

// exceptions has the files that may count by themselves, or in a channel, with the
// reason.
var exceptions = map[string]string{
	"bundled/ctld/ctld.go":                   "the number of jobs by default",
	"bundled/ctld/spool.go":                  "the journal counts the bytes, also of an earlier process",
	"bundled/ctld/usage.go":                  "the journal counts the bytes, also of an earlier process",
	"bundled/daemon/queries.go":              "the share is smaller with few processors",
	"bundled/dbd/store.go":                   "the database keeps a connection for each query",
	"cli/await.go":                           "schedctl has one user",
	"gateway/auditor/claims/store.go":        "the file counts the keys, also of an earlier process",
	"gateway/auditor/log.go":                 "a worker may have as many changes as are free",
	"gateway/dispatcher/admission/shares.go": "the connections that wait are those in the Queue of the slots",
	"gateway/dispatcher/dispatcher.go":       "tests set lower numbers",
	"gateway/keeper/manage.go":               "the register counts the tokens, also of an earlier process",
	"gateway/output/output.go":               "each process has one user, and links as little as possible",
	"gateway/proof/page.go":                  "shows the numbers",
	"gateway/worker/conns/offence.go":        "the length of a queue of reports, each of which has taken a token",
	"gateway/worker/server.go":               "a channel for exit statuses, for which no client waits",
	"internal/fdpass/fdpass.go":              "linked into the parent; each call ends within milliseconds",
	"rpc/client/sessions.go":                 "two keys, the token and its user, and a list of at most 17",
	"rpc/client/turn.go":                     "idle sessions make room for calls",
}

// isIncrement reports whether a call adds 1 to an atomic counter.
func isIncrement(call *ast.CallExpr) bool {
	m, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || m.Sel.Name != "Add" || len(call.Args) != 1 {
		return false
	}
	n, ok := call.Args[0].(*ast.BasicLit)
	return ok && n.Value == "1"
}

// rowOf returns the name of the row that an expression is, perhaps with other
// numbers, or "".
func rowOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.CallExpr:
		if m, ok := e.Fun.(*ast.SelectorExpr); ok && (m.Sel.Name == "Of" || m.Sel.Name == "WithShare") {
			return rowOf(m.X)
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "limit" {
			return e.Sel.Name
		}
	}
	return ""
}

// engines are the types of which only package limit makes values.
var engines = []string{"semaphore.Row", "rate.Row", "penalty.Row", "semaphore.Semaphore", "semaphore.Queue", "rate.Bucket", "rate.Buckets", "penalty.Table"}

// typeName returns the name of a type of another package, without its
// parameters, or "".
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IndexExpr:
		return typeName(e.X)
	case *ast.IndexListExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			return x.Name + "." + e.Sel.Name
		}
	}
	return ""
}

// isLargeChannel reports whether a call of make makes a channel that can hold more
// than one value, except signals and errors, for which no client waits.
func isLargeChannel(call *ast.CallExpr) bool {
	if name, ok := call.Fun.(*ast.Ident); !ok || name.Name != "make" || len(call.Args) < 2 {
		return false
	}
	channel, ok := call.Args[0].(*ast.ChanType)
	if !ok || typeName(channel.Value) == "os.Signal" {
		return false
	}
	if name, ok := channel.Value.(*ast.Ident); ok && name.Name == "error" {
		return false
	}
	size, constant := call.Args[1].(*ast.BasicLit)
	return !(constant && size.Value == "1")
}

type source struct {
	name  string
	file  *ast.File
	files *token.FileSet
}

// sources parses the Go files of the programs, without tests and the engines.
func sources(t *testing.T) (list []source) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains([]string{".git", "web", "dist", "integration", "bench", "tools"}, name) || d.Name() == "fakeparent" || d.Name() == "testdata" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		case slices.Contains([]string{"internal/semaphore", "internal/rate", "internal/penalty"}, filepath.Dir(name)):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		list = append(list, source{name, file, files})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 500 {
		t.Fatal(errors.New("most sources are missing"))
	}
	return list
}

// rowNames returns the names of all rows and of those with a bucket for each key,
// and checks that the lists contain them.
func rowNames(t *testing.T) (names, keyed map[string]bool) {
	t.Helper()
	names, keyed = map[string]bool{}, map[string]bool{}
	listed := 0
	for _, f := range sources(t) {
		if filepath.Dir(f.name) != "internal/limit" {
			continue
		}
		for _, d := range f.file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				v := spec.(*ast.ValueSpec)
				literal := v.Values[0].(*ast.CompositeLit)
				if array, ok := literal.Type.(*ast.ArrayType); ok && strings.HasSuffix(typeName(array.Elt), ".Row") {
					listed += len(literal.Elts)
				} else {
					names[v.Names[0].Name] = true
					for _, field := range literal.Elts {
						if field.(*ast.KeyValueExpr).Key.(*ast.Ident).Name == "Max" {
							keyed[v.Names[0].Name] = true
						}
					}
				}
			}
		}
	}
	if len(names) != listed {
		t.Errorf("the table has %d rows, but its lists have %d", len(names), listed)
	}
	return names, keyed
}

// TestFigures checks that the pages and manuals state the numbers of the table.
func TestFigures(t *testing.T) {
	pages := map[string]string{}
	for _, tt := range []struct {
		page, figure string
		numbers      []any
	}{
		{"LIMITS.md", "(`--max-per-source`) | all; half with `become_user` | wait %.0f s, then 503", []any{Slots.Wait.Seconds()}},
		{"LIMITS.md", "to the metrics listener (`--metrics`) | %d; half for one source", []any{2 * MetricsConns.Share}},
		{"LIMITS.md", "(`--max-identities`) | 64; a quarter for one user | wait %.0f s, then 503", []any{Identities.Wait.Seconds()}},
		{"LIMITS.md", "new ones of a user of UNIX sockets in a second | %.0f", []any{ParentArrivals.PerSecond}},
		{"LIMITS.md", "for all tokens of a user, in each worker | %d; a list of one job", []any{Feeds.Share / WholeList}},
		{"LIMITS.md", "at a time read for these, in each worker | %d; %d for one user", []any{Passes.Total, Passes.Share}},
		{"LIMITS.md", "long calls, in each worker | %d; %d for one user", []any{AccountingCalls.Total, AccountingCalls.Share}},
		{"LIMITS.md", "for long lists, in each worker | %d, or %d with lists for which memory is short; %d for one user", []any{LongRequests.Total, LongConns.Total, LongConns.Share}},
		{"LIMITS.md", "changes of a user in the audit log | %.0f MiB, then %.0f KiB", []any{AuditBytes.Burst / (1 << 20), AuditBytes.PerSecond / (1 << 10)}},
		{"LIMITS.md", "HTTP/2 frames without progress | %.0f, then %.0f a second", []any{Frames.Burst, Frames.PerSecond}},
		{"LIMITS.md", "%.0f at once, then %.0f a second", []any{RefusalAnswers.Burst, RefusalAnswers.PerSecond}},
		{"design/TRUST.md", "who opens more than %.0f a second to UNIX sockets (at a daemon, %.0f)", []any{ParentArrivals.PerSecond, DaemonArrivals.PerSecond}},
		{"man/schedctld.8", "%.0f MiB at once, and %.0f KiB a second", []any{JobBytes.Burst / (1 << 20), JobBytes.PerSecond / (1 << 10)}},
		{"man/scheddbd.8", "at most %d MiB for each", []any{DaemonSpoolBytes.Share >> 20}},
	} {
		if pages[tt.page] == "" {
			text, err := os.ReadFile(root + "/docs/" + tt.page)
			if err != nil {
				t.Fatal(err)
			}
			pages[tt.page] = strings.Join(strings.Fields(string(text)), " ")
		}
		if want := fmt.Sprintf(tt.figure, tt.numbers...); !strings.Contains(pages[tt.page], want) {
			t.Errorf("%s does not say: %s", tt.page, want)
		}
	}
}

var update = flag.Bool("update", false, "rewrite docs/generated/LIMITS.md")

// TestPageShowsTheTable checks that docs/generated/LIMITS.md has the same rows as
// the table.
func TestPageShowsTheTable(t *testing.T) {
	const page = root + "/docs/generated/LIMITS.md"
	for _, part := range []struct{ name, text string }{{"places", placesPage()}, {"rates", ratesPage()}, {"penalties", penaltiesPage()}} {
		section.Check(t, page, "<!-- "+part.name+": generated by go test ./internal/limit -update -->\n", "<!-- end of "+part.name+" -->\n", part.text, *update)
	}
}

// allPlaces returns who can hold all places of a row.
func allPlaces(r semaphore.Row) string {
	switch {
	case r.Shared != "":
		return "anyone: " + r.Shared
	case r.Lends:
		return fmt.Sprintf("each %s, while no other waits", r.Key)
	case r.Parts > 1 || r.Share > 0 && r.Share < r.Total:
		return "none"
	case r.Displaces:
		return fmt.Sprintf("each %s, until others need them", r.Key)
	}
	return fmt.Sprintf("each %s, but then others have their turn", r.Key)
}

// allTokens returns who can use up a bucket of a row.
func allTokens(r rate.Row) string {
	if r.Shared != "" {
		return "anyone: " + r.Shared
	}
	return "none"
}

func placesPage() string {
	var b strings.Builder
	b.WriteString("| process | places | number | of one | who can take all | if none is free | metric |\n|---|---|---|---|---|---|---|\n")
	for _, r := range Places {
		name, number, share := r.Name, count(r.Total), ""
		if r.Hold > 0 {
			name = fmt.Sprintf("%s, for their first %s", name, r.Hold)
		}
		switch {
		case r.Setting != "":
			number = code(r.Setting)
			share = map[int]string{2: "half", 4: "a quarter"}[r.Parts]
		case r.Share > 0:
			share = count(r.Share)
		}
		if share != "" {
			share = r.Key + ": " + share
		}
		refused := r.Refused
		if r.Wait > 0 && r.Wait < semaphore.Forever {
			refused = fmt.Sprintf("waits %s, then %s", r.Wait, refused)
		}
		metrics := code(r.Metric)
		if r.Counts != nil {
			metrics = strings.TrimPrefix(metrics+", "+code(`limit="`+r.Counts.Label+`"`), ", ")
		}
		row(&b, r.Process, name, number, share, allPlaces(r), refused, metrics)
	}
	return b.String()
}

func ratesPage() string {
	var b strings.Builder
	b.WriteString("| process | what is limited | of each | at once | a second | if exceeded | who can use up that of others | metric |\n|---|---|---|---|---|---|---|---|\n")
	for _, r := range Rates {
		burst, perSecond := count(int(r.Burst)), strconv.FormatFloat(math.Round(100*r.PerSecond)/100, 'f', -1, 64)
		if r.PerSecond > 0 && r.PerSecond < .01 {
			perSecond = fmt.Sprintf("1 in %s", time.Duration(float64(time.Second)/r.PerSecond))
		}
		if r.Setting != "" {
			burst, perSecond = code(r.Setting), code(r.Setting)
		}
		if r.All > 0 {
			burst += fmt.Sprintf("; all together %.0f", r.All)
		}
		row(&b, r.Process, r.Name, r.Key, burst, perSecond, r.Refused, allTokens(r), code(r.Metric))
	}
	return b.String()
}

func penaltiesPage() string {
	var b strings.Builder
	b.WriteString("| process | what is remembered | of each | how many |\n|---|---|---|---|\n")
	for _, r := range Penalties {
		row(&b, r.Process, r.Name, r.Key, count(r.Size))
	}
	return b.String()
}

func row(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

// count returns a number as a reader expects it.
func count(n int) string {
	switch {
	case n == math.MaxInt:
		return "no limit"
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprint(n)
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The map module holds the files of a Go module. Together, the tests of its
// packages have every possible result.
var module = map[string]string{
	"go.mod": "module m\ngo 1.26\n",
	"good/good_test.go": `package good
import ("testing"; "fmt")
func TestGood(t *testing.T) { t.Log("quiet"); fmt.Println("quiet") }
func TestSkipped(t *testing.T) { t.Log("quiet"); t.Skipf("needs %s", "root") }
func TestPart(t *testing.T) {
	t.Run("skipped", func(t *testing.T) { t.Skip("needs: curl") })
	t.Run("good", func(t *testing.T) { t.Log("quiet") })
}`,
	"empty/empty.go": "package empty",
	"bad/bad_test.go": `package bad
import "testing"
func TestGood(t *testing.T) { t.Log("quiet") }
func TestBad(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) { t.Parallel(); t.Error("in", name) })
	}
	t.Run("skipped", func(t *testing.T) { t.Skip("needs root") })
}`,
	"panics/panics_test.go": "package panics\nimport \"testing\"\nfunc TestPanics(t *testing.T) { panic(\"boom\") }",
	"busy/busy_test.go": `package busy
import ("os"; "testing")
func TestOther(t *testing.T) { os.WriteFile("ran", nil, 0o600) }
func TestBusy(t *testing.T) {
	if os.Remove("ran") == nil { t.Error("beside others") }
}`,
	"broken/broken_test.go": "package broken\nvar x int = \"\"",
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	for name, text := range module {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for name, tt := range map[string]struct {
		pkg    string
		status int
		want   string // expected output, with times as T
	}{
		"good":   {"./good", 0, "ok  \tm/good\tT\n"},
		"empty":  {"./empty", 0, "?   \tm/empty\t[no test files]\n"},
		"bad":    {"./bad", 1, "--- FAIL: TestBad (T)\n--- FAIL: TestBad/a (T)\n    bad_test.go:6: in a\n--- FAIL: TestBad/b (T)\n    bad_test.go:6: in b\nFAIL\nFAIL\tm/bad\tT\n"},
		"panics": {"./panics", 1, "panic: boom"},
		"broken": {"./broken", 1, "FAIL\tm/broken [build failed]\n"},
		"absent": {"./absent", 1, "[setup failed]"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			status, failed := run([]string{"-count=1", "-vet=off", "-ldflags=-s", tt.pkg}, &out, skips{})
			if want := []failure{{"m/bad", "TestBad"}}; name == "bad" && !slices.Equal(failed, want) || name != "bad" && failed != nil {
				t.Errorf("failed: %v", failed)
			}
			got := regexp.MustCompile(`\d+\.\d+s`).ReplaceAllString(out.String(), "T")
			if status != tt.status || strings.Contains(got, "quiet") {
				t.Errorf("status %d\n%s", status, got)
			}
			if !strings.Contains(got, tt.want) || tt.status == 0 && got != tt.want {
				t.Errorf("printed (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
	s := skips{}
	run([]string{"-vet=off", "-ldflags=-s", "./good", "./bad"}, new(bytes.Buffer), s)
	run([]string{"-vet=off", "-ldflags=-s", "./good"}, new(bytes.Buffer), s)
	var out bytes.Buffer
	s.print(&out)
	want := "\nskipped tests: 3\n  needs root: NAMES\n  needs: curl: good.TestPart/skipped\n"
	got := regexp.MustCompile(`(good\.TestSkipped|bad\.TestBad/skipped), (good\.TestSkipped|bad\.TestBad/skipped)`).ReplaceAllString(out.String(), "NAMES")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAgain checks that tests that have failed run once more, alone, and that
// those that fail again are failures.
func TestAgain(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "busy/busy_test.go", "bad/bad_test.go"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(module[name]), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for pkg, want := range map[string]int{"./busy": 0, "./bad": 1} {
		arguments := []string{"-count=1", "-vet=off", "-ldflags=-s", pkg}
		var out bytes.Buffer
		status, failed := run(arguments, &out, skips{})
		if status != 1 || len(failed) != 1 {
			t.Fatalf("%s: status %d, failed %v\n%s", pkg, status, failed, &out)
		}
		if status := runAlone(arguments, failed, &out); status != want {
			t.Errorf("%s alone: status %d\n%s", pkg, status, &out)
		}
	}
}

func TestRuns(t *testing.T) {
	var got [][]string
	for list := range runs([]string{"-a", "./...", "--", "./b", "--", "./c"}) {
		got = append(got, list)
	}
	if diff := cmp.Diff([][]string{{"-a", "./..."}, {"./b"}, {"./c"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPrint checks that there is no summary if no test was skipped, that the
// summary names only some of the tests if there are many, and that tests that are
// not for this run do not count.
func TestPrint(t *testing.T) {
	var out bytes.Buffer
	skips{}.print(&out)
	s := skips{}
	for _, name := range []string{"A", "B", "C", "D", "E", "F", "A"} {
		s.add("why", "m/p", "Test"+name)
	}
	s.add("not for this run: old", "m/p", "TestG")
	s.print(&out)
	if want := "\nskipped tests: 6\n  why: p.TestA, p.TestB, p.TestC, p.TestD and 2 more\n\ntests that are not for this run: 1\n  old: p.TestG\n"; out.String() != want {
		t.Errorf("%q", out.String())
	}
}

// TestCrash checks that the output of a program that crashed is printed, although
// it follows that of a test that has passed.
func TestCrash(t *testing.T) {
	var out strings.Builder
	r := newReport(&out, skips{})
	for _, text := range []string{
		`{"Action":"run","Package":"p","Test":"TestPasses"}`,
		`{"Action":"output","Package":"p","Test":"TestPasses","Output":"--- PASS: TestPasses (0.00s)\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestPasses"}`,
		`{"Action":"output","Package":"p","Test":"TestPasses","Output":"SIGQUIT: quit\n"}`,
		`{"Action":"output","Package":"p","Output":"FAIL\tp\t1s\n"}`,
		`{"Action":"fail","Package":"p"}`,
	} {
		r.processLine([]byte(text))
	}
	if want := "SIGQUIT: quit\nFAIL\tp\t1s\n"; out.String() != want || !r.aborted {
		t.Errorf("printed %q, want %q; aborted: %t", out.String(), want, r.aborted)
	}
}

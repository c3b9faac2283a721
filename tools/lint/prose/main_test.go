package main

import (
	"os"
	"path/filepath"
	"testing"
)

// counts returns the number of findings of each kind.
func counts(r *report) (n [len(kinds)]int) {
	for _, p := range r.places {
		for kind, findings := range p.findings {
			n[kind] += len(findings)
		}
	}
	return n
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		text           string
		phrases, words int
	}{
		{"Failed logins are throttled and every change is audited.", 0, 0},
		{"Who guesses has to wait, and who changes something leaves a trace.", 2, 0},
		{"A client that waits for nothing else is disconnected. Who may read it?", 0, 0},
		{"The controller decides who is allowed and what is shown.", 0, 0},
		{"It makes room for who waits.", 1, 0},
		{"what has an end in nobody's interest has a limit", 1, 0},
		{"the small daemons that come along", 1, 0},
		{"The worker is in a cage.", 0, 1},
		{"The user chose his own name, or\nelse it is made anew.", 3, 0},
		{"The worker runs as `nobody`.", 0, 0},
		{"munged is the one who vouches for this worker's user", 0, 1},
		{"The socket is the client's.", 1, 0},
		{"The client's socket is open.", 0, 0},
		{"The worker is told that the parent has died of a signal.", 2, 0},
		{"discharged, hired and anchors", 0, 3},
		{"best-effort", 0, 0},
	} {
		r := report{places: map[string]*place{}}
		r.text("x.md", 1, c.text)
		if n := counts(&r); n[phrase] != c.phrases || n[retiredWord] != c.words {
			t.Errorf("%q: %d phrases, %d retired words; want %d, %d: %v", c.text, n[phrase], n[retiredWord], c.phrases, c.words, r.places["x.md"])
		}
	}
}

func TestGoFile(t *testing.T) {
	r := report{places: map[string]*place{}}
	if err := r.goFile("testdata/example.go"); err != nil {
		t.Fatal(err)
	}
	if got, want := counts(&r), [...]int{phrase: 3, definition: 2, retiredName: 3, retiredWord: 1}; got != want {
		t.Errorf("findings %v, want %v: %v", got, want, r.places)
	}
	if r.functions != 4 {
		t.Errorf("%d functions have comments, want 4", r.functions)
	}
}

func TestMarkup(t *testing.T) {
	for _, c := range []struct {
		name    string
		extract func(string) string
		page    string
		want    int
	}{
		{"markdown", fromMarkdown, "# Of nobody\n\n```\nnobody\n```\n\nCall `nobody`.\n", 1},
		{"manual", fromMdoc, ".Dd today\n.It Fl x\nAsk\n.Em nobody .\n.Bd -literal\nnobody\n.Ed\n", 1},
		{"makefile", fromHashComments, "all: # for nobody\n\techo nobody\n", 1},
	} {
		r := report{places: map[string]*place{}}
		r.text("x", 1, c.extract(c.page))
		if n := counts(&r)[phrase]; n != c.want {
			t.Errorf("%s: %d phrases, want %d", c.name, n, c.want)
		}
	}
}

func TestSubjects(t *testing.T) {
	for subject, want := range map[string]bool{
		"worker: send no 408 after a complete header": true,
		"api, privsep: describe types":                true,
		"api/v0.0.43: add a field":                    true,
		"Fix the worker":                              false,
		"worker:fix":                                  false,
	} {
		if got := goodSubject.MatchString(subject); got != want {
			t.Errorf("%q: %v, want %v", subject, got, want)
		}
	}
}

func TestRuleNumbersOnlyFall(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(allowedFile), 0o777); err != nil {
		t.Fatal(err)
	}
	before := map[string][len(kinds)]int{"a": {3, 3, 3, 3}, "gone": {1, 1, 1, 1}}
	present := map[string]*place{"a": {}, "new": {}}
	present["a"].findings[phrase] = make([]finding, 5)
	present["a"].findings[definition] = make([]finding, 2)
	present["new"].findings[phrase] = make([]finding, 1)
	if err := writeAllowed(before, present); err != nil {
		t.Fatal(err)
	}
	after, err := readAllowed()
	if err != nil {
		t.Fatal(err)
	}
	if want := [len(kinds)]int{phrase: 3, definition: 2}; len(after) != 1 || after["a"] != want {
		t.Errorf("permitted %v, want a: %v only", after, want)
	}
}

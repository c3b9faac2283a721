package reason

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the explanations for the status page")

// TestPage checks that the status page has the explanations.
func TestPage(t *testing.T) {
	const path = "../../web/src/core/reasons.json"
	table := map[string][2]string{}
	for _, name := range Names {
		if e, ok := Explain(name); ok {
			table[name] = [2]string{e.Why, e.Change}
		}
	}
	text, err := json.MarshalIndent(table, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != string(text) {
		t.Errorf("the page's explanations are out of date (%v): go test ./api/reason -update && make web", err)
	}
}

// TestExplained checks that each reason has an explanation.
func TestExplained(t *testing.T) {
	seen := map[string]bool{}
	for n, name := range Names {
		if name == "" {
			continue
		}
		e, ok := Explain(name)
		switch {
		case !ok:
			t.Errorf("%d %s is not explained", n, name)
		case !strings.HasSuffix(e.Why, ".") || strings.Contains(e.Why, "  ") || strings.Contains(e.Why, "%!"):
			t.Errorf("%s: %q", name, e.Why)
		case e.Change != "" && !strings.HasSuffix(e.Change, "."):
			t.Errorf("%s: %q", name, e.Change)
		}
		if testing.Verbose() && !seen[e.Why] {
			t.Logf("%s: %s %s", name, e.Why, e.Change)
		}
		seen[e.Why] = true
	}
	for _, table := range []map[string]text{explanations, failures} {
		for name, e := range table {
			if !seen[e.why] {
				t.Errorf("no reason has the name %s", name)
			}
		}
	}
	if !IsFailure("TimeLimit") || IsFailure("Resources") || IsFailure("AssocGrpCpuLimit") {
		t.Error("a reason for which jobs wait is a failure, or the other way round")
	}
	if _, ok := Explain("4711"); ok {
		t.Error("an unknown reason is explained")
	}
}

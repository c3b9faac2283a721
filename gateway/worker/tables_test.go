package worker

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"schedrestd/internal/errs"
)

func TestTables(t *testing.T) {
	all := []string{"parsers=v0.0.42+minimize_refs,v0.0.43", "content=schedctld,openapi/scheddb", "auth=local,jwt", "names=sched"}
	var compact, pretty bytes.Buffer
	if err := Tables(append(all, "statuses=200,401", "json=compact"), &compact); err != nil {
		t.Fatal(err)
	}
	if err := Tables(append(all, "statuses=200,401", "json=pretty"), &pretty); err != nil {
		t.Fatal(err)
	}
	if bytes.Count(compact.Bytes(), []byte("\n")) != 1 || bytes.Count(pretty.Bytes(), []byte("\n")) < 1000 {
		t.Error("the layouts are not as asked for")
	}
	var doc struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	for _, text := range [][]byte{compact.Bytes(), pretty.Bytes()} {
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		ping := doc.Paths["/scheddb/v0.0.43/diag/"]["get"]
		if len(ping.Responses) != 2 || ping.Responses["401"] == nil || doc.Paths["/sched/v0.0.41/ping/"] != nil {
			t.Errorf("not what was asked for: %v", ping)
		}
	}
}

// TestTablesRefuse checks that invalid arguments are refused, and that nothing
// is printed for them.
func TestTablesRefuse(t *testing.T) {
	good := []string{"parsers=v0.0.43", "content=schedctld", "auth=jwt", "names=sched"}
	for _, bad := range []string{"parsers=v0.0.43", "names=neither", "colour=red", "statuses=everything", "json=yaml", "json", ""} {
		var out bytes.Buffer
		if err := Tables(append(good, bad), &out); errs.KindOf(err) != errs.Invalid || out.Len() > 0 {
			t.Errorf("%q: %v, %d bytes", bad, err, out.Len())
		}
	}
	for i := range good {
		var out bytes.Buffer
		name, _, _ := strings.Cut(good[i], "=")
		args := append(append([]string{}, good[:i]...), good[i+1:]...)
		if err := Tables(args, &out); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

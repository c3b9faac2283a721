package api

import (
	"testing"

	"schedrestd/api/schema"
)

// TestTaskLists checks that InTaskList finds tasks in lists that contain
// ranges, steps and a limit. It also checks that InTaskList finds no task in an
// invalid part of a list.
func TestTaskLists(t *testing.T) {
	for list, want := range map[string][]uint32{
		"1-3,7": {1, 2, 3, 7}, "0-9:3%2": {0, 3, 6, 9}, "5": {5}, "": nil, "x-3": nil, "3-1": nil, "4-": nil, "2-6:0": nil, "0-9:x": nil, "0-9:": nil, "0-9:x,4": {4}, "8%1": {8},
	} {
		in := map[uint32]bool{}
		for _, task := range want {
			in[task] = true
		}
		for task := range uint32(12) {
			if InTaskList(list, task) != in[task] {
				t.Errorf("%d in %q: %v", task, list, !in[task])
			}
		}
	}
}

// TestHostLists checks that the parser refuses an invalid host list, so that it
// is not sent to a daemon.
func TestHostLists(t *testing.T) {
	parse := hostList().Parser(schema.View{Version: V43})
	for text, want := range map[string]bool{
		"n1": true, "n1,n2": true, "n[01-03,7]": true, "r[1-2]n[3-4],x": true, "": true,
		"n[": false, "n]": false, "n[1-": false, "n[[1]]": false, "n[a]": false, "n[]": false, "n[1]]": false,
	} {
		var r schema.Report
		var s string
		if got := parse(&r, &schema.Value{Kind: schema.Text, Text: text, Untyped: true}, &s); got != want {
			t.Errorf("%q: accepted: %v", text, got)
		}
	}
}

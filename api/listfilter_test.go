package api

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// parsed parses parameters as a request does.
func parsed[P any](t *testing.T, table *schema.ObjectType[P], query string) (*P, []schema.Note) {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	doc := &schema.Value{Kind: schema.Map}
	for name, list := range values {
		one := schema.Value{Kind: schema.Array, Key: name, Untyped: true}
		for _, text := range list {
			one.Items = append(one.Items, schema.Value{Kind: schema.Text, Text: text, Untyped: true})
		}
		if len(list) == 1 {
			one = one.Items[0]
			one.Key = name
		}
		doc.Items = append(doc.Items, one)
	}
	var r schema.Report
	p := new(P)
	table.Parser(schema.View{Version: V45})(&r, doc, p)
	return p, r.Errors
}

// matching returns the names of the entries that match.
func matching[T any](entries map[string]T, match func(T) bool) string {
	var names []string
	for name, entry := range entries {
		if match(entry) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestJobFilter checks which jobs each filter selects.
func TestJobFilter(t *testing.T) {
	jobs := map[string]*model.Job{
		"run":  {StepID: model.StepID{JobID: 10}, UserID: 1001, UserName: "ann", Account: "lab", Partition: "long", State: model.JobRunning, Name: "a", QOS: "fast", Nodes: "n[1-3,7]", WCKey: "*w"},
		"end":  {StepID: model.StepID{JobID: 11}, UserID: 1002, Account: "lab", Partition: "short", State: model.JobRunning | model.JobCompleting, Name: "b", QOS: "slow", Nodes: "n8", Reservation: "r1"},
		"wait": {StepID: model.StepID{JobID: 20}, ArrayJobID: 20, ArrayTasks: "0x82", UserID: 1001, UserName: "ann", Account: "dev", Partition: "long,short", Name: "a", QOS: "fast", Reservation: "r1,r2"},
		"task": {StepID: model.StepID{JobID: 21}, ArrayJobID: 20, ArrayTaskID: model.Some[uint32](3), UserID: 1001, UserName: "ann", State: model.JobFailed, Nodes: "n1", WCKey: "x"},
		"het":  {StepID: model.StepID{JobID: 31}, HetJobID: 30, HetJobOffset: 1, UserID: 0, State: model.JobSuspended, Partition: "longer"},
	}
	for query, want := range map[string]string{
		"":                         "end het run task wait",
		"users=ann":                "run task wait",
		"users=1002,ben":           "end",
		"users=root":               "het",
		"users=0":                  "het",
		"users=ann&users=1002":     "end run task wait",
		"account=lab":              "end run",
		"account=LAB":              "end run",
		"partition=LONG":           "",
		"job_name=A":               "",
		"account=lab&users=ann":    "run",
		"partition=long":           "run wait",
		"partition=short":          "end wait",
		"state=running":            "end run",
		"state=COMPLETING":         "end",
		"state=PENDING,FAILED":     "task wait",
		"job_name=a":               "run wait",
		"qos=slow,fast":            "end run wait",
		"qos=Slow":                 "end",
		"node=n1":                  "run task",
		"node=n[7-9]":              "end run",
		"node=n[8-5000]":           "end",
		"reservation=r2":           "wait",
		"wckey=w":                  "run",
		"wckey=W":                  "run",
		"job_id=10":                "run",
		"job_id=20":                "task wait",
		"job_id=20_3":              "task",
		"job_id=20_7":              "wait",
		"job_id=20_*":              "task wait",
		"job_id=10-20":             "end run task wait",
		"job_id=30":                "het",
		"job_id=30%2B1":            "het",
		"job_id=30%2B0":            "",
		"job_id=11,20_1&job_id=40": "end wait",
		"state=RUNNING&node=n2,n8&qos=fast&partition=long&account=lab&job_name=a&users=ann": "run",
	} {
		p, errors := parsed(t, jobListParams, query)
		if errors != nil {
			t.Errorf("%s: %v", query, errors)
		}
		got := matching(jobs, func(j *model.Job) bool { return p.Match(&JobRow{Job: j, Users: fixedNames{0: "root"}}) })
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
}

type fixedNames map[uint32]string

func (n fixedNames) User(uid uint32) string  { return n[uid] }
func (n fixedNames) Group(gid uint32) string { return n[gid] }

// TestNodeFilter checks which nodes each filter selects.
func TestNodeFilter(t *testing.T) {
	nodes := map[string]*NodeRow{
		"a": {Node: &model.Node{Name: "n1", State: model.NodeIdle, Features: "gpu,big"}, Partitions: []string{"long", "short"}},
		"b": {Node: &model.Node{Name: "n2", State: model.NodeAllocated, AllocCPUs: 2, EffectiveCPUs: 4, ActiveFeatures: "gpus"}, Partitions: []string{"long"}},
		"c": {Node: &model.Node{Name: "n10", State: model.NodeDown | model.NodeDrain | model.NodePoweredDown}},
	}
	for query, want := range map[string]string{
		"":                            "a b c",
		"node=n[1-2]":                 "a b",
		"node=n10,n3":                 "c",
		"partition=short":             "a",
		"partition=short,long":        "a b",
		"state=idle,DOWN":             "a c",
		"state=MIXED":                 "b",
		"state=ALLOCATED":             "",
		"state=DRAIN":                 "c",
		"state=powered_down&node=n1":  "",
		"feature=gpu":                 "a",
		"feature=gpus":                "b",
		"feature=big,gpus&state=IDLE": "a",
	} {
		p, errors := parsed(t, nodeListParams, query)
		if errors != nil {
			t.Errorf("%s: %v", query, errors)
		}
		if d := cmp.Diff(want, matching(nodes, p.Match)); d != "" {
			t.Errorf("%s: %s", query, d)
		}
	}
}

// TestFiltersRefused checks the errors about filters without a valid value.
func TestFiltersRefused(t *testing.T) {
	for query, want := range map[string]string{
		"state=RUNING":               `unknown state "RUNING"; did you mean RUNNING?`,
		"state=":                     "is empty; omit it if any value may match",
		"users=":                     "is empty; omit it if any value may match",
		"users=,":                    "is empty; omit it if any value may match",
		"users=%20":                  "is empty; omit it if any value may match",
		"node=n[1-":                  `expected nodes such as node1,n[01-03], got "n[1-"`,
		"node=n[1-40000],n[1-40000]": "more than 65536 names",
		"node=n[3-1]":                `expected nodes such as node1,n[01-03], got "n[3-1]"`,
		"node=n[0-99999]":            "more than 65536 names",
		"node=" + strings.Repeat("n", 200) + "[1-20000]": "the names are longer than 2097152 bytes together",
		"job_id=twelve":      `expected a job such as 12, 12-20, 12_3 or 12+1, got "twelve"`,
		"job_id=20-10":       `expected a job such as 12, 12-20, 12_3 or 12+1, got "20-10"`,
		"job_id=":            "is empty; omit it if any value may match",
		"partition=long,%01": `expected names separated by commas, got "long,\x01"`,
	} {
		_, errors := parsed(t, jobListParams, query)
		if len(errors) != 1 || !strings.HasSuffix(errors[0].Text, want) {
			t.Errorf("%s: %+v, want %s", query, errors, want)
		}
	}
}

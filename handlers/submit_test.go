package handlers

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/model"
)

func TestSubmit(t *testing.T) {
	tests := []struct {
		name, body string
		want       model.JobDesc
		warnings   []string // expected sources of the warnings
	}{
		{name: "the specification's example", body: `{"job": {"script": "#!/bin/sh\n", "name": "test", "account": "a", "environment": ["PATH=/bin"],
			"current_working_directory": "/tmp", "tasks": 4, "memory_per_cpu": 100, "time_limit": 5}}`,
			want: model.JobDesc{Script: "#!/bin/sh\n", Name: "test", Account: "a", Environment: []string{"PATH=/bin"}, WorkDir: "/tmp",
				NumTasks: model.Some[uint32](4), MinMemory: model.Some(100 | model.MemPerCPU), TimeLimit: model.Some[uint32](5)}},
		{name: "script beside the job", body: `{"script": "x", "job": {"name": "n"}}`, want: model.JobDesc{Script: "x", Name: "n"}},
		{name: "one job in jobs", body: `{"jobs": [{"script": "x"}]}`, want: model.JobDesc{Script: "x"}},
		{name: "environment as an object", body: `{"job": {"script": "x", "environment": {"A": "b=c", "N": 1, "Z": null}}}`,
			want: model.JobDesc{Script: "x", Environment: []string{"A=b=c", "N=1", "Z="}}, warnings: []string{"#/job/environment/", "#/job/environment/N", "#/job/environment/Z"}},
		{name: "unknown fields", body: `{"job": {"script": "x", "colour": "red"}, "weather": null}`, want: model.JobDesc{Script: "x"}, warnings: []string{"#/job/colour", "#/weather"}},
		{name: "tokens are left out", body: `{"job": {"script": "x", "environment": ["SCHED_JWT=a", "A=b", "SLURM_JWT=c"]}}`,
			want: model.JobDesc{Script: "x", Environment: []string{"A=b"}}, warnings: []string{"#/job/environment/"}},
		{name: "empty paths", body: `{"job": {"script": "x", "standard_error": "", "standard_output": "", "standard_input": ""}}`,
			want: model.JobDesc{Script: "x"}, warnings: []string{"#/job/standard_error", "#/job/standard_input", "#/job/standard_output"}},
		{name: "wrappers", body: `{"job": {"script": "x", "time_limit": {"infinite": true}, "priority": {"set": false, "number": 7}, "time_minimum": {"number": 3}, "memory_per_node": {"set": true, "number": 9}}}`,
			want: model.JobDesc{Script: "x", TimeLimit: model.Infinite[uint32](), TimeMin: model.Some[uint32](3), MinMemory: model.Some[uint64](9)}},
		{name: "all that is worked out", body: `{"job": {"script": "x", "hold": true, "priority": 5, "nice": -3, "nodes": "2-4", "shared": ["user"], "distribution": "block:cyclic,Pack",
			"cpu_frequency": "low-2400000:OnDemand", "kill_warning_signal": "SIGUSR1", "kill_warning_delay": 60, "user_id": 1000, "group_id": "1001", "rlimits": {"nofile": 4096},
			"excluded_nodes": ["n1", "n2"], "thread_specification": 2, "contiguous": false, "mail_type": ["END", "fail"], "cpu_binding_flags": ["CPU_BIND_TO_CORES", "VERBOSE"]}}`,
			want: model.JobDesc{Script: "x", Priority: model.Some[uint32](0), Nice: model.Some[uint32](model.NiceOffset - 3), MinNodes: model.Some[uint32](2), MaxNodes: model.Some[uint32](4),
				Shared: model.Some[uint16](2), Distribution: model.Some[uint32](0x800012), CPUFreqMin: model.Some[uint32](0x80000001), CPUFreqMax: model.Some[uint32](2_400_000), CPUFreqGov: model.Some[uint32](0x84000000),
				WarnSignal: 10, WarnTime: 60, UserID: model.Some[uint32](1000), GroupID: model.Some[uint32](1001), Environment: []string{"SLURM_RLIMIT_NOFILE=4096", "SLURM_DISTRIBUTION=block:cyclic,pack"}, ExcNodes: "n1,n2",
				CoreSpec: model.Some[uint16](0x8002), Contiguous: model.Some[uint16](0), MailType: model.Some[uint16](6), CPUBindType: model.Some[uint16](5)}, warnings: []string{"#/job/user_id"}},
		{name: "cron", body: `{"job": {"script": "x", "crontab": {"specification": "*/30 8-9 * 1 0,6", "line": {"start": 3, "end": 4}}}}`,
			want: model.JobDesc{Script: "x", Flags: 1 << 22, Cron: model.CronEntry{Set: 1, Flags: 1 << 3, Spec: "*/30 8-9 * 1 0,6", LineStart: 3, LineEnd: 4,
				Minute: model.Bitmap{Len: 61, Set: true, Bits: []byte{1, 0, 0, 0x40, 0, 0, 0, 0}}, Hour: model.Bitmap{Len: 25, Set: true, Bits: []byte{0, 3, 0, 0}},
				DayOfMonth: model.Bitmap{Len: 32, Set: true, Bits: []byte{0xfe, 0xff, 0xff, 0xff}}, Month: model.Bitmap{Len: 13, Set: true, Bits: []byte{2, 0}},
				DayOfWeek: model.Bitmap{Len: 8, Set: true, Bits: []byte{0x41}}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			w := serve(t, config(f), request(http.MethodPost, "/sched/v0.0.42/job/submit", tt.body))
			if w.Code != http.StatusOK || len(f.submitted) != 1 {
				t.Fatalf("status %d, %d submitted: %s", w.Code, len(f.submitted), w.Body)
			}
			if d := cmp.Diff(&tt.want, f.submitted[0]); d != "" {
				t.Error(d)
			}
			body := envelope(t, w.Body.Bytes())
			var warnings []string
			for _, w := range body.Warnings {
				warnings = append(warnings, w.Source)
			}
			if d := cmp.Diff(tt.warnings, warnings); d != "" {
				t.Errorf("warnings: %s", d)
			}
			if body.JobID != 17 {
				t.Errorf("job_id %d", body.JobID)
			}
		})
	}
}

// TestSubmitRefuses checks that an invalid submission is refused, that the
// error names the place of the problem, and that nothing is submitted.
func TestSubmitRefuses(t *testing.T) {
	tests := []struct {
		name, body string
		media      string
		status     int
		source     string
		wantText   string
	}{
		{"a word for a number", `{"job":{"script":"x","tasks":"many"}}`, "", 422, "#/job/tasks", "expected integer"},
		{"out of range", `{"job":{"script":"x","cpus_per_task":70000}}`, "", 422, "#/job/cpus_per_task", "out of range"},
		{"a mark of the RPC", `{"job":{"script":"x","tasks":4294967294}}`, "", 422, "#/job/tasks", "out of range"},
		{"negative", `{"job":{"script":"x","tasks":-1}}`, "", 422, "#/job/tasks", "out of range"},
		{"unknown word", `{"job":{"script":"x","mail_type":["SOMETIMES"]}}`, "", 422, "#/job/mail_type", `unknown word "SOMETIMES"; expected one of BEGIN, END, `},
		{"unknown signal", `{"job":{"script":"x","kill_warning_signal":"BANG"}}`, "", 422, "#/job/kill_warning_signal", `unknown signal "BANG"`},
		{"no time", `{"job":{"script":"x","begin_time":"gibberish"}}`, "", 422, "#/job/begin_time", `expected a time such as `},
		{"no deadline", `{"job":{"script":"x","deadline":"yesterday"}}`, "", 422, "#/job/deadline", `expected a time such as `},
		{"a time before 1970", `{"job":{"script":"x","begin_time":-5}}`, "", 422, "#/job/begin_time", "out of range"},
		{"an unknown unit", `{"job":{"script":"x","memory_per_node":"1X"}}`, "", 422, "#/job/memory_per_node", `expected an amount of memory such as 512, 512M or 1G, got "1X"`},
		{"a fraction of a unit", `{"job":{"script":"x","memory_per_cpu":"1.5G"}}`, "", 422, "#/job/memory_per_cpu", "expected an amount"},
		{"too much memory for 64 bits", `{"job":{"script":"x","memory_per_node":"9999999999999999T"}}`, "", 422, "#/job/memory_per_node", "expected an amount"},
		{"a plane without a size", `{"job":{"script":"x","distribution":"plane="}}`, "", 422, "#/job/distribution", `expected a plane size of 1 to 65533 tasks, got ""`},
		{"too large a plane", `{"job":{"script":"x","distribution":"plane=65534"}}`, "", 422, "#/job/distribution", "expected a plane size of 1 to 65533 tasks"},
		{"a packed plane", `{"job":{"script":"x","distribution":"plane=4,Pack"}}`, "", 422, "#/job/distribution", "expected a distribution such as block:cyclic:fcyclic,Pack or plane=4"},
		{"unknown governor", `{"job":{"script":"x","cpu_frequency":"low:best"}}`, "", 422, "#/job/cpu_frequency", `unknown governor "best"; expected one of conservative, `},
		{"NUL", `{"job":{"script":"x","name":"a\u0000b"}}`, "", 422, "#/job/name", "NUL"},
		{"given twice", `{"job":{"script":"x","name":"a","name":"b"}}`, "", 422, "#/job/name", "twice"},
		{"two kinds of memory", `{"job":{"script":"x","memory_per_cpu":1,"memory_per_node":1}}`, "", 422, "#/job/memory_per_node", "both be set"},
		{"variable without a name", `{"job":{"script":"x","environment":{"A=B":"c"}}}`, "", 422, "#/job/environment/A=B", "not a valid variable name"},
		{"environment in an environment", `{"job":{"script":"x","environment":{"A":{}}}}`, "", 422, "#/job/environment/A", "expected string"},
		{"nonsense in cron", `{"job":{"script":"x","crontab":{"specification":"61 * * * *"}}}`, "", 422, "#/job/crontab", "minute"},
		{"no job", `{}`, "", 422, "#/job", "missing"},
		{"no script", `{"job":{}}`, "", 422, "#/job/script", "no script"},
		{"two scripts", `{"script":"a","job":{"script":"b"}}`, "", 422, "#/job", "the script is set twice"},
		{"job and jobs", `{"job":{"script":"x"},"jobs":[{"script":"x"}]}`, "", 422, "#/job", "both be set"},
		{"no components", `{"jobs":[]}`, "", 422, "#/jobs", "the list is empty"},
		{"too many components", `{"script":"x","jobs":[` + strings.Repeat(`{},`, 128) + `{}]}`, "", 422, "#/jobs", "at most 128"},
		{"no script in the first component", `{"jobs":[{},{"script":"x"}]}`, "", 422, "#/jobs/0/script", "no script"},
		{"a job and components", `{"script":"x","job":{},"jobs":[{}]}`, "", 422, "#/job", "both be set"},
		{"not an object", `[]`, "", 422, "#", "expected object"},
		{"nothing", ``, "", 400, "#", "line 1, column 1"},
		{"cut short", "{\"job\":\n{\"script\":", "", 400, "#", "line 2, column 11"},
		{"too deep", strings.Repeat("[", 1000), "", 400, "#", "nested too deeply"},
		{"another kind of body", `job=x`, "application/x-www-form-urlencoded", 415, "",
			"Content-Type application/x-www-form-urlencoded is not supported; send application/json or application/yaml or application/x-yaml or text/yaml, in UTF-8"},
		{"another charset", `{}`, "application/json; charset=latin1", 415, "", "application/json"},
		{"too large", `{"script":"` + strings.Repeat("x", 2000) + `"}`, "", 413, "", "too large"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			cfg := config(f)
			cfg.MaxBody = 1500
			r := request(http.MethodPost, "/sched/v0.0.42/job/submit", tt.body)
			if tt.media != "" {
				r.Header.Set("Content-Type", tt.media)
			}
			w := serve(t, cfg, r)
			if w.Code != tt.status || len(f.submitted) != 0 {
				t.Fatalf("status %d, want %d; %d submitted: %s", w.Code, tt.status, len(f.submitted), w.Body)
			}
			body := envelope(t, w.Body.Bytes())
			if len(body.Errors) == 0 || body.Errors[0].Source != tt.source || !strings.Contains(body.Errors[0].Description, tt.wantText) {
				t.Errorf("errors %+v, want %q at %q", body.Errors, tt.wantText, tt.source)
			}
		})
	}
}

// corpusText is one text of the JSON corpus, with the name of its file.
type corpusText struct{ file, text string }

// jsonCorpus returns a public corpus of JSON texts. If the corpus is not
// available, jsonCorpus fails the test in CI, and skips it elsewhere.
func jsonCorpus(t *testing.T) []corpusText {
	t.Helper()
	dir := os.Getenv("JSON_CORPUS")
	if dir == "" {
		dir = "../../shared/vectors/json-parsing/test_parsing" // next to the repository
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no JSON corpus in %s (set JSON_CORPUS)", dir)
		}
		t.Skipf("no JSON corpus in %s (set JSON_CORPUS)", dir)
	}
	var texts []corpusText
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, corpusText{filepath.Base(file), string(text)})
	}
	return texts
}

// TestBodiesOfTheCorpus sends a public corpus of JSON texts as bodies. The
// files n_* are invalid JSON, for which the status must be 400. The files y_*
// are valid JSON, but not submissions, so the status must be another 4xx. No
// text may cause an internal error or a submission.
func TestBodiesOfTheCorpus(t *testing.T) {
	f := demo()
	for _, c := range jsonCorpus(t) {
		name := c.file
		w := serve(t, config(f), request(http.MethodPost, "/sched/v0.0.42/job/submit", c.text))
		if name[0] == 'n' && w.Code != http.StatusBadRequest || name[0] == 'y' && w.Code == http.StatusBadRequest || w.Code < 400 || w.Code >= 500 {
			t.Errorf("%s: status %d", name, w.Code)
		}
	}
	if len(f.submitted) != 0 {
		t.Errorf("%d jobs submitted", len(f.submitted))
	}
}

// FuzzSubmit checks that the answer to any body has the usual envelope. A job
// must be submitted if and only if the status is 200.
func FuzzSubmit(f *testing.F) {
	f.Add(`{"job": {"script": "x", "environment": {"A": "b"}, "tasks": 4, "crontab": {"specification": "* * * * *"}}}`)
	f.Add(`{"script": "x", "job": {"nodes": "1-4", "cpu_frequency": "low-high:ondemand", "distribution": "block"}}`)
	f.Add(`{"job": {"script": "x", "name": "a\u0000b", "n\u0061me": "c", "tasks": 1e-400, "time_limit": 0.99999999999999999999}, "job": null}`)
	f.Add("{\"job\": {\"script\": \"\xed\xa0\x80\", \"name\": \"\\ud800\"}}\x00")
	f.Add(`{"jobs": [{"script": "x", "rlimits": {"cpu": {"set": true, "number": 5}}, "flags": ["SPREAD_JOB"]}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		daemon := demo()
		w := serve(t, config(daemon), request(http.MethodPost, "/sched/v0.0.40/job/submit", body))
		envelope(t, w.Body.Bytes())
		if (w.Code == http.StatusOK) != (len(daemon.submitted) == 1) || w.Code >= 500 {
			t.Errorf("status %d, %d submitted", w.Code, len(daemon.submitted))
		}
	})
}

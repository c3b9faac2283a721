package handlers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"schedrestd/model"
)

// TestSubmissionFields tests fields of a submission that slurmrestd takes in a
// special way, with the description that the controller gets.
func TestSubmissionFields(t *testing.T) {
	userspace := model.Some[uint32](0x80800000)
	for _, tt := range []struct {
		name, fields string
		status       int
		warning      string // source of the only warning; "" for none
		check        func(*model.JobDesc) bool
	}{
		{"a frequency", `"script": "#!/bin/sh", "cpu_frequency": "low"`, 200, "", func(d *model.JobDesc) bool { return d.CPUFreqMax.Set && d.CPUFreqGov == userspace }},
		{"a frequency and its governor", `"script": "#!/bin/sh", "cpu_frequency": "2000000:userspace"`, 200, "", func(d *model.JobDesc) bool {
			return d.CPUFreqMax == model.Some[uint32](2000000) && d.CPUFreqGov == userspace
		}},
		{"a range and its governor", `"script": "#!/bin/sh", "cpu_frequency": "low-high:ondemand"`, 200, "", func(d *model.JobDesc) bool { return d.CPUFreqMin.Set && d.CPUFreqGov == model.Some[uint32](0x84000000) }},
		{"a frequency with a governor for ranges", `"script": "#!/bin/sh", "cpu_frequency": "low:ondemand"`, 422, "", nil},
		{"a range with userspace", `"script": "#!/bin/sh", "cpu_frequency": "low-high:userspace"`, 422, "", nil},
		{"a frequency of 0", `"script": "#!/bin/sh", "cpu_frequency": "0"`, 422, "", nil},
		{"no signal", `"script": "#!/bin/sh", "kill_warning_signal": ""`, 200, "", func(d *model.JobDesc) bool { return d.WarnSignal == 0 }},
		{"no schedule", `"script": "#!/bin/sh", "crontab": {}`, 200, "", func(d *model.JobDesc) bool { return d.Cron.Set == 0 && d.Flags&(1<<22) == 0 }},
		{"a schedule without times", `"script": "#!/bin/sh", "crontab": {"minute": "", "hour": "", "line": {"start": 0}}`, 200, "", func(d *model.JobDesc) bool { return d.Cron.Set == 0 && d.Flags&(1<<22) == 0 }},
		{"a part of a schedule", `"script": "#!/bin/sh", "crontab": {"minute": "1"}`, 422, "", nil},
		{"no sharing", `"script": "#!/bin/sh", "shared": []`, 200, "", func(d *model.JobDesc) bool { return !d.Shared.Set }},
		{"no binding", `"script": "#!/bin/sh", "memory_binding_type": []`, 200, "", func(d *model.JobDesc) bool { return !d.MemBindType.Set }},
		{"an empty variable", `"script": "#!/bin/sh", "environment": ["B=2", ""]`, 200, "#/job/environment", func(d *model.JobDesc) bool { return len(d.Environment) == 1 }},
		{"empty variables of the prolog", `"script": "#!/bin/sh", "spank_environment": [""]`, 200, "", func(d *model.JobDesc) bool { return len(d.SpankEnvironment) == 0 }},
		{"all memory", `"script": "#!/bin/sh", "memory_per_cpu": {"infinite": true}`, 200, "", func(d *model.JobDesc) bool { return d.MinMemory == model.Some[uint64](0) }},
		{"all memory twice", `"script": "#!/bin/sh", "memory_per_cpu": -1, "memory_per_node": 5`, 422, "", nil},
		{"an ignored field with a wrong value", `"script": "#!/bin/sh", "hetjob_group": 4294967294`, 200, "#/job/hetjob_group", func(d *model.JobDesc) bool { return true }},
		{"never", `"script": "#!/bin/sh", "begin_time": {"set": true, "infinite": true}`, 200, "#/job/begin_time", func(d *model.JobDesc) bool { return d.BeginTime == 0 }},
		{"an external job", `"flags": ["EXTERNAL_JOB"]`, 200, "", func(d *model.JobDesc) bool { return d.Script == "" && d.Flags&(1<<24) != 0 }},
		{"no script", `"flags": []`, 422, "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			w := serve(t, config(f), request(http.MethodPost, "/slurm/v0.0.45/job/submit", `{"job": {`+tt.fields+`}}`))
			if w.Code != tt.status {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if tt.check == nil {
				return
			}
			if len(f.submitted) != 1 || !tt.check(f.submitted[0]) {
				t.Errorf("submitted %+v", f.submitted)
			}
			var sources []string
			for _, n := range envelope(t, w.Body.Bytes()).Warnings {
				sources = append(sources, n.Source)
			}
			if got := strings.Join(sources, " "); got != tt.warning {
				t.Errorf("warnings about %q, want %q", got, tt.warning)
			}
		})
	}
}

// TestSubmissionRemark checks that the client gets the controller's remark about
// a job that it accepted, such as one that is held.
func TestSubmissionRemark(t *testing.T) {
	const plain = "remark 2021"
	for _, tt := range []struct{ path, body, want string }{
		{"/sched/v0.0.45/job/submit", `{"job": {"script": "#!/bin/sh", "hold": true}}`, plain},
		{"/slurm/v0.0.45/job/submit", `{"job": {"script": "#!/bin/sh", "hold": true}}`, "Job submission resulted in non-zero return code: " + plain + ", " + plain},
		{"/slurm/v0.0.42/job/submit", `{"jobs": [{"script": "#!/bin/sh", "hold": true}, {}]}`, "HetJob submission resulted in non-zero return code: " + plain + ", " + plain},
	} {
		f := demo()
		f.remark = 2021
		cfg := config(f)
		cfg.ErrorText = func(number int) string { return fmt.Sprint("remark ", number) }
		w := serve(t, cfg, request(http.MethodPost, tt.path, tt.body))
		var got []string
		for _, warning := range envelope(t, w.Body.Bytes()).Warnings {
			got = append(got, warning.Description)
		}
		if w.Code != http.StatusOK || strings.Join(got, ", ") != tt.want {
			t.Errorf("%s: status %d, warnings %q: %s", tt.path, w.Code, got, w.Body)
		}
	}
	// Up to v0.0.41 the answer also has the error's text.
	for remark, want := range map[uint32]string{0: `"error_code":0,"error":"remark 0"`, 2021: `"error_code":2021,"error":"remark 2021"`} {
		f := demo()
		f.remark = remark
		cfg := config(f)
		cfg.ErrorText = func(number int) string { return fmt.Sprint("remark ", number) }
		w := serve(t, cfg, request(http.MethodPost, "/slurm/v0.0.41/job/submit", `{"job": {"script": "#!/bin/sh"}}`))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("status %d, want %s: %s", w.Code, want, w.Body)
		}
	}
}

// TestReasonUser checks that a node's reason_uid may be a name.
func TestReasonUser(t *testing.T) {
	for body, want := range map[string]int{
		`{"reason": "r", "reason_uid": "alice"}`: http.StatusOK, `{"reason": "r", "reason_uid": "20001"}`: http.StatusOK,
		`{"reason": "r", "reason_uid": "unknown"}`: http.StatusUnprocessableEntity,
	} {
		f := demo()
		w := serve(t, config(f), request(http.MethodPost, "/slurm/v0.0.42/node/n1", body))
		if w.Code != want || want == http.StatusOK && (len(f.nodeUpdates) != 1 || f.nodeUpdates[0].ReasonUID != model.Some[uint32](20001)) {
			t.Errorf("%s: status %d, %+v: %s", body, w.Code, f.nodeUpdates, w.Body)
		}
	}
}

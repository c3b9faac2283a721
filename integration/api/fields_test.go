package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/internal/programtest"
)

// kindOf returns the type of a JSON value in the terms of the specification's
// tables.
func kindOf(v any) string {
	switch v := v.(type) {
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "number"
		}
		return "int"
	case []any:
		for _, elem := range v {
			if kindOf(elem) != "string" {
				return "array of " + kindOf(elem)
			}
		}
		return "array"
	case map[string]any:
		if len(v) == 3 && kindOf(v["set"]) == "boolean" && kindOf(v["infinite"]) == "boolean" && strings.HasPrefix("int number", kindOf(v["number"])) {
			return "wrap"
		}
		return "object"
	}
	return fmt.Sprintf("%T", v)
}

// parseExact parses the text of an answer. It keeps the numbers as they were
// written.
func parseExact(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v map[string]any
	harness.Must(t, d.Decode(&v))
	return v
}

// hasFields fails the test unless object has all of the named fields, and each
// of them has the type that kind names.
func hasFields(t *testing.T, object map[string]any, kind, names string) {
	t.Helper()
	for name := range strings.FieldsSeq(names) {
		if v, ok := object[name]; !ok || kindOf(v) != kind {
			t.Errorf("%s is %s (%v), want %s", name, kindOf(v), v, kind)
		}
	}
}

// TestNodeFields checks that a node has the fields that the specification's
// table lists, and that their types are those in the table.
func TestNodeFields(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	for _, v := range []string{"v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44"} {
		t.Run(v, func(t *testing.T) {
			list := parseExact(t, l.Request("GET", "/sched/"+v+"/node/"+l.Node, "").Want(t, 200).Text)
			hasFields(t, list, "array of object", "nodes")
			hasFields(t, list, "wrap", "last_update")
			node := list["nodes"].([]any)[0].(map[string]any)
			hasFields(t, node, "string", `name address hostname architecture operating_system version cluster_name owner extra comment
				reason reason_set_by_user reservation mcs_label instance_id instance_type burstbuffer_network_address
				gres gres_drained gres_used specialized_cpus tres tres_used`)
			hasFields(t, node, "array", "state next_state_after_reboot partitions features active_features")
			hasFields(t, node, "int", `boards sockets cores threads cpus effective_cpus specialized_cores cpu_binding cpu_load
				real_memory alloc_memory specialized_memory temporary_disk weight port alloc_cpus alloc_idle_cpus`)
			hasFields(t, node, "number", "tres_weighted")
			hasFields(t, node, "wrap", "boot_time free_mem last_busy reason_changed_at resume_after schedd_start_time")
			hasFields(t, node, "object", "external_sensors power energy")
			if v != "v0.0.40" { // Slurm's v0.0.40 lacks these fields, too
				hasFields(t, node, "string", "gpu_spec")
				hasFields(t, node, "int", "res_cores_per_gpu")
			}
			energy := node["energy"].(map[string]any)
			hasFields(t, energy, "int", "average_watts base_consumed_energy consumed_energy previous_consumed_energy last_collected")
			hasFields(t, energy, "wrap", "current_watts")
			if state := fmt.Sprint(node["state"]); state != "[IDLE]" {
				t.Errorf("state %s", state)
			}
			if next := fmt.Sprint(node["next_state_after_reboot"]); next != "[INVALID]" {
				t.Errorf("next_state_after_reboot %s", next)
			}
		})
	}
}

// TestPingFields checks the entry for a controller in the answer to ping, in
// the API versions up to v0.0.44. (In v0.0.45, the fields pinged and mode have
// other values.) It also checks the list of pings in the accounting daemon's
// answer to diag.
func TestPingFields(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	for _, v := range []string{"v0.0.40", "v0.0.41", "v0.0.42", "v0.0.43", "v0.0.44"} {
		pings, _ := parseExact(t, l.Request("GET", "/sched/"+v+"/ping", "").Want(t, 200).Text)["pings"].([]any)
		if len(pings) != 1 {
			t.Fatalf("%s: %v", v, pings)
		}
		entry := pings[0].(map[string]any)
		hasFields(t, entry, "string", "hostname pinged mode")
		hasFields(t, entry, "int", "latency")
		if entry["hostname"] != l.Node || entry["pinged"] != "UP" || entry["mode"] != "primary" {
			t.Errorf("%s: %v", v, entry)
		}
		pings, _ = parseExact(t, l.Request("GET", "/scheddb/"+v+"/diag", "").Want(t, 200).Text)["pings"].([]any)
		if len(pings) != 1 {
			t.Fatalf("%s, accounting: %v", v, pings)
		}
		hasFields(t, pings[0].(map[string]any), "string", "hostname")
		hasFields(t, pings[0].(map[string]any), "int", "latency")
	}
}

// TestSubmissionFields submits a job with every field that the specification
// lists for requests. There must be no warning. The answer must have the fields
// that the specification lists for answers.
func TestSubmissionFields(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	for _, v := range harness.APIVersions {
		t.Run(v, func(t *testing.T) {
			body := fmt.Sprintf(`{"job":{"script":"#!/bin/sh\ntrue\n","name":"n","account":"physics","environment":["PATH=/usr/bin:/bin"],
				"current_working_directory":%q,"tasks":1,"memory_per_cpu":50,"time_limit":5}}`, l.Work)
			if v != "v0.0.40" { // later versions also accept an object with set, infinite and number
				body = strings.Replace(body, `"time_limit":5`, `"time_limit":{"set":true,"infinite":false,"number":5}`, 1)
			}
			a := l.Request("POST", "/sched/"+v+"/job/submit", body).Want(t, 200)
			if len(a.List("warnings")) > 0 {
				t.Errorf("warnings: %s", a.Text)
			}
			answer := parseExact(t, a.Text)
			hasFields(t, answer, "int", "job_id")
			hasFields(t, answer, "string", "step_id job_submit_user_msg")
			job := l.Request("GET", fmt.Sprintf("/sched/%s/job/%v", v, answer["job_id"]), "").Want(t, 200)
			if job.Get("jobs", 0, "name") != "n" || job.Get("jobs", 0, "account") != "physics" ||
				job.Get("jobs", 0, "current_working_directory") != l.Work || job.Get("jobs", 0, "tasks", "number") != 1.0 ||
				job.Get("jobs", 0, "memory_per_cpu", "number") != 50.0 || job.Get("jobs", 0, "time_limit", "number") != 5.0 {
				t.Errorf("the answer has another job: %s", job.Text)
			}
		})
	}
	t.Run("no Content-Type of ours", func(t *testing.T) {
		l.Request("POST", "/sched/v0.0.43/job/submit", l.JobRequest("true", nil), "Content-Type: text/plain").Want(t, 415)
	})
}

// TestWarningFields tests the warning about an object where an array is
// expected. The warning must name the object's place in the body, and the
// reason.
func TestWarningFields(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	a := l.Request("POST", "/sched/v0.0.43/job/submit", l.JobRequest("true", map[string]any{"environment": map[string]string{"PATH": "/bin"}})).Want(t, 200)
	warning, _ := a.Get("warnings", 0).(map[string]any)
	hasFields(t, warning, "string", "description source")
	if warning["source"] != "#/job/environment/" || !strings.Contains(fmt.Sprint(warning["description"]), "array") || !strings.Contains(fmt.Sprint(warning["description"]), "object") {
		t.Errorf("%v", warning)
	}
}

// TestTokenFields checks that a token requested without options is valid for
// 1800 seconds, is signed with HS256, and names a user. It also checks that the
// option lifespan changes the validity.
func TestTokenFields(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	segment := func(token string, n int) map[string]any {
		parts := strings.Split(strings.TrimSpace(strings.TrimPrefix(token, "SCHED_JWT=")), ".")
		text, err := base64.RawURLEncoding.DecodeString(parts[n])
		harness.Must(t, err)
		return parseExact(t, string(text))
	}
	token := l.Schedctl(t, "token")
	if alg := segment(token, 0)["alg"]; alg != "HS256" {
		t.Errorf("alg %v", alg)
	}
	lifespan := func(token string) int64 {
		claims := segment(token, 1)
		hasFields(t, claims, "int", "iat exp")
		hasFields(t, claims, "string", "sun")
		issuedAt, err := claims["iat"].(json.Number).Int64()
		harness.Must(t, err)
		expiresAt, err := claims["exp"].(json.Number).Int64()
		harness.Must(t, err)
		return expiresAt - issuedAt
	}
	if got := lifespan(token); got != 1800 {
		t.Errorf("valid for %d s", got)
	}
	if got := lifespan(l.Schedctl(t, "token", "lifespan=60")); got != 60 {
		t.Errorf("valid for %d s, requested 60", got)
	}
}

// TestNoFilters checks that the gateway neither opens nor runs the filters,
// SPANK plugins and submission policies in the configuration. Filters and
// plugins are for other programs, and policies are applied by the controller.
func TestNoFilters(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	marker := filepath.Join(l.Work, "ran")
	filter := filepath.Join(l.Dir, "etc", "filter")
	harness.Must(t, programtest.Write(filter, []byte("#!/bin/sh\necho $0 >>"+marker+"\n"), 0o755))
	for _, name := range []string{"cli_filter.lua", "job_submit.lua", "plugstack.conf"} {
		harness.Must(t, os.WriteFile(filepath.Join(l.Dir, "etc", name), []byte("required /nowhere/plugin.so\n"), 0o644))
	}
	text, err := os.ReadFile(l.Conf())
	harness.Must(t, err)
	conf := filepath.Join(l.Dir, "etc", "filters.conf")
	harness.Must(t, os.WriteFile(conf, []byte(string(text)+"CliFilterPlugins=lua,syslog\nJobSubmitPlugins=lua\nPlugStackConfig=/nowhere/plugstack.conf\nSrunProlog="+filter+"\nTaskProlog="+filter+"\n"), 0o644))
	harness.Must(t, os.Chmod(conf, 0o600))
	port := harness.FreePort(t)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	args := append([]string{"-f", conf}, l.Restd.Args[2:len(l.Restd.Args)-1]...)
	g := l.StartGateway(t, nil, append(args, address)...)
	g.CheckServes(address)
	saved := l.URL
	l.URL = "http://" + address
	defer func() { l.URL = saved }()
	id := l.Submit("true", nil)
	l.AwaitEnd(id)
	if _, err := os.Stat(marker); err == nil {
		t.Error("a filter ran")
	}
	if line := regexp.MustCompile(`(?i).*(filter|plugstack|JobSubmit|prolog).*`).FindString(strings.ReplaceAll(g.Logged(), filepath.Base(conf), "")); line != "" {
		t.Errorf("logged %q", line) // Slurm's configurations may contain these settings, so they cause no warning
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("needs strace, to see what is opened")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := l.InetdCommand()
	cmd.Args = append([]string{strace, "-f", "-qq", "-e", "trace=open,openat,execve", "-o", trace, cmd.Path}, args...)
	cmd.Path = strace
	cmd.Stdin = strings.NewReader("POST http://localhost/sched/v0.0.43/job/submit HTTP/1.0\nX-SCHED-USER-TOKEN: " + l.OwnToken +
		"\nContent-Type: application/json\nContent-Length: " + fmt.Sprint(len(l.JobRequest("true", nil))) + "\n\n" + l.JobRequest("true", nil))
	out, log, status := harness.RunCommand(t, cmd)
	if status != 0 || !strings.Contains(out, "200 OK") {
		t.Skipf("strace does not work on this machine: exit status %d, %s\n%s", status, out, log)
	}
	traced, err := os.ReadFile(trace)
	harness.Must(t, err)
	if !strings.Contains(string(traced), `"`+filepath.Base(conf)+`"`) {
		t.Fatalf("a file that must be opened is missing:\n%s", traced)
	}
	if found := regexp.MustCompile(`.*["/](plugstack\.conf|cli_filter\.lua|job_submit\.lua|filter|nowhere)".*`).FindAllString(string(traced), -1); found != nil {
		t.Errorf("opened or run: %q", found)
	}
}

// TestNoInteractiveLaunch checks that no path starts a step or attaches to one,
// and that schedctl launches nothing. (The path job/allocate would only reserve
// resources. The bundled controller does not support it.)
func TestNoInteractiveLaunch(t *testing.T) {
	t.Parallel()
	l := harness.NewLab(t)
	doc := l.Request("GET", "/openapi", "", "X-SCHED-USER-TOKEN:")
	paths, _ := doc.Get("paths").(map[string]any)
	if len(paths) < 30 {
		t.Fatalf("%d paths", len(paths))
	}
	for path, item := range paths {
		for method := range item.(map[string]any) {
			if method != "post" && method != "put" {
				continue
			}
			if regexp.MustCompile(`step|launch|run|attach|interactive`).MatchString(path) {
				t.Errorf("%s %s", method, path)
			}
		}
	}
	for path, status := range map[string]int{"job/allocate": 501, "job/1/step": 404, "step/launch": 404} {
		l.Request("POST", "/sched/v0.0.43/"+path, `{"job":{"current_working_directory":"/","environment":["A=b"]}}`).Want(t, status)
	}
	for _, word := range []string{"run", "srun", "alloc", "salloc", "attach", "shell"} {
		cmd := exec.Command(filepath.Join(harness.Bin, "schedctl"), "-f", l.Conf(), word, "true")
		cmd.Env = append(os.Environ(), "SCHED_JWT="+l.OwnToken)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "unknown command") {
			t.Errorf("%s: %v\n%s", word, err, out)
		}
	}
}

// TestEachRequestAuthenticates checks that each request is authenticated on its
// own, even if an earlier request on the same connection was accepted.
func TestEachRequestAuthenticates(t *testing.T) {
	t.Parallel()
	l := harness.NewDaemons(t)
	cmd := l.InetdCommand("-a", "rest_auth/jwt")
	cmd.Stdin = strings.NewReader("GET http://localhost/sched/v0.0.43/ping HTTP/1.1\nX-SCHED-USER-TOKEN: " + l.OwnToken + "\n\n" +
		"GET http://localhost/sched/v0.0.43/ping HTTP/1.1\n\n" +
		"GET http://localhost/sched/v0.0.43/ping HTTP/1.1\nX-SLURM-USER-TOKEN: " + l.OwnToken + "\n\n")
	out, log, status := harness.RunCommand(t, cmd)
	if got := harness.Statuses(harness.ParseAnswers(t, out)); got != "[200 401 200]" || status != 1 {
		t.Errorf("%s, exit status %d\n%s", got, status, log)
	}
}

package script

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/model"
)

var update = flag.Bool("update", false, "write the table of options for the status page")

// page is the folder of the status page, which has the same table.
const page = "../../web/"

// TestTable checks that the status page has the table of options, that each row
// is complete, and that no option hides another.
func TestTable(t *testing.T) {
	table, err := Table()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page+"src/core/options.json", table, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page + "src/core/options.json")
	if err != nil || string(got) != string(table) {
		t.Errorf("the page's table of options is out of date (%v): go test ./cli/script -update && make web", err)
	}
	letters := map[string]string{}
	for i, o := range options {
		if syntaxes[o.syntax] == nil && o.syntax != "refused" {
			t.Errorf("--%s: unknown syntax %q", o.name, o.syntax)
		}
		if i > 0 && options[i-1].name >= o.name {
			t.Errorf("--%s is not sorted", o.name)
		}
		if o.letter != "" && letters[o.letter] != "" {
			t.Errorf("-%s is --%s and --%s", o.letter, o.name, letters[o.letter])
		}
		letters[o.letter] = o.name
	}
	for name := range unchangeable {
		if byName[name] == nil {
			t.Errorf("--%s can't be changed, but is no option", name)
		}
	}
}

// TestFields checks that the REST API has all fields that options set, and
// accepts the values.
func TestFields(t *testing.T) {
	special := map[string]string{"distribution": "block:cyclic", "cpu-freq": "low-high:ondemand"}
	parser := api.JobDesc.Parser(schema.View{Version: api.V45})
	for _, o := range options {
		if o.syntax == "refused" {
			continue
		}
		values := someValues
		if special[o.name] != "" {
			values = []string{special[o.name]}
		} else if o.syntax == "text" || o.arg == none {
			values = []string{"a"}
		}
		accepted := 0
		for _, value := range values {
			r := reader{job: Job{}}
			if syntaxes[o.syntax](&r, &o, value) != nil || slices.Contains([]string{"70000", "2147483646"}, value) {
				continue // the gateway refuses numbers that Slurm's protocol can't represent
			}
			accepted++
			text, err := json.Marshal(r.job)
			if err != nil {
				t.Fatal(err)
			}
			doc, err := schema.ReadJSON(string(text), schema.DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			var report schema.Report
			var d model.JobDesc
			if parser(&report, doc, &d); len(report.Errors)+len(report.Warnings) > 0 {
				t.Errorf("--%s=%s: %s: %v %v", o.name, value, text, report.Errors, report.Warnings)
			}
		}
		if accepted == 0 {
			t.Errorf("--%s: no value is accepted", o.name)
		}
	}
}

// TestPage generates scripts and compares what schedctl and the status page make
// of them: both must make the same job, or refuse the same line because of the
// same option.
func TestPage(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs Node.js, to run the page's parser")
	}
	newYork, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 23, 15, 30, 0, 0, newYork)
	type offset struct {
		From    int64  `json:"from"`
		Seconds int    `json:"seconds"`
		Name    string `json:"name"`
	}
	var offsets []offset // as the gateway sends them
	for at := now.AddDate(-1, 0, 0); at.Before(now.AddDate(1, 0, 0)); {
		name, seconds := at.Zone()
		offsets = append(offsets, offset{at.Unix(), seconds, name})
		_, at = at.ZoneBounds()
	}
	zone, err := json.Marshal(offsets)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	scripts := []string{"#!/bin/sh\n#SBATCH --job-name=precious --partition=fake --walltime=5\n"}
	for range 6000 {
		scripts = append(scripts, randomScript(random))
	}
	input, err := json.Marshal(scripts)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, "--input-type=module", "-e", fmt.Sprintf(`
		import { readFileSync } from "node:fs";
		import { parseScript, setZone, variablesOf } from %q;
		const now = new Date(%d);
		process.env.TZ = "America/New_York";
		const answers = JSON.parse(readFileSync(0, "utf8")).map((text, i) => {
			if (i === 3000) { // the cluster's zone is not that of the browser
				process.env.TZ = "Asia/Kolkata";
				setZone(%s);
			}
			const { fields, problems, environment } = parseScript(text, { current_working_directory: "/home/ann" }, now);
			return { fields, problem: problems[0], environment: [...environment, ...variablesOf(fields)] };
		});
		process.stdout.write(JSON.stringify(answers));`, page+"testdata/sbatch.mjs", now.UnixMilli(), zone))
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(input)), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answers []struct {
		Fields      map[string]any
		Environment []string
		Problem     *struct {
			Line         int
			Reason, Word string
		}
	}
	if err := json.Unmarshal(output, &answers); err != nil {
		t.Fatal(err)
	}
	accepted, failures := 0, 0
	for i, text := range scripts {
		got := answers[i]
		job, err := Parse(Source{Name: "job", Text: []byte(text), Directory: "/home/ann", Now: now})
		var problem string
		switch {
		case err != nil && got.Problem == nil:
			problem = "only schedctl refuses it"
		case err == nil && got.Problem != nil:
			problem = fmt.Sprintf("only the page refuses it: %+v", *got.Problem)
		case err != nil:
			line := regexp.MustCompile(`line (\d+): `).FindStringSubmatch(err.Error())
			said, word := strings.ReplaceAll(err.Error(), `\`, ""), strings.ReplaceAll(strings.Trim(strconv.Quote(got.Problem.Word), `"`), `\`, "")
			if line == nil || line[1] != fmt.Sprint(got.Problem.Line) || got.Problem.Reason != "quote" && !strings.Contains(said, word) && got.Problem.Reason != "exclusive" {
				problem = fmt.Sprintf("the page refuses it for another reason: %+v", *got.Problem)
			}
		default:
			accepted++
			AddVariables(job)
			problem = compare(t, job, got.Fields, got.Environment)
		}
		if problem != "" {
			if failures++; failures > 5 {
				t.Fatal("and more")
			}
			t.Errorf("%q:\nschedctl: %v\n%s", text, err, problem)
		}
	}
	if accepted < len(scripts)/10 || accepted > len(scripts)*9/10 {
		t.Errorf("%d of %d scripts are accepted; the generator is of no use", accepted, len(scripts))
	}
}

// compare returns the difference between schedctl's job and the page's.
func compare(t *testing.T, job Job, fields map[string]any, environment []string) string {
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	variables := want["environment"].([]any)
	for _, name := range []string{"script", "environment"} {
		delete(want, name)
	}
	if want["name"] == "job" { // the default
		delete(want, "name")
	}
	if want["current_working_directory"] == "/home/ann" {
		delete(want, "current_working_directory")
	}
	values := map[string]string{"PATH": strings.TrimPrefix(path, "PATH=")}
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		values[name] = value
	}
	var merged []any
	for _, name := range sortedKeys(values) {
		merged = append(merged, name+"="+values[name])
	}
	slices.SortFunc(merged, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	return cmp.Diff(want, fields) + cmp.Diff(variables, merged)
}

// Values of options for generated scripts. Some of them are valid for each
// syntax.
var someValues = strings.Fields(`a b,c 1 2 0 -1 +3 007 4-2 2-4 1,2,4 1-9:2 1k 2m-3 99999999999 2147483647 2147483646 70000 4G 5x 1.5G 500mb 10T 3K 1025k 10B 4096T
	5 1:30 2:00:01 1-2 1-2:30 1-2:30:15 1:2:3:4 infinite UNLIMITED soon 0:30 now now+1 now+2hours now+3s now+4fortnights 16:00 9:05pm 13:00pm 25:00 noon tomorrow todayT8:00
	2027-01-02 2027-2-30 2027-01-02T03:04:05 11/30 2/29 12/31/27 11/30-fika n[1-3,7],m n[1 n]1[ , gpu:2 gpu:a100:2,shard:1 gres/gpu:1 none NONE all ALL A=1 ALL,B=2,C=x=y NIL A,,B =x SCHED_JWT=x PATH=/x
	USR1 SIGUSR2@90 B:10@5 RB:TERM R:65 X:USR1 B:@5 BUS USR1@70000 exclusive user mcs topo OverSubscribe append T truncated END,FAIL,END BEGIN,NONE,END TIME_LIMIT_80 TIME_LIMIT_70 invalid_depend
	energy,task lustre yes no YES off set expedite TOP compute_bound memory_bound multithread nomultithread,x disable-binding enforce-binding,disable-binding verbose,local map_mem:0,1 quiet,mask_mem:0x1,0x2
	map_mem: 10@5 10@ @5 70000@5 2@1:00 2@never 2:4:1 *:2 1:2:3:4 x:1 low-high:OnDemand it's "a'b" a\b a#b é — constructor toString`)

func randomScript(random *rand.Rand) string {
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	var b strings.Builder
	b.WriteString("#!/bin/sh\n")
	for range 1 + random.IntN(4) {
		b.WriteString(pick("#SBATCH ", "#SBATCH ", "#SBATCH ", "#SBATCH\t", "#SBATCH", "#SLURM ", "##SBATCH ", "# SBATCH ", "#sbatch "))
		for range 1 + random.IntN(3) {
			b.WriteString(randomOption(random, pick) + pick(" ", " ", "\t", "  ", "\v"))
		}
		b.WriteString(pick("", "", "", "# -n 5", "#x", `\`, "; -n 1", ": x", "'a", "word", "--", "-", "hetjob", "\r", "-Hk", "-n3 -c2", "-kn4", "--=1", "--bogus", "-Z") + "\n")
		b.WriteString(pick("", "", "", "\n", "# comment\n", " \t\n", "#SBATCH\n", "#SBATCH hetjob\n", "#\n", "echo\n", " #SBATCH --bogus\n"))
	}
	return strings.ReplaceAll(b.String(), "\r\n", "\n") + "echo\n#SBATCH --bogus\n"
}

// randomOption returns an option in one of its forms.
func randomOption(random *rand.Rand, pick func(...string) string) string {
	o := options[random.IntN(len(options))]
	value := someValues[random.IntN(len(someValues))]
	for range 12 { // prefer valid values
		r := reader{job: Job{}}
		if o.syntax == "refused" || syntaxes[o.syntax](&r, &o, value) == nil {
			break
		}
		value = someValues[random.IntN(len(someValues))]
	}
	if o.syntax == "refused" && random.IntN(10) > 0 {
		o, value = *byName["job-name"], "x"
	}
	switch random.IntN(8) {
	case 0:
		value = "'" + value + "'"
	case 1:
		value = `"` + value + `"`
	case 2:
		value = pick(`a\ b`, `\#1`, `'a b'`, `"a#b"`, `""`, `a'b c'd`, `\"`, `'it\'s'`)
	}
	name := "--" + o.name
	if random.IntN(10) == 0 {
		name = name[:2+random.IntN(len(name)-1)]
	}
	if o.letter != "" && random.IntN(2) == 0 {
		return pick("-"+o.letter, "-"+o.letter+" ", "-"+o.letter+"=") + value
	}
	switch {
	case o.arg == none && random.IntN(10) > 0:
		return name
	case o.arg == optional && random.IntN(3) == 0:
		return name
	}
	return name + pick("=", "=", " ") + value
}

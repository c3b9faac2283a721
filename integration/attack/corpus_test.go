package attack

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

var update = flag.Bool("update", false, "write golden files")

// placements lists the places in a submission where a text of the corpus is
// inserted. Whatever the text is, the submission lacks required fields.
var placements = []struct{ name, before, behind string }{
	{"whole", "", ""},
	{"name", `{"job": {"name": `, `}}`},
	{"unknown", `{"job": {}, "colour": [`, `]}`},
}

// TestCorpus sends each text of the public JSON corpus in several places of a
// request's body. Invalid JSON must get 400, and valid JSON must never be
// called malformed. The JSON standard leaves open whether some texts are valid;
// the golden file contains the statuses of these texts.
func TestCorpus(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("JSON_CORPUS")
	if dir == "" {
		dir = harness.Root + "/../shared/vectors/json-parsing/test_parsing" // next to the repository
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	if len(files) == 0 {
		if os.Getenv("CI") == "true" {
			t.Fatalf("no JSON corpus in %s (set JSON_CORPUS)", dir)
		}
		t.Skipf("no JSON corpus in %s (set JSON_CORPUS)", dir)
	}
	c := newCorpus(t)
	goldenText := ""
	for _, file := range files {
		text, err := os.ReadFile(file)
		harness.Must(t, err)
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		var statuses []string
		for _, p := range placements {
			body := p.before + string(text) + p.behind
			a := c.submit("application/json", body)
			statuses = append(statuses, fmt.Sprint(a.Status))
			want := http.StatusUnprocessableEntity
			if name[0] == 'n' && !(p.before != "" && json.Valid([]byte(body))) {
				want = http.StatusBadRequest
			}
			if name[0] != 'i' && a.Status != want || a.Status != 400 && a.Status != 422 {
				t.Errorf("%s as %s: status %d, want %d: %s", name, p.name, a.Status, want, brief(a.Text))
			}
		}
		if name[0] == 'i' {
			goldenText += name + " " + strings.Join(statuses, " ") + "\n"
		}
	}
	golden(t, filepath.Join("testdata", "corpus.txt"), "# Texts that JSON neither permits nor forbids: the status of each text as the whole body, as a name, and in an unknown field.\n"+goldenText)
	c.checkUnharmed()
}

// golden compares got with the contents of the file at path. With -update it
// first writes got to the file.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		harness.Must(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	harness.Must(t, err)
	if string(want) != got {
		t.Errorf("%s is\n%s\ngot\n%s", path, want, got)
	}
}

// corpus is a site whose gateway receives the bodies under test.
type corpus struct {
	*harness.Lab
	client  *rawClient
	workers []int
}

func newCorpus(t *testing.T) *corpus {
	t.Helper()
	c := &corpus{Lab: harness.NewLab(t)}
	c.client = &rawClient{address: strings.TrimPrefix(c.URL, "http://")}
	t.Cleanup(c.client.close)
	c.workers = c.Workers()
	return c
}

// submit sends body as a job submission, with the token of this process's user,
// on a persistent connection.
func (c *corpus) submit(media, body string) harness.Answer {
	c.T.Helper()
	if body == "" {
		c.client.close()
	}
	a, err := c.client.send(request{"POST", "/sched/" + harness.Version + "/job/submit", ""},
		fmt.Sprintf("X-SCHED-USER-TOKEN: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", c.OwnToken, media, len(body), body))
	harness.Must(c.T, err)
	_ = json.Unmarshal([]byte(a.Text), &a.Body)
	return a
}

// checkUnharmed fails the test if the gateway replaced workers, or if a job was
// created.
func (c *corpus) checkUnharmed() {
	c.T.Helper()
	if after := c.Workers(); len(after) == 0 || fmt.Sprint(after) != fmt.Sprint(c.workers) {
		c.T.Errorf("the workers are %v, before %v", after, c.workers)
	}
	if n := len(c.Request("GET", "/sched/"+harness.Version+"/jobs", "").Want(c.T, 200).List("jobs")); n != 0 {
		c.T.Errorf("%d jobs", n)
	}
}

// TestCorpusContent checks that the gateway refuses JSON that makes no sense to
// a scheduler, and that the error names the place in the body. The gateway must
// not truncate a value, or choose one of several duplicates.
func TestCorpusContent(t *testing.T) {
	t.Parallel()
	c := newCorpus(t)
	brackets := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, tt := range []struct {
		name, body string
		status     int
		source     string
	}{
		{"a NUL in a name", `{"job":{"script":"#!/bin/sh\n","name":"a\u0000b"}}`, 422, "#/job/name"},
		{"a NUL in a script", `{"job":{"script":"#!/bin/sh\n\u0000"}}`, 422, "#/job/script"},
		{"a NUL in the environment", `{"job":{"script":"#!/bin/sh\n","environment":["A=b\u0000"]}}`, 422, "#/job/environment/0"},
		{"a NUL as it is", "{\"job\":{\"script\":\"#!/bin/sh\\n\",\"name\":\"a\x00b\"}}", 400, "#"},
		{"a NUL behind the document", "{\"job\":{}}\x00", 400, "#"},
		{"a name twice", `{"job":{"script":"#!/bin/sh\n","name":"a","name":"b"}}`, 422, "#/job/name"},
		{"a name twice, once escaped", `{"job":{"script":"#!/bin/sh\n","name":"a","n\u0061me":"b"}}`, 422, "#/job/name"},
		{"a job twice", `{"job":{"script":"#!/bin/sh\n"},"job":{"script":"#!/bin/sh\n"}}`, 422, "#/job"},
		{"a script twice, once null", `{"job":{"script":"#!/bin/sh\n","script":null}}`, 422, "#/job/script"},
		{"half a surrogate", `{"job":{"script":"#!/bin/sh\n","name":"\ud800"}}`, 400, "#"},
		{"two halves, the wrong way round", `{"job":{"script":"#!/bin/sh\n","name":"\udc00\ud800"}}`, 400, "#"},
		{"a surrogate in UTF-8", "{\"job\":{\"script\":\"#!/bin/sh\\n\",\"name\":\"\xed\xa0\x80\"}}", 400, "#"},
		{"an overlong NUL", "{\"job\":{\"script\":\"#!/bin/sh\\n\",\"name\":\"\xc0\x80\"}}", 400, "#"},
		{"a cut character", "{\"job\":{\"script\":\"#!/bin/sh\\n\",\"name\":\"\xe2\x82\"}}", 400, "#"},
		{"UTF-16", "\xff\xfe{\x00}\x00", 400, "#"},
		{"two byte order marks", "\ufeff\ufeff{}", 400, "#"},
		{"a number beyond 64 bits", `{"job":{"script":"#!/bin/sh\n","time_limit":18446744073709551616}}`, 422, "#/job/time_limit"},
		{"a number beyond 32 bits", `{"job":{"script":"#!/bin/sh\n","tasks":4294967297}}`, 422, "#/job/tasks"},
		{"a number below zero", `{"job":{"script":"#!/bin/sh\n","time_limit":-2}}`, 422, "#/job/time_limit"},
		{"a huge exponent", `{"job":{"script":"#!/bin/sh\n","time_limit":1e999999999}}`, 422, "#/job/time_limit"},
		{"a tiny one", `{"job":{"script":"#!/bin/sh\n","tasks":1e-999999999}}`, 422, "#/job/tasks"},
		{"nearly one", `{"job":{"script":"#!/bin/sh\n","tasks":0.99999999999999999999}}`, 422, "#/job/tasks"},
		{"half of one", `{"job":{"script":"#!/bin/sh\n","tasks":1.5}}`, 422, "#/job/tasks"},
		{"as deep as may be", `{"x":` + brackets(64) + `}`, 422, "#"},
		{"too deep", `{"x":` + brackets(65) + `}`, 400, "#"},
		{"two documents", `{"job":{}}{"job":{}}`, 400, "#"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.T = t
			a := c.submit("application/json", tt.body)
			if source := fmt.Sprint(a.Get("errors", 0, "source")); a.Status != tt.status || !strings.HasPrefix(source, tt.source) {
				t.Errorf("status %d at %s, want %d at %s: %s", a.Status, source, tt.status, tt.source, a.Text)
			}
		})
	}
	c.T = t
	c.checkUnharmed()
}

// trap is a body that costs some parsers more time or memory than its length
// suggests.
type trap struct {
	name, media string
	body        func() string
	status      string // permitted statuses
}

const (
	inJSON = "application/json"
	inYAML = "application/yaml"
	tenMiB = 10 << 20
)

// repeatTo returns a function that returns prefix, copies of text, and suffix.
// It makes as many copies as fit, so that the result has at most n bytes.
func repeatTo(n int, prefix, text, suffix string) func() string {
	return func() string { return prefix + strings.Repeat(text, (n-len(prefix)-len(suffix))/len(text)) + suffix }
}

// numbered returns a function that returns prefix, copies of text, and suffix.
// In each copy, the copy's number replaces %d. The function makes copies until
// prefix and copies together have at least n bytes.
func numbered(n int, prefix, text, suffix string) func() string {
	return func() string {
		var b strings.Builder
		b.WriteString(prefix)
		for i := 0; b.Len() < n; i++ {
			b.WriteString(strings.ReplaceAll(text, "%d", strconv.Itoa(i)))
		}
		return b.String() + suffix
	}
}

var traps = []trap{
	{"zeros without an end", inJSON, repeatTo(100<<10, "[", "0,", ""), "400"},
	{"many zeros without an end", inJSON, repeatTo(tenMiB, "[", "0,", ""), "413"},
	{"many zeros in a job", inJSON, repeatTo(900<<10, `{"job":{"environment":[`, "0,", "0]}}"), "422"},
	{"many names", inJSON, numbered(209<<10, "{", `"k%d":0,`, `"x":0}`), "422"},
	{"very many names", inJSON, numbered(tenMiB, "{", `"k%d":0,`, `"x":0}`), "413"},
	{"many names in a job", inJSON, numbered(4<<20, `{"job":{`, `"k%d":0,`, `"x":0}}`), "422"},
	{"one name many times", inJSON, repeatTo(2<<20, `{"job":{`, `"name":"a",`, `"x":0}}`), "422"},
	{"one unknown name many times", inJSON, repeatTo(2<<20, `{"job":{`, `"colour":"a",`, `"x":0}}`), "422"},
	{"brackets", inJSON, repeatTo(tenMiB, "", "[", ""), "413"},
	{"braces", inJSON, repeatTo(tenMiB, "", `{"":`, ""), "413"},
	{"many small lists", inJSON, repeatTo(1<<20, "[", "[],", "[]]"), "422"},
	{"a long text", inJSON, repeatTo(tenMiB, `{"job":{"name":"`, "a", `"}}`), "422"},
	{"a long text of escapes", inJSON, repeatTo(tenMiB, `{"job":{"name":"`, `\u00e4`, `"}}`), "422"},
	{"a long name", inJSON, repeatTo(tenMiB, `{"job":{"`, `~/`, `":1}}`), "422"},
	{"blanks", inJSON, repeatTo(tenMiB, "", " ", "{}"), "422"},
	{"empty lines", inJSON, repeatTo(tenMiB, "", "\n", "{}"), "422"},
	{"a long number", inJSON, repeatTo(tenMiB, `{"job":{"time_limit":`, "9", "}}"), "422"},
	{"a long fraction", inJSON, repeatTo(tenMiB, `{"job":{"tasks":1.`, "0", "1}}"), "422"},
	{"a long exponent", inJSON, repeatTo(tenMiB, `{"job":{"tasks":1e`, "9", "}}"), "422"},
	{"a long environment", inJSON, numbered(4<<20, `{"job":{"environment":["A=b"`, `,"V%d=x"`, "]}}"), "422"},

	{"brackets of YAML", inYAML, repeatTo(tenMiB, "", "[", ""), "413"},
	{"some brackets of YAML", inYAML, repeatTo(100<<10, "", "[", ""), "400"},
	{"as many as it takes", inYAML, repeatTo(240_000, "", "[", ""), "400"},
	{"braces of YAML", inYAML, repeatTo(100<<10, "", "{", ""), "400"},
	{"deep brackets, then many values", inYAML, repeatTo(400<<10, strings.Repeat("[", 9000), "a,", ""), "400"},
	{"sixty brackets, then many values", inYAML, repeatTo(400<<10, strings.Repeat("[", 60), "a,", ""), "400"},
	{"dashes", inYAML, repeatTo(tenMiB, "", "- ", ""), "413"},
	{"some dashes", inYAML, repeatTo(200<<10, "", "- ", ""), "400"},
	{"question marks", inYAML, repeatTo(200<<10, "", "? ", ""), "400"},
	{"names of YAML", inYAML, numbered(1<<20, "", "k%d: 0\n", ""), "422"},
	{"laughs", inYAML, func() string { return laughs(10, 9) }, "413"},
	{"many aliases of one", inYAML, repeatTo(400<<10, "a: &a [x,x,x]\nb: [", "*a,", "x]\n"), "413"},
	{"an alias of itself", inYAML, func() string { return "job: &a\n  x: *a\n" }, "400"},
	{"an alias of nothing", inYAML, func() string { return "job: *a\n" }, "400"},
	{"merge keys", inYAML, repeatTo(64<<10, "a: &a {x: 1}\nb:\n", "  <<: *a\n", ""), "400"},
	{"a list of merge keys", inYAML, func() string { return "a: &a {x: 1}\njob:\n  <<: [*a, *a]\n" }, "400"},
	{"many anchors", inYAML, numbered(1<<20, "", "- &a%d x\n", ""), "422"},
	{"the same `&a` many times", inYAML, repeatTo(1<<20, "", "- &a x\n", ""), "422"},
	{"a long `&` name", inYAML, repeatTo(tenMiB, "job: &", "a", " x\n"), "422"},
	{"tags", inYAML, repeatTo(400<<10, "", "- !!str x\n", ""), "422"},
	{"tags of a language", inYAML, func() string { return "job: !!python/object/apply:os.system [id]\n" }, "400"},
	{"a tag for a file", inYAML, func() string { return "job: !include /etc/passwd\n" }, "400"},
	{"a long tag", inYAML, repeatTo(tenMiB, "job: !", "a", " x\n"), "400"},
	{"documents", inYAML, repeatTo(tenMiB, "", "---\n", ""), "400 413"},
	{"directives", inYAML, numbered(1<<20, "", "%TAG !a%d! tag:x,2000:\n", "--- x\n"), "413"},
	{"comments", inYAML, repeatTo(4<<20, "", "# a\n", "job: x\n"), "422"},
	{"comments behind values", inYAML, repeatTo(1<<20, "", "- a # b\n", ""), "422"},
	{"comments within", inYAML, repeatTo(2<<20, "a:\n", "  # b\n", "  c: 1\n"), "422"},
	{"a text of many lines", inYAML, repeatTo(2<<20, "job: a\n", "  a\n", ""), "422"},
	{"a text in quotes of many lines", inYAML, repeatTo(2<<20, "job: \"a\n", "  a\n", "\"\n"), "422"},
	{"a block", inYAML, repeatTo(4<<20, "job: |\n", "  a\n", ""), "422"},
	{"a block of empty lines", inYAML, repeatTo(4<<20, "job: >\n", "\n", "  a\n"), "422"},
	{"blanks of YAML", inYAML, repeatTo(tenMiB, "", " ", "x\n"), "422"},
	{"tabs of YAML", inYAML, repeatTo(1<<20, "job:", "\t", "x\n"), "400 422"},
	{"a long name of YAML", inYAML, repeatTo(1<<20, "", "a", ": 1\n"), "400"},
	{"a name in quotes that does not end", inYAML, repeatTo(1<<20, "\"", "a ", ""), "400"},
}

// laughs returns YAML with a list of strings, a list of aliases of that list, a
// list of aliases of the second list, and so on. Expanding all aliases would
// need memory that grows exponentially with depth.
func laughs(width, depth int) string {
	text := "a0: &a0 [x" + strings.Repeat(",x", width-1) + "]\n"
	for i := 1; i <= depth; i++ {
		text += fmt.Sprintf("a%d: &a%[1]d [*a%d%s]\n", i, i-1, strings.Repeat(fmt.Sprintf(",*a%d", i-1), width-1))
	}
	return text
}

// TestCorpusTraps checks that a body costs only as much time and memory as its
// length suggests.
func TestCorpusTraps(t *testing.T) {
	t.Parallel()
	c := newCorpus(t)
	for _, tt := range traps {
		t.Run(tt.name, func(t *testing.T) {
			c.T = t
			body, start := tt.body(), time.Now()
			a := c.submit(tt.media, body) // fails after a minute
			t.Logf("%d bytes: %d in %v: %s", len(body), a.Status, time.Since(start).Round(time.Millisecond), brief(a.Text))
			if !strings.Contains(tt.status, fmt.Sprint(a.Status)) {
				t.Errorf("status %d, want %s: %s", a.Status, tt.status, brief(a.Text))
			}
			if len(a.Text) > 64<<10 {
				t.Errorf("an answer of %d bytes", len(a.Text))
			}
		})
	}
	c.T = t
	c.checkUnharmed()
	for _, pid := range c.Workers() {
		if peak := harness.StatusOf(t, pid)["VmHWM"]; kilobytes(t, peak) > 1<<20 {
			t.Errorf("worker %d took %s", pid, peak)
		} else {
			t.Logf("worker %d took %s", pid, peak)
		}
	}
}

// kilobytes reads "12 kB".
func kilobytes(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")))
	harness.Must(t, err)
	return n
}

package handlers

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// exceptedRecords lists the fields that differ from the reference, each with
// the reason.
var exceptedRecords = []struct {
	frames, path string // regular expressions
	reason       string
	fields       *regexp.Regexp
}{
	{"trixie|forky", "/v0.0.4[12]/associations$", "theirs is always 0", regexp.MustCompile(`^\.associations\[\]\.id$`)},
	{"forky", "/jobs$", "26.05 leaves out what the job's own record says", regexp.MustCompile(`^\.jobs\[\]\.association\.(account|user)$`)},
	{"trixie-dbd-p39", "/associations$", "protocols before 40 do not carry it", regexp.MustCompile(`^\.associations\[\]\.lineage$`)},
	{"trixie-dbd-p(39|40|41)", "/jobs$", "protocols before 42 do not carry them", regexp.MustCompile(`^\.jobs\[\]\.std(in|out|err)(_expanded)?$`)},
	{"forky-dbd-p42", "/v0.0.43/jobs$", "protocols before 43 do not carry it", regexp.MustCompile(`^\.jobs\[\]\.steps\[\]\.time\.limit$`)},
}

// TestReferenceRecords is like TestReference, for accounting daemons.
func TestReferenceRecords(t *testing.T) {
	needed := make([]bool, len(exceptedRecords))
	for _, tt := range []struct{ suite, frames string }{
		{"trixie", "trixie-dbd-p39"}, {"trixie", "trixie-dbd-p40"}, {"trixie", "trixie-dbd-p41"}, {"trixie", "trixie-dbd-p42"},
		{"forky", "forky-dbd-p42"}, {"forky", "forky-dbd-p43"}, {"forky", "forky-dbd-p44"}, {"forky", "forky-dbd-p45"},
	} {
		f := &fake{recorded: capturedRecords(t, "../rpc/message/testdata/frames/"+tt.frames+".json.gz")}
		var answers map[string]json.RawMessage
		readGzip(t, "testdata/reference/"+tt.suite+"-dbd.json.gz", &answers)
		if len(answers) < 10 {
			t.Fatalf("%d answers in the capture", len(answers))
		}
		for path, answer := range answers {
			t.Run(tt.frames+path, func(t *testing.T) {
				var want, got map[string]any
				unmarshal(t, answer, &want)
				w := serve(t, config(f), request(http.MethodGet, path, ""))
				if w.Code != http.StatusOK {
					t.Fatalf("status %d: %s", w.Code, w.Body)
				}
				unmarshal(t, w.Body.Bytes(), &got)
				delete(want, "meta")
				delete(got, "meta")
				for i, e := range exceptedRecords {
					if regexp.MustCompile(e.frames).MatchString(tt.frames) && regexp.MustCompile(e.path).MatchString(path) {
						needed[i] = equalize(e.fields, "", want, got) || needed[i]
					}
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("theirs (-), ours (+):\n%s", d)
				}
			})
		}
	}
	for i, e := range exceptedRecords {
		if !needed[i] {
			t.Errorf("%s %s %s is excepted and need not be", e.frames, e.path, e.fields)
		}
	}
}

// equalize copies the fields whose paths match the regular expression from got
// to want. It reports whether any of these fields differed.
func equalize(fields *regexp.Regexp, path string, want, got any) (differed bool) {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for k := range w {
			if _, both := g[k]; both && fields.MatchString(path+"."+k) {
				differed = !cmp.Equal(w[k], g[k]) || differed
				w[k] = g[k]
			} else {
				differed = equalize(fields, path+"."+k, w[k], g[k]) || differed
			}
		}
	case []any:
		g, _ := got.([]any)
		for i := range min(len(w), len(g)) {
			differed = equalize(fields, path+"[]", w[i], g[i]) || differed
		}
	}
	return differed
}

// capturedRecords returns the records in captured answers of an accounting
// daemon.
func capturedRecords(t *testing.T, file string) recorded {
	var captures map[string]struct {
		Frame string `json:"response_frame"`
	}
	readGzip(t, file, &captures)
	v, err := strconv.Atoi(file[strings.LastIndex(file, "-p")+2 : strings.LastIndex(file, ".json")])
	if err != nil {
		t.Fatal(err)
	}
	decode := func(name string, want message.Type, body message.Body) {
		raw, err := hex.DecodeString(captures[name].Frame)
		if err != nil || len(raw) < 6 {
			t.Fatalf("%s: %v", name, err)
		}
		if err := message.DecodeBody(codec.Version(v), want, raw[6:], body); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	var jobs message.AccountingJobs
	var associations message.Associations
	var accounts message.Accounts
	var users message.Users
	var qos message.QOSList
	var clusters message.Clusters
	var tres message.TRESList
	decode("jobs", message.AccountingGotJobs, &jobs)
	decode("associations", message.AccountingGotAssocs, &associations)
	decode("accounts", message.AccountingGotAccounts, &accounts)
	decode("users", message.AccountingGotUsers, &users)
	decode("qos", message.AccountingGotQOS, &qos)
	decode("clusters", message.AccountingGotClusters, &clusters)
	decode("tres", message.AccountingGotTRES, &tres)
	return recorded{lists: lists{jobs: jobs.Records.List, associations: associations.Records.List, accounts: accounts.Records.List,
		users: users.Records.List, qos: qos.Records.List, clusters: clusters.Records.List, tres: tres.Records.List}}
}

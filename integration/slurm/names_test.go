package slurm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/model"
)

// A nameUse is a place of a request that has a name. In path and body, SPELLED
// stands for a spelling of the name word, VERSION for the version of the API, and
// OWN for a part of names that only one request of one gateway uses.
type nameUse struct {
	name, method, path, body string
	word                     string // "": OWN
	records                  string // letters of nameRecords
	make                     string // body of a request that changes these records
	costs                    bool   // each request takes about a second, so fewer spellings run
	since                    string // first release that has the operation
	setup, show, remove      string // commands of root that make an object of the controller, show it, and remove it
}

// nameRecords are the records that exist before a request, by the letters in
// nameUse.records.
var nameRecords = map[rune]string{
	'a': `{"accounts": [{"name": "OWN", "description": "d", "organization": "o"}], "associations": [{"account": "OWN", "cluster": "lab", "user": ""}]}`,
	'o': `{"accounts": [{"name": "oOWN", "description": "d", "organization": "o"}], "associations": [{"account": "oOWN", "cluster": "lab", "user": ""}]}`,
	'u': `{"users": [{"name": "OWN"}], "associations": [{"account": "OWN", "cluster": "lab", "user": "OWN"}]}`,
	'O': `{"associations": [{"account": "oOWN", "cluster": "lab", "user": "OWN"}]}`,
	'p': `{"associations": [{"account": "OWN", "cluster": "lab", "user": "OWN", "partition": "debug"}]}`,
	'q': `{"qos": [{"name": "OWN", "description": "d"}]}`,
	'r': `{"qos": [{"name": "oOWN", "description": "d"}]}`,
	'w': `{"wckeys": [{"name": "OWN", "cluster": "lab", "user": "OWN"}]}`,
	'x': `{"wckeys": [{"name": "oOWN", "cluster": "lab", "user": "OWN"}]}`,
	'c': `{"clusters": [{"name": "cOWN"}]}`,
}

const (
	newAccount       = `"accounts": [{"name": "SPELLED", "description": "changed", "organization": "o"}]`
	onAccount        = `{"associations": [{"account": "OWN", "cluster": "lab", "user": "", `
	makesReservation = "scontrol create reservationname=rOWN starttime=now+3days duration=60 nodes=n02 users=alice flags=overlap"
	heldJob          = `{"script": "#!/bin/sh\n", "job": {"name": "OWN", "hold": true, "current_working_directory": "/tmp", "standard_output": "/dev/null", "environment": ["A=1"], `
	usersAssocs      = `{"user": {}, "association_condition": {"clusters": ["lab"], `
)

var nameUses = []nameUse{
	{name: "account", method: "GET", records: "a", path: "/slurmdb/account/SPELLED"},
	{name: "account, changed", method: "POST", records: "au", path: "/slurmdb/accounts/", body: `{` + newAccount + `}`},
	{name: "coordinator", method: "POST", records: "aou", path: "/slurmdb/accounts/", body: `{"accounts": [{"name": "oOWN", "description": "d", "organization": "o", "coordinators": [{"name": "SPELLED"}]}]}`},
	{name: "account with association", method: "POST", records: "au", path: "/slurmdb/accounts_association/", body: `{"account": {"description": "changed", "organization": "o"}, "association_condition": {"accounts": ["SPELLED"], "clusters": ["lab"]}}`},
	{name: "parent of a new account", method: "POST", records: "a", path: "/slurmdb/accounts_association/", body: `{"account": {"description": "d", "organization": "o"}, "association_condition": {"accounts": ["nOWN"], "clusters": ["lab"], "association": {"parent": "SPELLED"}}}`},
	{name: "cluster of a new account", method: "POST", path: "/slurmdb/accounts_association/", word: "lab", body: `{"account": {"description": "d", "organization": "o"}, "association_condition": {"accounts": ["nOWN"], "clusters": ["SPELLED"]}}`},
	{name: "account", method: "DELETE", records: "au", path: "/slurmdb/account/SPELLED"},
	{name: "account without users", method: "DELETE", records: "a", path: "/slurmdb/account/SPELLED"},

	{name: "user", method: "GET", records: "au", path: "/slurmdb/user/SPELLED"},
	{name: "user, changed", method: "POST", records: "auw", path: "/slurmdb/users/", body: `{"users": [{"name": "SPELLED", "administrator_level": ["Operator"]}]}`},
	{name: "default account", method: "POST", records: "aouO", path: "/slurmdb/users/", word: "oOWN", body: `{"users": [{"name": "OWN", "default": {"account": "SPELLED"}}]}`},
	{name: "default wckey", method: "POST", records: "auwx", path: "/slurmdb/users/", word: "oOWN", body: `{"users": [{"name": "OWN", "default": {"wckey": "SPELLED"}}]}`},
	{name: "old name", method: "POST", records: "au", path: "/slurmdb/users/", body: `{"users": [{"name": "nOWN", "old_name": "SPELLED"}]}`},
	{name: "user with association", method: "POST", records: "au", path: "/slurmdb/users_association/", body: usersAssocs + `"users": ["SPELLED"], "accounts": ["physics"]}}`},
	{name: "account of a new user", method: "POST", records: "a", path: "/slurmdb/users_association/", body: usersAssocs + `"users": ["nOWN"], "accounts": ["SPELLED"]}}`},
	{name: "wckey of a new user", method: "POST", records: "auw", path: "/slurmdb/users_association/", body: usersAssocs + `"users": ["nOWN"], "accounts": ["OWN"], "wckeys": ["SPELLED"]}}`},
	{name: "partition of a new user", method: "POST", records: "a", path: "/slurmdb/users_association/", word: "debug", body: usersAssocs + `"users": ["nOWN"], "accounts": ["OWN"], "partitions": ["SPELLED"]}}`},
	{name: "partition of a user with one", method: "POST", records: "aup", path: "/slurmdb/users_association/", word: "debug", body: usersAssocs + `"users": ["OWN"], "accounts": ["OWN"], "partitions": ["SPELLED"]}}`},
	{name: "user", method: "DELETE", records: "auw", path: "/slurmdb/user/SPELLED"},

	{name: "qos", method: "GET", records: "q", path: "/slurmdb/qos/SPELLED"},
	{name: "qos, changed", method: "POST", records: "q", path: "/slurmdb/qos/", body: `{"qos": [{"name": "SPELLED", "description": "changed"}]}`},
	{name: "preempted qos", method: "POST", records: "qr", path: "/slurmdb/qos/", body: `{"qos": [{"name": "oOWN", "preempt": {"list": ["SPELLED"]}}]}`},
	{name: "qos", method: "DELETE", records: "q", path: "/slurmdb/qos/SPELLED"},
	{name: "qos of an association", method: "POST", records: "aq", path: "/slurmdb/associations/", body: onAccount + `"qos": ["SPELLED"]}]}`},
	{name: "added qos", method: "POST", records: "aq", path: "/slurmdb/associations/", body: onAccount + `"qos": ["+SPELLED"]}]}`},
	{name: "removed qos", method: "POST", records: "aq", path: "/slurmdb/associations/", body: onAccount + `"qos": ["-SPELLED"]}]}`, make: onAccount + `"qos": ["OWN", "normal"]}]}`},
	{name: "default qos", method: "POST", records: "aq", path: "/slurmdb/associations/", body: onAccount + `"default": {"qos": "SPELLED"}}]}`, make: onAccount + `"qos": ["OWN", "normal"]}]}`},

	{name: "wckeys by name", method: "GET", records: "auw", path: "/slurmdb/wckeys/?name=SPELLED"},
	{name: "wckeys by user", method: "GET", records: "auw", path: "/slurmdb/wckeys/?user=SPELLED"},
	{name: "wckeys by cluster", method: "GET", records: "auw", path: "/slurmdb/wckeys/?cluster=SPELLED&name=OWN", word: "lab"},
	{name: "wckey", method: "GET", records: "auw", path: "/slurmdb/wckey/SPELLED"},
	{name: "wckey", method: "POST", records: "auw", path: "/slurmdb/wckeys/", body: `{"wckeys": [{"name": "SPELLED", "cluster": "lab", "user": "OWN"}]}`},
	{name: "wckey of another user", method: "POST", records: "auw", path: "/slurmdb/wckeys/", body: `{"wckeys": [{"name": "SPELLED", "cluster": "lab", "user": "alice"}]}`},
	{name: "user of a wckey", method: "POST", records: "au", path: "/slurmdb/wckeys/", body: `{"wckeys": [{"name": "nOWN", "cluster": "lab", "user": "SPELLED"}]}`},
	{name: "cluster of a wckey", method: "POST", records: "au", path: "/slurmdb/wckeys/", word: "lab", body: `{"wckeys": [{"name": "nOWN", "cluster": "SPELLED", "user": "OWN"}]}`},
	{name: "wckey", method: "DELETE", records: "auw", path: "/slurmdb/wckey/SPELLED"},

	{name: "associations by account", method: "GET", records: "au", path: "/slurmdb/associations/?account=SPELLED"},
	{name: "associations by user", method: "GET", records: "au", path: "/slurmdb/associations/?user=SPELLED"},
	{name: "associations by cluster", method: "GET", records: "a", path: "/slurmdb/associations/?cluster=SPELLED&account=OWN", word: "lab"},
	{name: "associations by partition", method: "GET", records: "aup", path: "/slurmdb/associations/?partition=SPELLED&account=OWN", word: "debug"},
	{name: "association by account", method: "GET", records: "aup", path: "/slurmdb/association/?account=SPELLED&user=OWN&cluster=lab&partition=debug"},
	{name: "account of an association", method: "POST", records: "a", path: "/slurmdb/associations/", body: `{"associations": [{"account": "SPELLED", "cluster": "lab", "user": "", "shares_raw": 7}]}`},
	{name: "account of a user's association", method: "POST", records: "au", path: "/slurmdb/associations/", body: `{"associations": [{"account": "SPELLED", "cluster": "lab", "user": "OWN", "shares_raw": 7}]}`},
	{name: "user of an association", method: "POST", records: "au", path: "/slurmdb/associations/", body: `{"associations": [{"account": "OWN", "cluster": "lab", "user": "SPELLED", "shares_raw": 7}]}`},
	{name: "cluster of an association", method: "POST", records: "au", path: "/slurmdb/associations/", word: "lab", body: `{"associations": [{"account": "OWN", "cluster": "SPELLED", "user": "OWN", "shares_raw": 7}]}`},
	{name: "partition of an association", method: "POST", records: "aup", path: "/slurmdb/associations/", word: "debug", body: `{"associations": [{"account": "OWN", "cluster": "lab", "user": "OWN", "partition": "SPELLED", "shares_raw": 7}]}`},
	{name: "parent of an association", method: "POST", records: "ao", path: "/slurmdb/associations/", body: `{"associations": [{"account": "oOWN", "cluster": "lab", "user": "", "parent_account": "SPELLED"}]}`},
	{name: "association by account", method: "DELETE", records: "aup", path: "/slurmdb/association/?account=SPELLED&user=OWN&cluster=lab&partition=debug"},
	{name: "association by user", method: "DELETE", records: "aup", path: "/slurmdb/association/?account=OWN&user=SPELLED&cluster=lab&partition=debug"},
	{name: "association by cluster", method: "DELETE", records: "aup", path: "/slurmdb/association/?account=OWN&user=OWN&cluster=SPELLED&partition=debug", word: "lab"},
	{name: "association by partition", method: "DELETE", records: "aup", path: "/slurmdb/association/?account=OWN&user=OWN&cluster=lab&partition=SPELLED", word: "debug"},
	{name: "type of a resource", method: "POST", records: "a", path: "/slurmdb/associations/", word: "cpu", body: onAccount + `"max": {"tres": {"total": [{"type": "SPELLED", "count": 5}]}}}]}`},
	{name: "name of a resource", method: "POST", records: "a", path: "/slurmdb/associations/", word: "gpu", body: onAccount + `"max": {"tres": {"total": [{"type": "gres", "name": "SPELLED", "count": 5}]}}}]}`},

	{name: "cluster", method: "GET", path: "/slurmdb/cluster/SPELLED", word: "lab"},
	{name: "cluster, again", method: "POST", records: "c", path: "/slurmdb/clusters/", word: "cOWN", body: `{"clusters": [{"name": "SPELLED"}]}`, costs: true},
	{name: "cluster", method: "DELETE", records: "c", path: "/slurmdb/cluster/SPELLED", word: "cOWN", costs: true},
	{name: "jobs by account", method: "GET", path: "/slurmdb/jobs/?account=SPELLED", word: "physics"},
	{name: "jobs by user", method: "GET", path: "/slurmdb/jobs/?users=SPELLED", word: "alice"},
	{name: "jobs by cluster", method: "GET", path: "/slurmdb/jobs/?cluster=SPELLED", word: "lab"},
	{name: "jobs by partition", method: "GET", path: "/slurmdb/jobs/?partition=SPELLED", word: "debug"},
	{name: "jobs by qos", method: "GET", path: "/slurmdb/jobs/?qos=SPELLED", word: "quick"},
	{name: "jobs by wckey", method: "GET", path: "/slurmdb/jobs/?wckey=SPELLED", word: "Kiss"},
	{name: "jobs by name", method: "GET", path: "/slurmdb/jobs/?job_name=SPELLED", word: "Kiss"},
	{name: "jobs by node", method: "GET", path: "/slurmdb/jobs/?node=SPELLED", word: "node1"},
	{name: "jobs by constraint", method: "GET", path: "/slurmdb/jobs/?constraints=SPELLED", word: "fast"},

	{name: "node", method: "GET", path: "/slurm/node/SPELLED", word: "node1"},
	{name: "partition", method: "GET", path: "/slurm/partition/SPELLED", word: "debug"},
	{name: "reservation", method: "GET", path: "/slurm/reservation/SPELLED", word: "Kiss"},
	{name: "node", method: "POST", path: "/slurm/node/SPELLED", word: "NODE", body: `{"comment": "OWN"}`, show: "node NODE", remove: "scontrol update nodename=NODE comment="},
	{name: "partition of a job", method: "POST", path: "/slurm/job/submit", word: "debug", body: heldJob + `"partition": "SPELLED"}}`},
	{name: "account of a job", method: "POST", path: "/slurm/job/submit", word: "physics", body: heldJob + `"account": "SPELLED"}}`},
	{name: "qos of a job", method: "POST", path: "/slurm/job/submit", word: "quick", body: heldJob + `"qos": "SPELLED", "time_limit": 5}}`},
	{name: "reservation of a job", method: "POST", path: "/slurm/job/submit", word: "Kiss", body: heldJob + `"reservation": "SPELLED"}}`},
	{name: "wckey of a job", method: "POST", path: "/slurm/job/submit", word: "Kiss", body: heldJob + `"wckey": "SPELLED"}}`},
	{name: "licence of a job", method: "POST", path: "/slurm/job/submit", word: "matlab", body: heldJob + `"licenses": "SPELLED"}}`},
	{name: "feature of a job", method: "POST", path: "/slurm/job/submit", word: "fast", body: heldJob + `"constraints": "SPELLED"}}`},
	{name: "node of a job", method: "POST", path: "/slurm/job/submit", word: "node1", body: heldJob + `"required_nodes": ["SPELLED"]}}`},
	{name: "node not of a job", method: "POST", path: "/slurm/job/submit", word: "n01", body: heldJob + `"excluded_nodes": ["SPELLED"]}}`},
	{name: "resource of a job", method: "POST", path: "/slurm/job/submit", word: "gpu", body: heldJob + `"tres_per_node": "gres/SPELLED:1"}}`},
	{name: "reservation, changed", method: "POST", path: "/slurm/reservation", since: "26.05", word: "rOWN", setup: makesReservation, show: "reservation rOWN", remove: "scontrol delete reservationname=rOWN", body: `{"name": "SPELLED", "comment": "changed"}`, costs: true},
	{name: "reservation", method: "DELETE", path: "/slurm/reservation/SPELLED", since: "26.05", word: "rOWN", setup: makesReservation, show: "reservation rOWN", remove: "scontrol delete reservationname=rOWN", costs: true},
	{name: "partition", method: "DELETE", path: "/slurm/partition/SPELLED", since: "26.05", word: "pOWN", setup: "scontrol create partitionname=pOWN nodes=node1", show: "partition pOWN", remove: "scontrol delete partitionname=pOWN", costs: true},

	{name: "config", method: "POST", records: "au", path: "/slurmdb/config", body: `{` + newAccount + `, "associations": [{"account": "SPELLED", "cluster": "lab", "user": ""}, {"account": "SPELLED", "cluster": "lab", "user": "OWN", "shares_raw": 7}]}`},
}

// spellings maps what is done with a name to the function that does it.
var spellings = map[string]func(string) string{
	"the same":   func(s string) string { return s },
	"lower case": strings.ToLower,
	"upper case": strings.ToUpper,
	"mixed case": func(s string) string {
		return eachRune(s, func(i int, r rune) rune { return []rune(strings.ToUpper(string(r)))[0] * rune(1-i%2) })
	},
	"no accents":           strings.NewReplacer("ä", "a", "Ä", "A", "ß", "s").Replace,
	"combining accents":    strings.NewReplacer("ä", "a\u0308", "Ä", "A\u0308").Replace,
	"other accents":        strings.NewReplacer("ä", "á", "Ä", "á", "a", "ä").Replace,
	"a Kelvin sign":        strings.NewReplacer("k", "\u212a", "K", "\u212a", "b", "ḃ").Replace,
	"a long s":             strings.NewReplacer("s", "ſ", "S", "ſ").Replace,
	"a sharp s":            strings.NewReplacer("ss", "ß", "SS", "ß", "ẞ", "ß").Replace,
	"a dotted capital I":   strings.NewReplacer("i", "İ", "I", "İ").Replace,
	"a dotless i":          strings.NewReplacer("i", "ı", "I", "ı").Replace,
	"full width":           strings.NewReplacer("k", "ｋ", "l", "ｌ", "d", "ｄ", "c", "ｃ").Replace,
	"a leading blank":      func(s string) string { return " " + s },
	"a trailing blank":     func(s string) string { return s + " " },
	"a trailing tab":       func(s string) string { return s + "\t" },
	"double quotes":        func(s string) string { return `"` + s + `"` },
	"single quotes":        func(s string) string { return "'" + s + "'" },
	"a single quote":       func(s string) string { return s + "'" },
	"a backslash":          func(s string) string { return s[:2] + `\` + s[2:] },
	"a comma":              func(s string) string { return s + ",physics" },
	"a percent sign":       func(s string) string { return "%" + s[2:] },
	"an underscore":        func(s string) string { return "_" + s[1:] },
	"a plus sign":          func(s string) string { return "+" + s },
	"a minus sign":         func(s string) string { return "-" + s },
	"a letter more":        func(s string) string { return s + "x" },
	"longer than a column": func(s string) string { return s + strings.Repeat("x", 300) },
	"empty":                func(string) string { return "" },
	"a slash":              func(s string) string { return s + "/" },
	"an emoji":             func(s string) string { return s + "\U0001f600" },
	"invisible":            func(s string) string { return s + "\u200b" },
	"brackets":             func(s string) string { return s + "[1-2]" },
}

func eachRune(s string, f func(i int, r rune) rune) string {
	var b strings.Builder
	for i, r := range []rune(s) {
		if other := f(i, r); other != 0 {
			r = other
		}
		b.WriteRune(r)
	}
	return b.String()
}

// storedForms are the ways in which a name is stored. ID identifies the request
// and the gateway.
var storedForms = []string{"kissID", "kisäID", "KisÄID", "KiSID"}

// ownID matches what stands for ID. It is found in all spellings.
var ownID = regexp.MustCompile(`(?i)q([01])n(\d{4})e`)

// A nameTrial is one request through both gateways, each with records of its own.
type nameTrial struct {
	use      *nameUse
	spelling string
	stored   string // form of the names of the records
	number   int
	results  [2]nameResult
}

// A nameResult is what came of a request.
type nameResult struct {
	status  int
	numbers []string // of errors
	found   []string // records in the answer to a GET
	changes []string // of the database
	remarks string
}

func (tr *nameTrial) own(side int) string {
	id := fmt.Sprintf("q%dn%04de", side, tr.number)
	if strings.HasPrefix(tr.stored, "K") {
		id = strings.ToUpper(id)
	}
	return strings.Replace(tr.stored, "ID", id, 1)
}

// spelled returns the name in the request, as a Go string.
func (tr *nameTrial) spelled(side int) string {
	word := tr.fill(cmp.Or(tr.use.word, "OWN"), side)
	return spellings[tr.spelling](word)
}

// fill replaces the words of a text for one gateway.
func (tr *nameTrial) fill(text string, side int) string {
	return strings.NewReplacer("OWN", tr.own(side), "NODE", sideNodes[side]).Replace(text)
}

// request returns path and body for one gateway.
func (tr *nameTrial) request(side int, version string) (path, body string) {
	name, own := tr.spelled(side), tr.own(side)
	inBody, _ := json.Marshal(name)
	path = strings.NewReplacer("SPELLED", url.QueryEscape(name), "OWN", url.QueryEscape(own)).Replace(tr.use.path)
	if before, _, ok := strings.Cut(tr.use.path, "SPELLED"); ok && !strings.Contains(before, "?") {
		path = strings.Replace(tr.use.path, "SPELLED", url.PathEscape(name), 1)
	}
	path = regexp.MustCompile(`^/(slurm|slurmdb)/`).ReplaceAllString(path, "/${1}/"+version+"/")
	return path, strings.NewReplacer("SPELLED", string(inBody[1:len(inBody)-1]), "OWN", own).Replace(tr.use.body)
}

// hidden returns a text without what differs between the gateways.
func (tr *nameTrial) hidden(text string) string {
	return ownID.ReplaceAllStringFunc(text, func(id string) string {
		if m := ownID.FindStringSubmatch(id); m[2] != fmt.Sprintf("%04d", tr.number) {
			return "ANOTHER" + id
		}
		if id == strings.ToLower(id) {
			return "id"
		} else if id == strings.ToUpper(id) {
			return "ID"
		}
		return "Id"
	})
}

// foundIn returns the names of the records of an answer.
func foundIn(body []byte) (list []string) {
	var answer map[string]json.RawMessage
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	for key, value := range answer {
		var records []map[string]any
		if key == "errors" || key == "warnings" || key == "meta" || json.Unmarshal(value, &records) != nil {
			continue
		}
		for _, r := range records {
			words := []string{key}
			if id, ok := r["job_id"]; ok {
				words = append(words, fmt.Sprint(id))
			}
			for _, field := range []string{"name", "cluster", "account", "user", "partition"} {
				if text, ok := r[field].(string); ok && text != "" {
					words = append(words, field+"="+text)
				}
			}
			list = append(list, strings.Join(words, " "))
		}
	}
	slices.Sort(list)
	return list
}

func errorNumbers(body []byte) (list []string) {
	var answer struct {
		Errors []struct {
			Number int `json:"error_number"`
		}
	}
	_ = json.Unmarshal(body, &answer) // no answer has no numbers
	for _, e := range answer.Errors {
		if e.Number != 0 {
			list = append(list, strconv.Itoa(e.Number))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// TestNames requests each operation that takes the name of a record in
// accounting, in many spellings of the name, through both gateways. It compares
// the answers and what they have changed in slurmdbd's tables. Our gateway must
// store no second spelling and change no other record. The test runs a sample;
// SLURM_NAMES=1 runs all spellings, and SLURM_NAMES_SEED selects another sample.
func TestNames(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("the gateway of 22.05 serves v0.0.36 to v0.0.38, none of which is served here")
	}
	part := 0.03
	if text := os.Getenv("SLURM_NAMES"); text != "" {
		var err error
		part, err = strconv.ParseFloat(text, 64)
		must(t, err)
	}
	seed, _ := strconv.ParseUint(cmp.Or(os.Getenv("SLURM_NAMES_SEED"), "1"), 10, 64)
	chance := rand.New(rand.NewPCG(seed, 0))
	c := &changeForms{t: t, m: m, report: newChangeReport(), patient: false}
	c.report.top = t
	c.startGateways()
	var trials []*nameTrial
	for i := range nameUses {
		use := &nameUses[i]
		for _, spelling := range slices.Sorted(maps.Keys(spellings)) {
			if use.since > m.release {
				continue
			}
			share, forms := part, storedForms
			if use.records == "c" { // a cluster's name has only ASCII letters
				forms = []string{"kissID", "KiSID"}
			}
			if use.costs {
				share /= 4
			}
			if chance.Float64() < share {
				trials = append(trials, &nameTrial{use: use, spelling: spelling, stored: forms[chance.IntN(len(forms))], number: len(trials)})
			}
		}
	}
	start := time.Now()
	c.makeNameRecords(trials)
	t.Logf("records made in %v", time.Since(start))
	c.makeNamedJob()
	db := m.openDatabase(t)
	before := db.tables()
	for _, tr := range trials {
		for side := range 2 {
			before = c.tryName(tr, side, db, before)
		}
	}
	differences, used := map[string][]string{}, map[int]bool{}
	for _, tr := range trials {
		for _, d := range tr.differences() {
			if i := slices.IndexFunc(nameDifferences, func(known nameDifference) bool { return known.covers(tr, d) }); i >= 0 {
				used[i] = true
				continue
			}
			path, body := tr.request(0, newest[m.release])
			key := tr.use.method + " " + tr.use.name + ": " + d
			differences[key] = append(differences[key], fmt.Sprintf("%s (%s)\n    %s %s\n    theirs %v\n    ours   %v", tr.spelling, tr.stored, path, body, tr.results[0], tr.results[1]))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(differences)) {
		t.Errorf("%s\n  %s", key, strings.Join(differences[key], "\n  "))
	}
	t.Logf("%d requests through each gateway", len(trials))
	for i, known := range nameDifferences {
		if part == 1 && !used[i] && strings.Contains(known.releases, m.release) {
			t.Errorf("nothing differs as in row %d: %v", i, known)
		}
	}
}

// makeNameRecords makes the records of all trials.
func (c *changeForms) makeNameRecords(trials []*nameTrial) {
	c.t.Helper()
	version := newest[c.m.release]
	for chunk := range slices.Chunk(trials, 50) {
		bodies := []map[string][]any{{}, {}}
		for _, tr := range chunk {
			for side := range 2 {
				add := func(i int, text string) {
					var records map[string][]any
					must(c.t, json.Unmarshal([]byte(strings.ReplaceAll(text, "OWN", tr.own(side))), &records))
					for list, some := range records {
						bodies[i][list] = append(bodies[i][list], some...)
					}
				}
				for _, letter := range tr.use.records {
					add(0, nameRecords[letter])
				}
				if tr.use.make != "" {
					add(1, tr.use.make)
				}
			}
		}
		for _, body := range bodies {
			if len(body) > 0 {
				text, err := json.Marshal(body)
				must(c.t, err)
				c.mustPost("/slurmdb/"+version+"/config", string(text))
			}
		}
	}
}

// makeNamedJob makes a job and a reservation that requests find by name.
func (c *changeForms) makeNamedJob() {
	c.t.Helper()
	c.m.run(c.t, "root", strings.Fields("sacctmgr -i -Q add user alice wckey=Kiss")...)
	c.m.run(c.t, "root", strings.Fields("scontrol create reservationname=Kiss starttime=now+3days duration=60 nodes=node1 users=alice,root")...)
	id := c.m.run(c.t, "alice", append(sbatchCommand, "--wckey=Kiss", "-J", "Kiss", "-q", "quick", "-C", "fast", "-t", "5")...)
	eventually(c.t, "the job is recorded", func() bool {
		return strings.Contains(c.m.run(c.t, "root", "sacct", "-nXP", "-j", id, "-o", "state"), "RUNNING")
	})
}

// shownNamed returns what scontrol shows of the object that a request changes, without
// times.
func (c *changeForms) shownNamed(tr *nameTrial, side int, body []byte) (list []string) {
	c.t.Helper()
	show := tr.fill(tr.use.show, side)
	var answer struct {
		ID int `json:"job_id"`
	}
	if json.Unmarshal(body, &answer) == nil && answer.ID != 0 {
		show = fmt.Sprint("job ", answer.ID)
		defer c.m.try("root", "scancel", fmt.Sprint(answer.ID))
	}
	if show == "" {
		return nil
	}
	out, err := c.m.try("root", append([]string{"scontrol", "-o", "show"}, strings.Fields(show)...)...)
	if err != nil {
		return []string{"there is none"}
	}
	for _, field := range strings.Fields(out) {
		if regexp.MustCompile(`^(Partition|Account|QOS|Reservation|ReservationName|PartitionName|Licenses|Features|WCKey|ReqNodeList|ExcNodeList|TresPerNode|TRES_PER_NODE|Comment)=`).MatchString(field) {
			list = append(list, strings.ReplaceAll(tr.hidden(field), sideNodes[side], "NODE"))
		}
	}
	return list
}

// tryName sends a request through one gateway. It returns the rows of the
// database afterwards.
func (c *changeForms) tryName(tr *nameTrial, side int, db *database, before []string) []string {
	c.t.Helper()
	path, body := tr.request(side, newest[c.m.release])
	r := &tr.results[side]
	if side == 0 && tr.isDestructive() {
		r.status = -2
		return before
	}
	if tr.use.setup != "" {
		c.m.run(c.t, "root", strings.Fields(tr.fill(tr.use.setup, side))...)
	}
	token := c.token
	if tr.use.path == "/slurm/job/submit" {
		token = c.m.token
	}
	a, err := sendRequest(c.clients[side], tr.use.method, path, body, "X-SLURM-USER-TOKEN: "+token)
	switch {
	case c.restartEnded():
		r.status, r.remarks = endsDaemon, "a daemon of Slurm has ended"
	case err != nil:
		r.remarks = err.Error()
		c.revive(side)
	default:
		r.status, r.numbers, r.remarks = a.status, errorNumbers(a.body), tr.hidden(remarks(a.body))
		if tr.use.method == "GET" {
			for _, record := range foundIn(a.body) {
				r.found = append(r.found, tr.hidden(record))
			}
		}
	}
	r.changes = c.shownNamed(tr, side, a.body)
	if tr.use.remove != "" {
		c.m.try("root", strings.Fields(tr.fill(tr.use.remove, side))...)
	}
	after := db.tables()
	if strings.HasPrefix(tr.use.path, "/slurmdb/") { // slurmctld adds the keys of jobs
		for _, row := range changedRows(before, after) {
			if side == 0 && !strings.Contains(tr.use.body, `"qos"`) { // theirs then adds the default one
				row = strings.Replace(row, "qos ,normal,  ", "qos   ", 1)
			}
			r.changes = append(r.changes, tr.hidden(row))
		}
		r.changes = slices.DeleteFunc(r.changes, func(row string) bool { return row[0] == '+' && slices.Contains(r.changes, "-"+row[1:]) })
	}
	slices.Sort(r.changes)
	return after
}

// isDestructive reports whether slurmrestd could remove all records.
func (tr *nameTrial) isDestructive() bool {
	return tr.use.method == "DELETE" && tr.spelling == "empty"
}

// differences returns in what the results differ.
func (tr *nameTrial) differences() (list []string) {
	theirs, ours := tr.results[0], tr.results[1]
	for _, row := range ours.changes {
		if strings.HasPrefix(tr.use.path, "/slurmdb/") && (strings.Contains(row, "ANOTHER") || !strings.Contains(strings.ToLower(row), "id")) {
			list = append(list, "ours changes another record")
		}
	}
	list = append(list, tr.secondSpellings()...)
	if theirs.status == -2 {
		return list
	}
	x, y := class(theirs.status), class(ours.status)
	if x == "unchanged" {
		x = "accepted"
	}
	switch {
	case x != y:
		list = append(list, "theirs "+x+", ours "+y)
	case x == "refused" && !slices.Equal(theirs.numbers, ours.numbers):
		list = append(list, fmt.Sprintf("numbers %v and %v", theirs.numbers, ours.numbers))
	}
	if !slices.Equal(theirs.found, ours.found) {
		list = append(list, "found")
	}
	if !slices.Equal(theirs.changes, ours.changes) {
		list = append(list, "effect")
	}
	return list
}

// secondSpellings reports references that our gateway has stored in another
// spelling than the record to which they refer.
func (tr *nameTrial) secondSpellings() (list []string) {
	records := map[string]bool{}
	for _, name := range []string{"OWN", "oOWN", "nOWN", "cOWN"} {
		records[tr.hidden(strings.ReplaceAll(name, "OWN", tr.own(1)))] = true
	}
	for _, row := range tr.results[1].changes {
		if !strings.HasPrefix(row, "+ ") {
			continue
		}
		for _, cell := range strings.Split(row, "\t")[2:] {
			for name := range records {
				if cell != name && model.SameName(cell, name) && !records[cell] {
					list = append(list, "ours stores a second spelling")
				}
			}
		}
	}
	return slices.Compact(list)
}

package slurm

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/integration/slurm/variant"
)

// A target is an operation that changes something, with all that is needed to
// request it through both gateways and to compare the effects. In all its
// texts, NAME stands for the name of the object that a request changes, OWNJOB
// for the number of a job, and OWNNODE for a node. Each gateway changes an
// object of its own, and the two objects are made in the same way.
type target struct {
	method, path string                        // path without the version, as in package api
	request      string                        // path of the requests, if it is not path
	base         string                        // body that names the object; each case adds a field to it
	situations   []situation                   // what exists before a request
	shows        []show                        // what shows the object
	hints        []variant.Hint                // hints for the operation's fields, before commonHints
	query        string                        // query of the requests; each case adds a parameter to it
	byQuery      bool                          // whether the cases are parameters, although query is empty
	combinations func() [][]variant.Case       // cases for parameters, in addition to those from the table of parameters
	matches      func(*trial, []shown) []shown // the records that a combination must remove; nil if the test does not check them
	answerID     string                        // field of an answer that has the number of the new object; "" if the request names the object
	skip         *regexp.Regexp                // fields without cases
	perBatch     int                           // number of cases that are compared at the same time; 0: 40
	sample       int                           // number of cases in a sample; 0: sampleSize
}

// A situation is what exists before a request.
type situation struct {
	name string
	base string // instead of the target's base; "" for that
	make func(c *changeForms, names []string)
}

// changeForms compares the effects of requests that a variant.Case changes.
type changeForms struct {
	t       *testing.T
	m       *machine
	token   string
	clients [2]*http.Client
	rest    *daemon
	ours    *daemon
	version schema.Version
	made    int               // number of objects made so far
	ids     map[string]string // names of objects by their numbers
	numbers map[string]string // numbers of objects by their names
	patient bool              // after each failed request, wait for a daemon that may be about to end
	seed    uint64
	part    float64 // share of the cases to run
	fields  *regexp.Regexp
	rows    changeRows
	report  *changeReport
}

// Names of the objects of the two gateways. The z keeps one name from being the
// beginning of another.
var objectName = regexp.MustCompile(`[ab]\d{5}z`)

// sideNodes are the nodes for the reservations of the two gateways. Both are in
// the same partition.
var sideNodes = [2]string{"n03", "n04"}

func sideName(side, n int) string { return fmt.Sprintf("%c%05dz", 'a'+side, n) }

// trial is one case: the fields that it sets, and what came of it.
type trial struct {
	target    *target
	situation situation
	cases     []variant.Case
	combined  bool // the cases are all conditions of the request
	number    int  // number of its two objects
	statuses  [2]int
	requests  [2]string
	remarks   [2]string
	before    [2]map[string][]shown // objects by show, before the request
	effects   [2]map[string][]shown // objects by show, after it
	changed   [2][]string           // the fields that differ from before, each with the label of the show
}

func (tr *trial) name(side int) string { return sideName(side, tr.number) }

// sampleSize is the number of cases of an operation in a sample.
const sampleSize = 24

// TestChangesByForm sends every operation that changes something through both
// gateways, once for each form of each field, and compares the effects. By
// default it runs a sample. SLURM_CHANGES=all runs all cases, and
// SLURM_CHANGES=0.1 a tenth of them. SLURM_CHANGES_SEED selects the sample, and
// the default is another sample each time. SLURM_CHANGES_FIELDS is a regular
// expression for the fields.
func TestChangesByForm(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("the gateway of 22.05 serves v0.0.36 to v0.0.38, none of which is served here")
	}
	c := newChangeForms(t, m)
	declared := c.declaredChanges(t)
	all := slices.Concat(targets, deleteTargets)
	for i := range all {
		tg := &all[i]
		endpoints := endpointsOf(tg)
		t.Run(strings.ReplaceAll(tg.operation(), "/", "_"), func(t *testing.T) {
			served := map[schema.Version]*api.Endpoint{}
			for v := api.V40; v <= api.V45; v++ {
				for _, e := range endpoints {
					if e.In(v) && declared[tg.method+" "+strings.TrimSuffix(e.URL(schema.View{Version: v, Spelling: schema.Slurm}), "/")] {
						served[v] = e
					}
				}
			}
			list := slices.Sorted(maps.Keys(served))
			if c.part < 0 && len(list) > 0 { // the sample has one version
				list = []schema.Version{list[c.random(tg.operation()).IntN(len(list))]}
			}
			for _, v := range list {
				t.Run(v.String(), func(t *testing.T) { c.runVersion(t, tg, served[v], v) })
			}
		})
	}
	c.report.finish(t, c)
}

func newChangeForms(t *testing.T, m *machine) *changeForms {
	t.Helper()
	c := &changeForms{t: t, m: m, ids: map[string]string{}, numbers: map[string]string{}, seed: uint64(time.Now().UnixNano()), part: -1, report: newChangeReport(), fields: regexp.MustCompile(os.Getenv("SLURM_CHANGES_FIELDS"))}
	if text := os.Getenv("SLURM_CHANGES_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		must(t, err)
		c.seed = n
	}
	switch text := os.Getenv("SLURM_CHANGES"); text {
	case "":
	case "all":
		c.part = 1
	default:
		n, err := strconv.ParseFloat(text, 64)
		must(t, err)
		c.part = n
	}
	c.report.top = t
	t.Logf("SLURM_CHANGES_SEED=%d", c.seed)
	c.rows = readChangeRows(t, changeTable)
	c.useShortMemory()
	c.startGateways()
	return c
}

// random returns a generator for one operation, so that a sample of one
// operation does not depend on the others.
func (c *changeForms) random(words ...string) *rand.Rand {
	h := fnv.New64()
	fmt.Fprint(h, words)
	return rand.New(rand.NewPCG(c.seed, h.Sum64()))
}

func (tg *target) operation() string { return tg.method + " " + tg.path }

func endpointsOf(tg *target) (list []*api.Endpoint) {
	for _, e := range api.Endpoints {
		if e.Method == tg.method && "/"+e.Segment(schema.Slurm)+"/"+e.Path == tg.path {
			list = append(list, e)
		}
	}
	return list
}

// asQuery reports whether the cases are parameters.
func (tg *target) asQuery() bool { return tg.query != "" || tg.byQuery || tg.combinations != nil }

// hintsOf returns the hints of a target.
func (tg *target) hintsOf() []variant.Hint { return slices.Concat(tg.hints, commonHints) }

// runVersion runs the cases of an operation in one version.
func (c *changeForms) runVersion(t *testing.T, tg *target, e *api.Endpoint, v schema.Version) {
	c.t, c.version = t, v
	random := c.random(tg.operation(), v.String())
	table := e.Request
	named, err := url.ParseQuery(tg.query)
	must(t, err)
	if tg.asQuery() {
		table = e.Params
	}
	cases := variant.Cases(table.Shape(schema.View{Version: v, Spelling: schema.Slurm}), tg.hintsOf())
	cases = slices.DeleteFunc(cases, func(one variant.Case) bool {
		_, ok := query([]variant.Case{one})
		return tg.asQuery() && (!ok || e.InPath(one.Field) || named.Has(one.Field)) || tg.skip != nil && tg.skip.MatchString(one.Field) || !c.fields.MatchString(one.Field)
	})
	var list []*trial
	for _, s := range tg.situations {
		for _, single := range cases {
			list = append(list, &trial{target: tg, situation: s, cases: []variant.Case{single}})
		}
		for _, pair := range variant.Pairs(cases, random) {
			list = append(list, &trial{target: tg, situation: s, cases: pair[:]})
		}
		// The combinations take long, and mean the same in all versions.
		if tg.combinations != nil && (v.String() == newest[c.m.release] || c.part < 0) {
			for _, c := range tg.combinations() {
				list = append(list, &trial{target: tg, situation: s, cases: c, combined: true})
			}
		}
	}
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	switch {
	case c.part < 0:
		list = list[:min(len(list), cmp.Or(tg.sample, sampleSize))]
	case c.part < 1:
		list = list[:int(math.Ceil(c.part*float64(len(list))))]
	}
	per := cmp.Or(tg.perBatch, 40)
	start := time.Now()
	for _, s := range tg.situations {
		of := slices.DeleteFunc(slices.Clone(list), func(tr *trial) bool { return tr.situation.name != s.name })
		// Cases that name another object are compared one by one.
		var alone []*trial
		of = slices.DeleteFunc(of, func(tr *trial) bool {
			if !tg.mayNameOthers(tr) {
				return false
			}
			// No command can remove a record whose name has quotes, so these cases
			// need a new cluster. They run in one version only.
			if tr.cases[0].Form != "quotes" || v.String() == newest[c.m.release] {
				alone = append(alone, tr)
			}
			return true
		})
		for batch := range slices.Chunk(of, per) {
			c.runBatch(batch)
		}
		for _, tr := range alone {
			c.runAlone(tr)
		}
	}
	t.Logf("%d cases in %v", len(list), time.Since(start).Round(time.Second))
}

// mayNameOthers reports whether a trial changes the fields that name the
// object.
func (tg *target) mayNameOthers(tr *trial) bool {
	if tg.asQuery() {
		return false
	}
	base := tg.base
	if tr.situation.base != "" {
		base = tr.situation.base
	}
	naming, _ := variant.FieldsWith(base, "NAME")
	for _, c := range tr.cases {
		if slices.Contains(naming, c.Field) && !strings.Contains(c.Value, "NAME") || strings.HasSuffix(c.Field, "[].id") && strings.Count(c.Field, ".") == 1 {
			return true
		}
	}
	return false
}

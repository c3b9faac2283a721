package api

import (
	"strings"
	"testing"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// parsePartition parses a partition of a request.
func parsePartition(t *testing.T, body string) (*PartitionChange, *schema.Report) {
	t.Helper()
	doc, err := schema.ReadJSON(body, schema.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	var p PartitionChange
	var r schema.Report
	partitionChange.Parser(schema.View{Version: V45})(&r, doc, &p)
	return &p, &r
}

// TestExclusive checks the flags and MaxShare that the controller receives.
// Whatever a partition was before, it must not end up with both flags of
// exclusive allocation: slurmctld would then set all of its flags.
func TestExclusive(t *testing.T) {
	const (
		user    = partitionExclusiveUser | partitionNotExclusiveTopo
		topo    = partitionNotExclusiveUser | partitionExclusiveTopo
		neither = partitionNotExclusiveUser | partitionNotExclusiveTopo
	)
	none := model.Opt[uint16]{}
	for _, tt := range []struct {
		name, body   string
		before       model.Opt[uint16] // MaxShare
		wantFlags    uint32
		want         model.Opt[uint16]
		wantIgnoring bool
	}{
		{"absent", `{}`, model.Some[uint16](0), 0, none, false},
		{"NO", `{"partition": {"exclusive": "NO"}}`, model.Some[uint16](1), neither, none, false},
		{"NO keeps sharing", `{"partition": {"exclusive": "NO"}}`, model.Some(4 | shareForced), neither, none, false},
		{"NO after NODE", `{"partition": {"exclusive": "no"}}`, model.Some[uint16](0), neither, model.Some[uint16](1), false},
		{"NONE", `{"partition": {"exclusive": "NONE"}}`, model.Some[uint16](0), neither, model.Some[uint16](1), false},
		{"NODE", `{"partition": {"exclusive": "NODE"}}`, model.Some[uint16](4), neither, model.Some[uint16](0), false},
		{"USER", `{"partition": {"exclusive": "USER"}}`, model.Some[uint16](4), user, none, false},
		{"USER after NODE", `{"partition": {"exclusive": "USER"}}`, model.Some[uint16](0), user, model.Some[uint16](1), false},
		{"USER of a new partition", `{"partition": {"exclusive": "USER"}}`, none, user, none, false},
		{"TOPO", `{"partition": {"exclusive": "TOPO"}}`, model.Some[uint16](1), topo, model.Some[uint16](0), false},
		{"sharing", `{"partition": {"oversubscribe": "FORCE:3"}}`, model.Some[uint16](1), 0, model.Some(3 | shareForced), false},
		{"USER, sharing", `{"partition": {"oversubscribe": "YES", "exclusive": "USER"}}`, model.Some[uint16](0), user, model.Some[uint16](4), false},
		{"NODE as in an answer", `{"partition": {"exclusive": "NODE", "oversubscribe": "NO"}}`, model.Some[uint16](0), neither, model.Some[uint16](0), false},
		{"NODE, sharing", `{"partition": {"exclusive": "NODE", "oversubscribe": "YES:2"}}`, model.Some[uint16](1), neither, model.Some[uint16](0), true},
		{"sharing, TOPO", `{"partition": {"oversubscribe": "FORCE", "exclusive": "TOPO"}}`, model.Some[uint16](1), topo, model.Some[uint16](0), true},
		{"with flags", `{"flags": ["HIDDEN", "LLN_CLEAR"], "partition": {"exclusive": "TOPO"}}`, none, topo | 0x2002, model.Some[uint16](0), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, r := parsePartition(t, tt.body)
			u := p.Update(tt.before)
			if !r.OK() || u.Flags != tt.wantFlags || u.MaxShare != tt.want || p.OversubscribeIgnored() != tt.wantIgnoring {
				t.Errorf("flags %#x, MaxShare %v, ignoring %v, errors %v; want %#x, %v, %v",
					u.Flags, u.MaxShare, p.OversubscribeIgnored(), r.Errors, tt.wantFlags, tt.want, tt.wantIgnoring)
			}
		})
	}
}

// TestPartitionFlags checks each pair of flag words. A word adds or removes its
// flag, and leaves the others as they are. The two words of one flag contradict
// each other.
func TestPartitionFlags(t *testing.T) {
	words := partitionFlags.Shape(schema.View{Version: V45}).Items.Enum
	bits := map[string]uint32{
		"DEFAULT": 1, "HIDDEN": 2, "NO_ROOT": 4, "ROOT_ONLY": 8, "REQ_RESV": 0x10, "LLN": 0x20, "PDOI": 0x80,
		"DEFAULT_CLEAR": 0x100, "HIDDEN_CLEAR": 0x200, "NO_ROOT_CLEAR": 0x400, "ROOT_ONLY_CLEAR": 0x800,
		"REQ_RESV_CLEAR": 0x1000, "LLN_CLEAR": 0x2000, "PDOI_CLEAR": 0x8000,
	}
	if len(words) != len(bits) {
		t.Fatalf("words %q", words)
	}
	for _, a := range words {
		for _, b := range words {
			p, r := parsePartition(t, `{"flags": ["`+a+`", "`+b+`"]}`)
			if contradict := a != b && strings.TrimSuffix(a, "_CLEAR") == strings.TrimSuffix(b, "_CLEAR"); contradict != !r.OK() {
				t.Errorf("%s, %s: errors %v", a, b, r.Errors)
			} else if u := p.Update(model.Opt[uint16]{}); !contradict && u.Flags != bits[a]|bits[b] {
				t.Errorf("%s, %s: flags %#x", a, b, u.Flags)
			}
		}
	}
}

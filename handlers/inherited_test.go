package handlers

import (
	"cmp"
	"net/http"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"schedrestd/model"
)

// TestInherited changes the association of a user who inherits values of the
// account. Only values that differ from what answers show may be sent.
func TestInherited(t *testing.T) {
	number := model.Some[uint32]
	unset := model.BlankAssociation()
	with := func(set func(*model.Association)) *model.Association {
		a := unset
		set(&a)
		return &a
	}
	// The user has own values for cpu, submitted jobs and shares.
	own := model.Association{Account: "lab", Cluster: "demo", User: "carol", ID: 9, Shares: 3, MaxTRESPJ: "1=4", MaxSubmitJobs: number(7), GrpTRES: "4=2", IsDefault: model.Some[uint16](1)}
	shown := own
	shown.MaxTRESPJ, shown.MaxJobs, shown.Priority, shown.QOSIDs, shown.DefaultQOSID = "1=4,2=500", number(40), number(5), []string{"1", "2"}, 2
	account := model.Association{Account: "lab", Cluster: "demo", ID: 3, MaxTRESPJ: "2=500", MaxJobs: number(40), Priority: number(5), QOSIDs: []string{"1", "2"}, DefaultQOSID: 2}
	delta := own
	delta.QOSIDs = []string{"-2"}
	shownDelta := shown
	shownDelta.QOSIDs = []string{"1"}
	more, shownMore := own, shown
	more.QOSIDs, shownMore.QOSIDs = []string{"+3"}, []string{"1", "2", "3"}
	for _, tt := range []struct {
		name, fields string
		spelling     string             // slurmdb if empty
		old, shown   *model.Association // own and shown if nil
		want         *model.Association // nil: no change
		warned       bool               // whether the answer says that values stay inherited
	}{
		{name: "all that an answer shows", warned: true, fields: `"shares_raw": 3, "is_default": true, "priority": {"set": true, "number": 5}, "qos": ["fast", "normal"], "default": {"qos": "fast"}, "comment": "", "parent_account": "",
			"max": {"jobs": {"active": {"set": true, "number": 40}, "total": {"set": true, "number": 7}, "accruing": {"infinite": true}, "per": {"count": {"infinite": true}}}, "tres": {"total": [{"type": "node", "count": 2}], "per": {"job": [{"type": "cpu", "count": 4}, {"type": "mem", "count": 500}]}}}`},
		{name: "what the association has itself", fields: `"shares_raw": 3, "is_default": true, "qos": [], "default": {"qos": ""}, "max": {"jobs": {"total": {"set": true, "number": 7}, "active": {"infinite": true}}, "tres": {"per": {"job": [{"type": "cpu", "count": 4}], "node": []}}}`},
		{name: "another number", fields: `"max": {"jobs": {"active": {"set": true, "number": 41}, "total": {"set": true, "number": 7}}}`, want: with(func(a *model.Association) { a.MaxJobs = number(41) })},
		{name: "an own number that the account has too", fields: `"max": {"jobs": {"total": {"set": true, "number": 40}}}`, want: with(func(a *model.Association) { a.MaxSubmitJobs = number(40) })},
		{name: "no own number", fields: `"max": {"jobs": {"total": {"infinite": true}}}`, want: with(func(a *model.Association) { a.MaxSubmitJobs = model.Infinite[uint32]() })},
		{name: "another amount", warned: true, fields: `"max": {"tres": {"per": {"job": [{"type": "cpu", "count": 5}, {"type": "mem", "count": 500}]}}}`, want: with(func(a *model.Association) { a.MaxTRESPJ = "1=5" })},
		{name: "an amount instead of the inherited one", fields: `"max": {"tres": {"per": {"job": [{"type": "cpu", "count": 4}, {"type": "mem", "count": 501}]}}}`, want: with(func(a *model.Association) { a.MaxTRESPJ = "2=501" })},
		{name: "no own amounts", fields: `"max": {"tres": {"per": {"job": []}}}`, want: with(func(a *model.Association) { a.MaxTRESPJ = "1=18446744073709551615" })},
		{name: "no amount of a resource without one", fields: `"max": {"tres": {"per": {"job": [{"type": "cpu", "count": 4}, {"type": "mem", "count": -1}]}}}`},
		{name: "an amount without the own one", fields: `"max": {"tres": {"per": {"job": [{"type": "mem", "count": 501}]}}}`, want: with(func(a *model.Association) { a.MaxTRESPJ = "2=501,1=18446744073709551615" })},
		{name: "an amount without the own one, Sched", spelling: "scheddb", fields: `"max": {"tres": {"per": {"job": [{"type": "mem", "count": 501}]}}}`, want: with(func(a *model.Association) { a.MaxTRESPJ = "2=501" })},
		{name: "an inherited amount without the own one", warned: true, fields: `"max": {"tres": {"per": {"job": [{"type": "mem", "count": 500}]}}}`, want: with(func(a *model.Association) { a.MaxTRESPJ = "1=18446744073709551615" })},
		{name: "a list and another one that is absent", fields: `"max": {"tres": {"per": {"job": [{"type": "cpu", "count": 5}]}}}`, want: with(func(a *model.Association) { a.MaxTRESPJ = "1=5" })},
		{name: "another list of QOS", fields: `"qos": ["normal"]`, want: with(func(a *model.Association) { a.QOSIDs = []string{"1"} })},
		{name: "another default QOS", fields: `"default": {"qos": "normal"}`, want: with(func(a *model.Association) { a.DefaultQOSID = 1 })},
		{name: "QOS of which one is removed from the inherited ones", warned: true, old: &delta, shown: &shownDelta, fields: `"qos": ["normal"]`},
		{name: "QOS as they are stored", old: &delta, shown: &shownDelta, fields: `"qos": ["-fast"]`},
		{name: "all QOS in spite of that", old: &delta, shown: &shownDelta, fields: `"qos": ["normal", "fast"]`, want: with(func(a *model.Association) { a.QOSIDs = []string{"1", "2"} })},
		{name: "the account's QOS instead of one more", old: &more, shown: &shownMore, fields: `"qos": ["normal", "fast"]`, want: with(func(a *model.Association) { a.QOSIDs = []string{"1", "2"} })},
		{name: "inherited QOS in spite of that", old: &delta, shown: &shownDelta, fields: `"qos": []`, want: with(func(a *model.Association) { a.QOSIDs = []string{""} })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := demo()
			f.recorded.associations, f.recorded.shown = []model.Association{account, own}, []model.Association{account, shown}
			if tt.old != nil {
				f.recorded.associations, f.recorded.shown = []model.Association{account, *tt.old}, []model.Association{account, *tt.shown}
			}
			w := serve(t, config(f), request(http.MethodPost, "/"+cmp.Or(tt.spelling, "slurmdb")+"/v0.0.45/associations", `{"associations": [{"account": "lab", "cluster": "demo", "user": "carol", `+tt.fields+`}]}`))
			body := envelope(t, w.Body.Bytes())
			if w.Code != http.StatusOK {
				t.Fatalf("status %d: %+v", w.Code, body.Errors)
			}
			var got *model.Association
			for _, ch := range f.recorded.changes {
				modify := ch.(model.Modify[model.Association])
				got = &modify.Record
			}
			if d := gocmp.Diff(tt.want, got); d != "" {
				t.Errorf("change (-want, +got):\n%s", d)
			}
			if wantWarnings := tt.warned || tt.want == nil; len(body.Warnings) > 0 != wantWarnings {
				t.Errorf("warnings %+v, want some: %t", body.Warnings, wantWarnings)
			}
		})
	}
}

// TestInheritedCopies creates an association with the values that it inherits.
// Only as a part of a configuration, which may be that of another cluster, it
// inherits them.
func TestInheritedCopies(t *testing.T) {
	record := `{"associations": [{"account": "lab", "cluster": "demo", "user": "bob", "max": {"jobs": {"active": {"set": true, "number": 40}}}, "qos": ["normal"]}]}`
	for path, want := range map[string]model.Association{
		"config":       {},
		"associations": {MaxJobs: model.Some[uint32](40), QOSIDs: []string{"1"}},
	} {
		f := demo()
		f.recorded.associations = []model.Association{{Account: "lab", Cluster: "demo", ID: 3, MaxJobs: model.Some[uint32](40), QOSIDs: []string{"1"}}}
		w := serve(t, config(f), request(http.MethodPost, "/slurmdb/v0.0.45/"+path, record))
		if w.Code != http.StatusOK {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		added := f.recorded.changes[0].(model.Add[model.Association]).Records[0]
		if got := (model.Association{MaxJobs: added.MaxJobs, QOSIDs: added.QOSIDs}); !gocmp.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
}

// TestNarrow checks that a change that has the same values as the record sets none
// of them.
func TestNarrow(t *testing.T) {
	checkNarrow(t, "QOS", narrowQOS, qosNumberFields, qosAmountFields)
	checkNarrow(t, "association", narrowAssociation, inheritedNumbers, inheritedAmounts)
	checkNarrow(t, "association, for those below together", narrowAssociation, groupNumbers, groupAmounts)
}

func checkNarrow[T any](t *testing.T, name string, narrow func(change, old *T), numbers []number[T], texts []amounts[T]) {
	t.Helper()
	var change, old T
	for i := range numbers {
		*numbers[i].at(&old) = model.Opt[uint32]{Set: true, Number: uint32(i)}
	}
	for i := range texts {
		*texts[i].at(&old) = "1=4,2=1000"
	}
	change = old
	narrow(&change, &old)
	for i := range numbers {
		if n := numbers[i].at(&change); n.Set {
			t.Errorf("%s: number %d is still set", name, i)
		}
	}
	for i := range texts {
		if text := *texts[i].at(&change); text != "" {
			t.Errorf("%s: amounts %d are still %q", name, i, text)
		}
	}
}

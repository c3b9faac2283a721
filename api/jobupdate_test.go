package api

import (
	"strings"
	"testing"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// TestUnchangeable checks that each entry of unchangeable is the name of a
// field, and that a change of a job warns about such a field and no other.
func TestUnchangeable(t *testing.T) {
	known := map[string]bool{}
	for _, v := range Versions {
		for _, p := range JobUpdate.Shape(schema.View{Version: v}).Fields {
			known[p.Name] = true
		}
	}
	for name := range unchangeable {
		if !known[name] {
			t.Errorf("there is no field %s", name)
		}
	}
	for text, want := range map[string]string{
		`{"comment": "c", "script": "#!/bin/sh"}`:       "#/script",
		`{"rlimits": {"cpu": 5}, "priority": 9}`:        "#/rlimits",
		`{"open_mode": ["APPEND"], "open": 1}`:          "#/open_mode #/open",
		`{"flags": ["SPREAD_JOB"]}`:                     "#/flags",
		`{"flags": ["JOB_WAS_RUNNING"], "profile": []}`: "#/flags #/profile",
		`{"profile": []}`:                               "#/profile",
		`{"time_limit": {"set": true, "number": 5}}`:    "",
		`{"kill_warning_signal": "nosuch", "nice": 10}`: "#/kill_warning_signal",
	} {
		doc, err := schema.ReadJSON(text, schema.DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		r := schema.Report{}
		desc := model.JobDesc{}
		JobUpdate.Parser(schema.View{Version: V42})(&r, doc, &desc)
		var sources []string
		for _, n := range append(r.Warnings, r.Errors...) {
			sources = append(sources, n.Source)
		}
		if got := strings.Join(sources, " "); got != want {
			t.Errorf("%s: notes about %q, want %q", text, got, want)
		}
	}
}

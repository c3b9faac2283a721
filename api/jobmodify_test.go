package api

import (
	"testing"

	"schedrestd/api/schema"
)

// TestDerivedExitCode checks the wait status that reaches the accounting daemon
// for each form of an exit code.
func TestDerivedExitCode(t *testing.T) {
	const refused = 1 << 31
	for body, want := range map[string]uint32{
		`4`: 4 << 8, `0`: 0, `"4"`: 4 << 8, `255`: 255 << 8, `256`: refused, `257`: refused, `65536`: refused, `-1`: refused, `-2`: refused, `"many"`: refused, `[]`: refused, `{}`: refused,
		`{"return_code": 4}`:                               4 << 8,
		`{"return_code": {"set": true, "number": 4}}`:      4 << 8,
		`{"signal": {"id": {"set": true, "number": 9}}}`:   9,
		`{"return_code": 4, "signal": {"id": 9}}`:          4<<8 | 9,
		`{"status": ["SUCCESS"], "return_code": 0}`:        0,
		`{"return_code": 300}`:                             refused,
		`{"return_code": 1024}`:                            refused,
		`{"return_code": 1024, "signal": {"id": 9}}`:       refused,
		`{"signal": {"id": 128}}`:                          refused,
		`{"return_code": {"set": false}, "signal": {}}`:    refused,
		`{"return_code": {"infinite": true}}`:              refused,
		`{"return_code": {"set": true, "infinite": true}}`: refused,
	} {
		change := NewJobChange()
		ok := parseValue(t, JobModifyBody.Type(), `{"derived_exit_code": `+body+`}`, change)
		if ok != (want != refused) || ok && change.DerivedExitCode != want {
			t.Errorf("%s: %#x, %v; want %#x", body, change.DerivedExitCode, ok, want)
		}
	}
	for body, want := range map[string]uint32{
		`4`: 4 << 8, `256`: 1 << 8, `257`: refused, `65280`: 255 << 8, `65536`: refused,
		`{"return_code": 300}`:                       refused,
		`{"return_code": 1024}`:                      4 << 8,
		`{"return_code": 1024, "signal": {"id": 9}}`: refused,
	} {
		change := NewJobChange()
		doc, err := schema.ReadJSON(`{"derived_exit_code": `+body+`}`, schema.DefaultLimits)
		if err != nil {
			t.Fatal(err)
		}
		var r schema.Report
		ok := JobModifyBody.Type().Parser(schema.View{Version: V45, Spelling: schema.Slurm})(&r, doc, change) && r.OK()
		if ok != (want != refused) || ok && change.DerivedExitCode != want {
			t.Errorf("%s in Slurm's spelling: %#x, %v; want %#x", body, change.DerivedExitCode, ok, want)
		}
	}
}

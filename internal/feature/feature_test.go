package feature

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
)

func TestParseParsers(t *testing.T) {
	tests := []struct {
		value       string
		want        []Parser
		error, hint string
	}{
		{value: "v0.0.41", want: []Parser{{41, 0}}},
		{value: "data_parser/v0.0.41", want: []Parser{{41, 0}}},
		{value: "latest", want: []Parser{{45, 0}}},
		{value: "data_parser/latest+fast", want: []Parser{{45, Fast}}},
		{value: "v0.0.42+inline_enums+fast , v0.0.40", want: []Parser{{40, 0}, {42, Fast | InlineEnums}}},
		{value: "v0.0.41+prefer_refs", want: []Parser{{41, PreferRefs}}},
		{value: "v0.0.42+prefer_refs,v0.0.43+PREFER_REFS", want: []Parser{{42, PreferRefs}, {43, PreferRefs}}},
		{value: "latest,v0.0.45", want: []Parser{{45, 0}}},
		{value: "latest+fast,v0.0.45", error: "v0.0.45 is named twice, with different flags"},
		{value: "v0.0.39", error: `-d: unknown data parser "v0.0.39"`, hint: "latest, v0.0.40, v0.0.41, v0.0.42, v0.0.43"},
		{value: "rest_auth/v0.0.40", error: `"rest_auth/v0.0.40"`, hint: "latest"},
		{value: "v0.0.40+prefer_refs", error: `v0.0.40 has no flag "+prefer_refs"`, hint: "it has +fast"},
		{value: "v0.0.42+faster", error: `no flag "+faster"`, hint: "+fast, +prefer_refs, +minimize_refs, +inline_enums"},
		{value: "v0.0.42+", error: `no flag "+"`, hint: "+fast"},
		{value: "v0.0.42++fast", error: `no flag "+"`, hint: "+fast"},
		{value: "v0.0.42,list", error: "list can't be combined with other names"},
		{value: "", error: "-d names no data parser", hint: "latest"},
		{value: " , ", error: "-d names no data parser", hint: "latest"},
	}
	for _, tt := range tests {
		got, err := ParseParsers("-d", tt.value)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: (-want +got):\n%s", tt.value, diff)
		}
		checkError(t, tt.value, err, tt.error, tt.hint)
	}
}

func TestParseSets(t *testing.T) {
	auth := func(v string) (int, error) { a, err := ParseAuth("-a", v); return int(a), err }
	content := func(v string) (int, error) { c, err := ParseContent("-s", v); return int(c), err }
	tests := []struct {
		parse       func(string) (int, error)
		value       string
		want        int
		error, hint string
	}{
		{parse: auth, value: "rest_auth/local", want: int(Local)},
		{parse: auth, value: "jwt", want: int(JWT)},
		{parse: auth, value: "local,rest_auth/jwt,local", want: int(Local | JWT)},
		{parse: auth, value: "munge", error: `-a: unknown plugin "munge"`, hint: "rest_auth/jwt, rest_auth/local"},
		{parse: auth, value: "openapi/local", error: `"openapi/local"`, hint: "rest_auth/local"},
		{parse: auth, value: "rest_auth/rest_auth/local", error: "unknown plugin", hint: "rest_auth/local"},
		{parse: auth, value: "list,jwt", error: "list can't be combined with other names"},
		{parse: auth, value: ",", error: "-a names no plugin", hint: "rest_auth/local"},
		{parse: content, value: "openapi/schedctld", want: int(Controller)},
		{parse: content, value: "scheddb", want: int(Accounting)},
		{parse: content, value: "openapi/slurmctld,slurmdbd", want: int(Controller | Accounting)},
		{parse: content, value: "slurmctld,slurmdbd,util", want: int(AllContent)},
		{parse: content, value: "openapi/util", want: int(Util)},
		{parse: content, value: "openapi/v0.0.38", error: `-s: unknown plugin "openapi/v0.0.38"`, hint: "-d chooses the versions of the API; for -s, allowed values: openapi/schedctld"},
		{parse: content, value: "slurmctld,dbv0.0.38", error: `unknown plugin "dbv0.0.38"`, hint: "-d chooses the versions"},
		{parse: content, value: "dbd", error: `-s: unknown plugin "dbd"`, hint: "openapi/schedctld, openapi/scheddb, openapi/util"},
	}
	for _, tt := range tests {
		got, err := tt.parse(tt.value)
		if got != tt.want {
			t.Errorf("%q: %d, want %d", tt.value, got, tt.want)
		}
		checkError(t, tt.value, err, tt.error, tt.hint)
	}
}

// checkError checks that err contains text, and that its hint contains hint. If
// text is "", there must be no error.
func checkError(t *testing.T, value string, err error, text, hint string) {
	t.Helper()
	switch {
	case text == "" && err == nil:
	case text == "" || err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(errs.HintOf(err), hint):
		t.Errorf("%q: error %v, hint %q; want %q, %q", value, err, errs.HintOf(err), text, hint)
	}
}

// TestLatestOf checks that a preview is the latest version only if there is no
// other.
func TestLatestOf(t *testing.T) {
	for _, tt := range []struct {
		list []Parser
		want Parser
	}{
		{[]Parser{{41, 0}, {43, Fast}}, Parser{43, Fast}},
		{[]Parser{{44, 0}, {latest, Fast}, {latest + 1, 0}, {latest + 2, 0}}, Parser{latest, Fast}},
		{[]Parser{{latest + 1, 0}, {latest + 2, 0}}, Parser{latest + 2, 0}},
	} {
		if got := LatestOf(tt.list); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.list, got, tt.want)
		}
	}
}

// TestPluginNames checks that -d accepts the name of each parser.
func TestPluginNames(t *testing.T) {
	for _, p := range Parsers {
		got, err := ParseParsers("-d", p.Plugin())
		if err != nil || !cmp.Equal(got, []Parser{p}) {
			t.Errorf("%s: %v %v", p.Plugin(), got, err)
		}
	}
}

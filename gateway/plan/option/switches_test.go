package option

import (
	"strings"
	"testing"

	"schedrestd/internal/errs"
)

// parseSwitches returns the switches that a value sets.
func parseSwitches(v string) ([]string, error) {
	var o Options
	err := o.setSwitches("SCHEDRESTD_SECURITY", v)
	return o.SetSwitches(), err
}

// TestContradictions checks that require_confinement excludes switches that
// disable a part of the confinement.
func TestContradictions(t *testing.T) {
	for _, part := range []string{"audit_confinement", "disable_unshare_files", "disable_unshare_sysv", "disable_user_check"} {
		for _, text := range []string{part + ",require_confinement", "require_confinement,become_user," + part} {
			got, err := parseSwitches(text)
			if err == nil || !strings.Contains(err.Error(), "require_confinement and "+part+" contradict") || errs.HintOf(err) == "" {
				t.Errorf("%q: %+v, %v, hint %q", text, got, err, errs.HintOf(err))
			}
		}
		if _, err := parseSwitches(part + ",worker_per_connection"); err != nil {
			t.Errorf("%s alone: %v", part, err)
		}
	}
	if _, err := parseSwitches("require_confinement,become_user,worker_per_connection,require_user_name"); err != nil {
		t.Error(err)
	}
}

func TestParseSwitches(t *testing.T) {
	tests := []struct {
		in      string
		want    string
		wantErr string
	}{
		{in: "", want: ""},
		{in: " , ", want: ""},
		{in: "disable_user_check", want: "disable_user_check"},
		{in: "disable_unshare_files, disable_unshare_sysv,require_user_name", want: "disable_unshare_files,disable_unshare_sysv,require_user_name"},
		{in: "strict_bodies", want: "strict_bodies"},
		{in: "disable_user_chek", wantErr: "disable_user_chek"},
		{in: "require_user_name,become_everyone", wantErr: "become_everyone"},
		{in: "DISABLE_USER_CHECK,Strict_Bodies", want: "disable_user_check,strict_bodies"},
	}
	for _, tt := range tests {
		got, err := parseSwitches(tt.in)
		if err == nil && strings.Join(got, ",") != tt.want {
			t.Errorf("%q: got %q, want %q", tt.in, got, tt.want)
		}
		if (err != nil) != (tt.wantErr != "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
			t.Errorf("%q: %v", tt.in, err)
		}
		if err != nil && !strings.Contains(errs.HintOf(err), "disable_user_check") {
			t.Errorf("%q: the hint %q does not say what is allowed", tt.in, errs.HintOf(err))
		}
	}
}

// TestSwitchFields checks that each switch sets one field of its own.
func TestSwitchFields(t *testing.T) {
	for _, name := range SwitchNames() {
		got, err := parseSwitches(name)
		if err != nil || len(got) != 1 || got[0] != name {
			t.Errorf("%s sets %q, %v", name, got, err)
		}
	}
}

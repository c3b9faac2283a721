package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// TestContradictions checks that require_confinement excludes switches that
// disable a part of the confinement.
func TestContradictions(t *testing.T) {
	for _, part := range []string{"audit_confinement", "disable_unshare_files", "disable_unshare_sysv", "disable_user_check"} {
		for _, text := range []string{part + ",require_confinement", "require_confinement,become_user," + part} {
			got, err := parseSwitches(text)
			if err == nil || !strings.Contains(err.Error(), "require_confinement and "+part+" contradict") || errs.HintOf(err) == "" || got != (switches{}) {
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
		want    switches
		wantErr string
	}{
		{in: "", want: switches{}},
		{in: " , ", want: switches{}},
		{in: "disable_user_check", want: switches{Switches: ipc.Switches{DisableUserCheck: true}}},
		{in: "disable_unshare_files, disable_unshare_sysv,require_user_name",
			want: switches{Switches: ipc.Switches{DisableUnshareFiles: true, DisableUnshareSysV: true}, RequireUserName: true}},
		{in: "strict_bodies", want: switches{StrictBodies: true}},
		{in: "disable_user_chek", wantErr: "disable_user_chek"},
		{in: "require_user_name,become_everyone", wantErr: "become_everyone"},
		{in: "DISABLE_USER_CHECK", wantErr: "DISABLE_USER_CHECK"},
	}
	for _, tt := range tests {
		got, err := parseSwitches(tt.in)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.in, diff)
		}
		if (err != nil) != (tt.wantErr != "") || err != nil && !strings.Contains(err.Error(), tt.wantErr) {
			t.Errorf("%q: %v", tt.in, err)
		}
		if err != nil && !strings.Contains(errs.HintOf(err), "disable_user_check") {
			t.Errorf("%q: the hint %q does not say what is allowed", tt.in, errs.HintOf(err))
		}
	}
}

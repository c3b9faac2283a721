package credential

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/internal/errs"
)

// makeToken returns an unsigned token with the given claims.
func makeToken(claims string) string {
	b64 := base64.RawURLEncoding.EncodeToString
	return b64([]byte(`{"alg":"HS256"}`)) + "." + b64([]byte(claims)) + "." + b64([]byte("signature"))
}

func TestToken(t *testing.T) {
	dir := t.TempDir()
	valid := makeToken(fmt.Sprintf(`{"exp": %d, "sun": "ann"}`, time.Now().Add(time.Hour).Unix()))
	expired := makeToken(fmt.Sprintf(`{"exp": %d, "sun": "ann"}`, time.Now().Add(-time.Hour).Unix()))
	site := makeToken(`{"mail": "ann"}`) // the gateway may have another claim for the user
	for _, tt := range []struct {
		name, env string
		file      string // contents of the file; "-" for no file
		mode      os.FileMode
		want      string
		wantErr   string
	}{
		{"environment", valid, "-", 0, valid, ""},
		{"with its name", "SCHED_JWT=" + valid, "-", 0, valid, ""},
		{"its name alone", "SCHED_JWT=", "-", 0, "", "SCHED_JWT contains no token"},
		{"another claim", site, "-", 0, site, ""},
		{"empty", "", "-", 0, "", "SCHED_JWT is set but empty"},
		{"expired", expired, "-", 0, "", "the token in SCHED_JWT expired 1h0m"},
		{"no token", "a.b.c", "-", 0, "", "not a JSON Web Token"},
		{"quoted", `"` + valid + `"`, "-", 0, "", "a quote"},
		{"file", expired, valid + "\n", 0o600, valid, ""},
		{"output of scontrol token", expired, "SLURM_JWT=" + valid + "\n", 0o400, valid, ""},
		{"an expired one in a file", valid, expired, 0o600, "", "expired"},
		{"empty file", valid, "\n", 0o600, "", "contains no token"},
		{"a file that the group can read", valid, valid, 0o640, "", "mode 0640"},
		{"a file that all can read", valid, valid, 0o604, "", "mode 0604"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("SLURM_JWT", "")
			os.Unsetenv("SLURM_JWT")
			t.Setenv("SCHED_JWT", tt.env)
			path := ""
			if tt.file != "-" {
				path = filepath.Join(dir, strings.ReplaceAll(tt.name, " ", "-"))
				if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, tt.mode); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Token(path)
			if got != tt.want || (err == nil) != (tt.wantErr == "") {
				t.Fatalf("%q, %v", got, err)
			}
			if err != nil && (!strings.Contains(err.Error(), tt.wantErr) || errs.KindOf(err) != errs.Unauthenticated) {
				t.Errorf("%v, want %q", err, tt.wantErr)
			}
			if err != nil && (strings.Contains(err.Error(), valid) || strings.Contains(err.Error(), expired)) {
				t.Errorf("shows the token: %v", err)
			}
		})
	}
	if _, err := Token(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing file is accepted")
	}
}

func TestUser(t *testing.T) {
	for claims, want := range map[string]string{`{"sun": "ann"}`: "ann", `{"username": "bea"}`: "bea", `{"sun": "ann", "username": "bea"}`: "ann", `{"mail": "x"}`: "x", `{"post": "x"}`: "", `{"sun": 5}`: "",
		`{"id": {"name": "ann"}}`: "ann", `{"sun": "ann", "id": "x"}`: "ann", `{"id": ["ann"]}`: ""} {
		if got := User(makeToken(claims), "mail"); got != want {
			t.Errorf("%s: %q, want %q", claims, got, want)
		}
	}
	if User("", "mail") == "" {
		t.Error("this process has no user")
	}
}

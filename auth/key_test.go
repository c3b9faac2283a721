package auth

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/errs"
)

func TestLoadKey(t *testing.T) {
	self := uint32(os.Geteuid())
	tests := []struct {
		name   string
		bytes  int
		mode   os.FileMode
		owners []uint32
		want   string // part of the refusal; empty: accepted
		hint   string
	}{
		{name: "as the guide makes it", bytes: 32, mode: 0o600},
		{name: "read-only", bytes: 64, mode: 0o400, owners: []uint32{self}},
		{name: "31 bytes", bytes: 31, mode: 0o600, want: "31 bytes, HS256 needs at least 32", hint: "head -c 32 /dev/urandom"},
		{name: "empty", bytes: 0, mode: 0o600, want: "0 bytes", hint: "head -c 32"},
		{name: "others may read", bytes: 32, mode: 0o644, want: "mode 0644", hint: "chmod 0600"},
		{name: "too long", bytes: maxKey + 1, mode: 0o600, want: "longer than"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "jwt key")
			if err := os.WriteFile(path, []byte(strings.Repeat("k", test.bytes)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(path, test.mode); err != nil {
				t.Fatal(err)
			}
			key, err := LoadKey(path, test.owners...)
			if test.want == "" {
				if err != nil || len(key.secret()) != test.bytes {
					t.Errorf("got %d bytes, %v", len(key.secret()), err)
				}
				return
			}
			if errs.KindOf(err) != errs.Invalid || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if hint := errs.HintOf(err); !strings.Contains(hint, test.hint) || test.hint != "" && !strings.Contains(hint, "'"+path+"'") {
				t.Errorf("hint %q, want %q and the path quoted", hint, test.hint)
			}
		})
	}
	if _, err := LoadKey(filepath.Join(t.TempDir(), "none")); errs.KindOf(err) != errs.NotFound {
		t.Errorf("absent: got %v", err)
	}
}

// A key of somebody else is one that somebody else knows; root is trusted anyway.
func TestLoadKeyOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give a file away")
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, secret, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(path, 4711); err != nil {
		t.Errorf("root's: %v", err)
	}
	if err := os.Chown(path, 4712, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKey(path, 4711); err == nil || !strings.Contains(errs.HintOf(err), "chown 4711") {
		t.Errorf("a stranger's: got %v", err)
	}
}

func TestKeyIsNotPrinted(t *testing.T) {
	key := testKey(t)
	hidden := struct{ key Key }{key}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		for _, v := range []any{key, &key, hidden, Verifier{Key: key}} {
			text := fmt.Sprintf(verb, v)
			for _, shown := range []string{string(secret), fmt.Sprintf("%x", secret[:4]), "48 49 50 51"} {
				if strings.Contains(text, shown) {
					t.Errorf("%s of %T shows the key", verb, v)
				}
			}
		}
	}
	if got := fmt.Sprint(key); got != "(key)" {
		t.Errorf("got %q", got)
	}
}

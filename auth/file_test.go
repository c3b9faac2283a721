package auth

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/errs"
	"schedrestd/guard"
)

// TestHintsAreSafe pastes hints into a shell: none writes over a file that was named by a slip, and what the
// daemons look at comes into its place whole.
func TestHintsAreSafe(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "a key")
	_, err = LoadKey(path)
	hint := errs.HintOf(err)
	if !strings.Contains(hint, "&& mv "+guard.Quote(path+".new")+" "+guard.Quote(path)) {
		t.Errorf("hint %q", hint)
	}
	paste := func() {
		t.Helper()
		if out, err := exec.Command(sh, "-c", hint).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", hint, err, out)
		}
	}
	paste()
	if _, err := LoadKey(path); err != nil {
		t.Errorf("after the hint: %v", err)
	}
	if _, err := os.Lstat(path + ".new"); !os.IsNotExist(err) {
		t.Errorf("the other one: %v", err)
	}

	const certificate = "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUQ\n-----END CERTIFICATE-----\n"
	write(t, path, certificate, 0o600)
	_, err = LoadKey(path)
	if hint = errs.HintOf(err); !strings.Contains(hint, "  # then jwt_key="+guard.Quote(path+".new")) {
		t.Errorf("hint %q", hint)
	}
	paste()
	if text, _ := os.ReadFile(path); string(text) != certificate {
		t.Errorf("the certificate is now %q", text)
	}
	if _, err := LoadKey(path + ".new"); err != nil {
		t.Errorf("the new key: %v", err)
	}

	_, err = LoadKeySet(path)
	hint = errs.HintOf(err)
	if !strings.HasPrefix(hint, "curl --fail --output "+guard.Quote(path+".new")+" URL  # ") || !strings.HasSuffix(hint, "; then jwks="+guard.Quote(path+".new")) {
		t.Errorf("hint %q", hint)
	}
	_, err = LoadKeySet(path + ".none")
	if hint = errs.HintOf(err); !strings.Contains(hint, " URL && mv ") {
		t.Errorf("hint %q", hint)
	}
}

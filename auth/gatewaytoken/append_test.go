package gatewaytoken_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"schedrestd/auth/gatewaytoken"
)

// TestAppend checks that lines are added as a whole and at the end, or not at all, and
// that several processes, for which open files stand here, lose none.
func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	open := func(content string) *os.File {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	line := func() string { return gatewaytoken.RevokeToken(gatewaytoken.NewID()) }
	for name, tt := range map[string]struct {
		content string
		limit   int
		check   func(error) bool
	}{
		"an empty register": {"", 100, func(err error) bool { return err == nil }},
		"a comment":         {"# revoked:\n", 100, func(err error) bool { return err == nil }},
		"full":              {strings.Repeat("#\n", 40), 100, func(err error) bool { return err == gatewaytoken.ErrFull }},
		"no line end":       {"# revoked:", 100, func(err error) bool { _, ok := errors.AsType[*gatewaytoken.LineError](err); return ok }},
		"a wrong line":      {"revoke it\n", 100, func(err error) bool { _, ok := errors.AsType[*gatewaytoken.LineError](err); return ok }},
	} {
		f, added := open(tt.content), line()
		err := gatewaytoken.Append(f, added, tt.limit)
		want := tt.content
		if err == nil {
			want += added
		}
		if text, readErr := os.ReadFile(path); !tt.check(err) || readErr != nil || string(text) != want {
			t.Errorf("%s: %v, %v, %q", name, err, readErr, text)
		}
	}

	open("")
	var lines []string
	var running sync.WaitGroup
	for range 8 {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		own := line() + line()
		lines = append(lines, own)
		running.Go(func() {
			if err := gatewaytoken.Append(f, own, gatewaytoken.MaxRegister); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	text, err := os.ReadFile(path)
	if err != nil || len(text) != len(lines)*len(lines[0]) {
		t.Fatalf("%v, %d bytes", err, len(text))
	}
	for _, l := range lines {
		if !strings.Contains(string(text), l) {
			t.Errorf("%q is not in one piece in\n%s", l, text)
		}
	}
}

package gatewaytoken_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/auth/gatewaytoken"
)

// TestPruned checks which lines of a register have no effect any longer.
func TestPruned(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	id := func(n int) string { return strings.Repeat(string(rune('A'+n)), 26) }
	created := func(n int, until time.Duration) string {
		return fmt.Sprintf("token %s user=alice scope=compute.read issued=2026-01-01T00:00:00Z until=%s\n", id(n), now.Add(until).Format(time.RFC3339))
	}
	before := func(who string, ago time.Duration) string {
		return fmt.Sprintf("revoke %s before %s\n", who, now.Add(-ago).Format(time.RFC3339))
	}
	const day = 24 * time.Hour
	keep, drop := "keep", "drop"
	for name, lines := range map[string][][2]string{
		"a token and its end":                   {{keep, created(0, day)}, {keep, created(1, -time.Hour)}, {drop, created(2, -25*time.Hour)}},
		"its revocation":                        {{keep, created(0, day)}, {keep, gatewaytoken.RevokeToken(id(0))}, {drop, created(2, -2*day)}, {drop, gatewaytoken.RevokeToken(id(2))}},
		"the revocation of an unknown token":    {{keep, gatewaytoken.RevokeToken(id(0))}},
		"a token that is recorded afterwards":   {{keep, gatewaytoken.RevokeToken(id(0))}, {drop, created(0, -2*day)}},
		"a false line with an earlier end":      {{keep, created(0, day)}, {keep, gatewaytoken.RevokeToken(id(0))}, {keep, created(0, -2*day)}},
		"a line without an end":                 {{keep, "token " + id(0) + "\n"}, {keep, gatewaytoken.RevokeToken(id(0))}},
		"revocations of all tokens":             {{drop, before("all", 3*day)}, {keep, before("all", day)}, {drop, before("all", 2*day)}},
		"revocations of a user":                 {{drop, before("user alice", 3*day)}, {keep, before("user bob", 3*day)}, {keep, before("user alice", day)}},
		"revocations of tokens that have ended": {{drop, before("all", 368*day)}, {drop, before("user alice", 400*day)}, {keep, before("user bob", 366*day)}},
		"comments":                              {{keep, "# a comment\n"}, {keep, "\n"}},
	} {
		text, want := "", ""
		for _, line := range lines {
			if text += line[1]; line[0] == keep {
				want += line[1]
			}
		}
		got, err := gatewaytoken.Pruned([]byte(text), now)
		if err != nil || string(got) != want {
			t.Errorf("%s: %v, the register is\n%s\nwant\n%s", name, err, got, want)
		}
	}
	if _, err := gatewaytoken.Pruned([]byte("revoke it\n"), now); err == nil {
		t.Error("a register with an error is pruned")
	}
}

// TestPrune checks that a register is replaced by one with the same mode, and not if
// there is nothing to remove, or if it is a link.
func TestPrune(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	now := time.Now()
	ended := fmt.Sprintf("token %s user=alice until=%s\n", gatewaytoken.NewID(), now.Add(-48*time.Hour).UTC().Format(time.RFC3339))
	prune := func(path string) (int, error) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return gatewaytoken.Prune(f, now)
	}
	if err := os.WriteFile(path, []byte("# x\n"+ended), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil { // whatever the umask
		t.Fatal(err)
	}
	link := path + "-link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := prune(link); err == nil {
		t.Error("a link is replaced")
	}
	if n, err := prune(path); err != nil || n != len(ended) {
		t.Errorf("removed %d bytes: %v", n, err)
	}
	info, err := os.Stat(path)
	text, readErr := os.ReadFile(path)
	if err != nil || readErr != nil || string(text) != "# x\n" || info.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v: %q, mode %v", err, readErr, text, info.Mode())
	}
	if n, err := prune(path); n != 0 || err != nil {
		t.Errorf("a second time: %d, %v", n, err)
	}
	if later, err := os.Stat(path); err != nil || !os.SameFile(info, later) {
		t.Errorf("a register without such lines is replaced: %v", err)
	}
	if list, err := os.ReadDir(filepath.Dir(path)); err != nil || len(list) != 2 {
		t.Errorf("%v: %v", err, list)
	}
}

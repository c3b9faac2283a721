package plan

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// TestSubordinates checks that the gateway treats each uid in a range as the
// uid of the range's owner. subuid(5) may identify the owner by name or by
// number.
func TestSubordinates(t *testing.T) {
	dir := t.TempDir()
	subuid, passwd := filepath.Join(dir, "subuid"), filepath.Join(dir, "passwd")
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, to own the files")
	}
	o, s := optionsHere(), new(query.WholePlan)
	read := func(log *slog.Logger) {
		if ranges, ok := o.subordinates(subuid, passwd, log); ok {
			s.Ranges = ranges
		}
	}
	check := func(want map[uint32]uint32) {
		t.Helper()
		for uid, owner := range want {
			if got := ipc.OwnerOf(s.Ranges, uid); got != owner {
				t.Errorf("uid %d counts as %d, want %d", uid, got, owner)
			}
		}
	}
	check(map[uint32]uint32{0: 0, 100_000: 100_000})
	log := slog.New(slog.DiscardHandler)
	read(log) // without a file
	check(map[uint32]uint32{0: 0, 100_000: 100_000})

	write(passwd, "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\nnot a line\nbad:x:many:1:::\n", 0o644)
	write(subuid, `# a comment
alice:100000:65536
1001:165536:65536

alice:400000:1
gone:300000:65536
alice:500000:0
alice:600000
alice:-5:10
alice:4294967295:2
1001:4294900000:67296
mallory:0:4294967295
1002:165540:10
`, 0o644)
	read(log)
	check(map[uint32]uint32{
		0: 0, 1000: 1000, 99_999: 99_999, 100_000: 1000, 165_535: 1000, 165_536: 1001, 165_545: 1001, 231_071: 1001, 231_072: 231_072,
		300_000: 300_000, 399_999: 399_999, 400_000: 1000, 400_001: 400_001, 500_000: 500_000, 600_000: 600_000,
		4_294_900_000: 1001, 4_294_967_295: 1001,
	})

	write(subuid, "alice:700000:65536\n", 0o666)
	var logged strings.Builder
	read(slog.New(slog.NewTextHandler(&logged, nil)))
	if check(map[uint32]uint32{100_000: 1000, 700_000: 700_000}); !strings.Contains(logged.String(), "lets other users write it") {
		t.Errorf("of a file that all users may write the log says %q", logged.String())
	}
	write(subuid, "alice:700000:65536\n", 0o644)
	read(log)
	check(map[uint32]uint32{100_000: 100_000, 700_000: 1000})
}

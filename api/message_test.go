package api

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestMessageNames compares the names of messages with testdata/messages.tsv.
// That table contains all messages of Slurm 22.05 to 26.05. If a message had
// several names, the last one is right.
func TestMessageNames(t *testing.T) {
	text, err := os.ReadFile("testdata/messages.tsv")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[uint32]string{"slurmctld": {}, "slurmdbd": {}}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		row := strings.Split(line, "\t")
		number, err := strconv.ParseUint(row[1], 10, 32)
		if err != nil || want[row[0]] == nil || len(row) != 5 {
			t.Fatalf("%q: %v", line, err)
		}
		want[row[0]][uint32(number)] = row[2]
	}
	for daemon, tt := range map[string]struct {
		name  func(uint32) string
		table map[uint32]string
	}{"slurmctld": {messageName, messages}, "slurmdbd": {requestName, requests}} {
		for number, name := range want[daemon] {
			if got := tt.name(number); got != name {
				t.Errorf("%s: %d is %s, want %s", daemon, number, got, name)
			}
		}
		for number := range tt.table {
			if own := number > 30000; want[daemon][number] == "" && !own {
				t.Errorf("%s: %d is not a message", daemon, number)
			}
		}
		for number, name := range map[uint32]string{0: "0", 1400: "1400", 65535: "65535", 1<<32 - 1: "4294967295"} {
			if got := tt.name(number); got != name {
				t.Errorf("%s: the unknown message %d is %q", daemon, number, got)
			}
		}
	}
}

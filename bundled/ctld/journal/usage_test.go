package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestUsage checks that the usage of an owner equals the number of bytes that
// the owner's values take in the file. This must be true after replacements,
// removals and a restart.
func TestUsage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j := open(t, path)
	newEntry := func(owner uint32, key string, n int) Entry {
		return Entry{Key: key, Value: make([]byte, n), Owner: owner}
	}
	mustCommit(t, j, newEntry(1, "a", 1000), newEntry(1, "b", 500), newEntry(2, "c", 10))
	mustCommit(t, j, newEntry(1, "a", 2000), newEntry(2, "b", 700), Entry{Key: "c"}, Entry{Key: "never"})
	want := map[uint32]int64{1: newEntry(1, "a", 2000).Size(), 2: newEntry(2, "b", 700).Size()}
	check := func(label string, j *Journal) {
		t.Helper()
		sum := int64(headerSize)
		for owner := range uint32(4) {
			got, _ := j.Usage(owner)
			if got != want[owner] {
				t.Errorf("%s: owner %d has %d bytes, want %d", label, owner, got, want[owner])
			}
			sum += got
		}
		if sum != j.liveBytes() {
			t.Errorf("%s: all owners together have %d bytes of %d", label, sum, j.liveBytes())
		}
		if owner, size := j.Stat("b"); owner != 2 || size != want[2] {
			t.Errorf("%s: %d bytes of owner %d", label, size, owner)
		}
	}
	check("at once", j)
	j.mu.Lock()
	if err := j.rewriteLocked(); err != nil {
		t.Fatal(err)
	}
	j.mu.Unlock()
	check("rewritten", j)
	if st, err := os.Stat(path); err != nil || st.Size() != headerSize+want[1]+want[2] {
		t.Errorf("the file has %d bytes, %v", st.Size(), err)
	}
	j.Close()
	j = open(t, path)
	if err := j.Each(func(key string, _ []byte) (uint32, error) { return map[string]uint32{"a": 1, "b": 2}[key], nil }); err != nil {
		t.Fatal(err)
	}
	check("after a restart", j)
}

// TestFileShrinks checks that the space taken by removed values is freed even
// when no other value is written.
func TestFileShrinks(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "journal"))
	for i := range 64 {
		mustCommit(t, j, Entry{Key: fmt.Sprint(i), Value: make([]byte, 256<<10)})
	}
	for i := range 60 {
		mustCommit(t, j, Entry{Key: fmt.Sprint(i)})
		if j.Get(""); j.size > max(minRewriteSize, 2*j.liveBytes()) { // Get waits until the file is rewritten
			t.Fatalf("%d bytes for %d live ones", j.size, j.liveBytes())
		}
	}
}

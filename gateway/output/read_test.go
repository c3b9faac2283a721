package output

import (
	"bytes"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"schedrestd/ipc/query"
)

// TestRead checks which part of a file an answer has.
func TestRead(t *testing.T) {
	path := t.TempDir() + "/f"
	long := strings.Repeat("x", query.MaxOutputPart)
	must(t, os.WriteFile(path, []byte(long+"end"), 0o600))
	size := uint64(len(long) + 3)
	for _, tt := range []struct {
		name string
		q    query.ReadOutput
		at   uint64
		want string
	}{
		{"nothing", query.ReadOutput{}, 0, ""},
		{"a part", query.ReadOutput{Offset: 3, Max: 5}, 3, "xxxxx"},
		{"more than an answer holds", query.ReadOutput{Max: 1 << 31}, 0, long},
		{"the end", query.ReadOutput{Offset: size - 3, Max: 100}, size - 3, "end"},
		{"after the end", query.ReadOutput{Offset: size, Max: 1}, size, ""},
		{"far after the end", query.ReadOutput{Offset: 1<<64 - 1, Max: 1}, 1<<64 - 1, ""},
	} {
		tt.q.ID, tt.q.Path = 7, path
		got := read(&tt.q)
		if got.ID != 7 || got.State != query.OutputRead || got.Size != size || got.Inode == 0 || got.Offset != tt.at || string(got.Data) != tt.want {
			t.Errorf("%s: %d bytes at %d of %d, %s", tt.name, len(got.Data), got.Offset, got.Size, got.State)
		}
	}
	if got := read(&query.ReadOutput{ID: 8, Path: path + "x", Offset: 3, Max: 1}); got.ID != 8 || got.State != query.OutputMissing || got.Offset != 0 {
		t.Errorf("%+v", got)
	}
}

// TestLastLines compares lastLines with a simple implementation, for texts whose
// lines end at all places of a block.
func TestLastLines(t *testing.T) {
	for range 300 {
		text := make([]byte, rand.N(200_000))
		for i := range text {
			if text[i] = 'x'; rand.N(1+len(text)/5) == 0 {
				text[i] = '\n'
			}
		}
		if rand.N(2) == 0 {
			text = append(text, '\n')
		}
		for _, n := range []uint32{1, 2, 3, 7, 100_000} {
			lines := slices.Collect(bytes.Lines(text))
			want := len(text) - len(bytes.Join(lines[max(0, len(lines)-int(n)):], nil))
			got, err := lastLines(bytes.NewReader(text), int64(len(text)), n)
			if err != nil || int(got) != want {
				t.Fatalf("%d lines of %d: at %d, want %d, of %d bytes; %v", n, len(lines), got, want, len(text), err)
			}
		}
	}
}

// TestLongLastLine checks that a line that is too long to be looked for is cut.
func TestLongLastLine(t *testing.T) {
	text := bytes.Repeat([]byte{'x'}, maxTail+100)
	if got, err := lastLines(bytes.NewReader(text), int64(len(text)), 1); got != 100 || err != nil {
		t.Errorf("at %d, %v", got, err)
	}
}

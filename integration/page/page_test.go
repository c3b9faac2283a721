package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestBlocks(t *testing.T) {
	tests := []struct {
		name, text string
		want       []Block
		err        string
	}{
		{name: "two below two headings", text: "# A\n\n```sh\na\n# no heading\n```\n\n## B c\ntext\n```sh\nb\n```\n",
			want: []Block{{Heading: "A", Language: "sh", Line: 4, Text: "a\n# no heading\n"}, {Heading: "B c", Language: "sh", Line: 11, Text: "b\n"}}},
		{name: "no kind", text: "```\nKey=Value\n```\n", err: `:1: a block of ""`},
		{name: "another kind", text: "\n```json\n{}\n```\n", err: `:2: a block of "json"`},
		{name: "no end", text: "```sh\na\n", err: "no end"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "page.md")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := Blocks(path)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

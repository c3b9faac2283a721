package privsep

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFigures: numbers that a page has from this code are those of this code.
func TestFigures(t *testing.T) {
	parts := map[int]string{2: "one half", 3: "one third", 4: "one fourth"}
	for page, figure := range map[string]string{
		"../docs/TRUST.md":   fmt.Sprintf("as its descriptors, %d unless told otherwise", Config{Connections: DefaultConnections}.files()),
		"../docs/PRIVSEP.md": fmt.Sprintf("their ports from %s of this machine's range", parts[portShares]),
	} {
		text, err := os.ReadFile(page)
		must(t, err)
		if !strings.Contains(string(text), figure) {
			t.Errorf("%s does not say %q", page, figure)
		}
	}
}

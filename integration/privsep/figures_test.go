package privsep

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"schedrestd/gateway/dispatcher/dial"
	"schedrestd/internal/limit"
)

// TestFigures checks that the documentation states the same numbers as the
// code.
func TestFigures(t *testing.T) {
	t.Parallel()
	setup := testConfig{}.Config().Setup
	files, watching := setup.Files, setup.Watching // fewer if the limit of this process is low
	parts := map[int]string{2: "one half", 3: "one third", 4: "one fourth"}
	for _, tt := range []struct{ page, figure string }{
		{"design/TRUST.md", fmt.Sprintf("number of descriptors (%d by default; %d of them", files-watching+4096, files-watching)},
		{"design/PRIVSEP.md", fmt.Sprintf("their ports from %s of this machine's range", parts[dial.PortShares])},
		{"design/PRIVSEP.md", fmt.Sprintf("Each worker gets %d at once and %d a second", int(limit.WorkerDials.Burst), int(limit.WorkerDials.PerSecond))},
	} {
		text, err := os.ReadFile("../../docs/" + tt.page)
		must(t, err)
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), tt.figure) {
			t.Errorf("%s does not say %q", tt.page, tt.figure)
		}
	}
}

package content

import (
	"os"
	"strings"
	"testing"

	"schedrestd/internal/guard"
)

func TestReadTooLong(t *testing.T) {
	path := t.TempDir() + "/k"
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(path, guard.Rule{Label: "key file"}, 6); err == nil || !strings.Contains(err.Error(), "longer than 6 bytes") {
		t.Errorf("got %v", err)
	}
	if data, _, err := Read(path, guard.Rule{Label: "key file"}, 7); err != nil || string(data) != "content" {
		t.Errorf("got %q, %v", data, err)
	}
}

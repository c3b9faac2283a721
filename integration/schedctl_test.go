package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// command runs schedctl on the lab and returns what it prints.
func (l *lab) command(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "schedctl"), append([]string{"-f", l.Conf()}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		t.Fatalf("schedctl %v: %v\n%s%s", args, err, out.Bytes(), errOut.Bytes())
	}
	return out.String()
}

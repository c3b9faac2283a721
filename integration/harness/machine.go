package harness

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Missing is the error for something that a test needs but this machine lacks.
// Such a test is skipped.
type Missing string

func (e Missing) Error() string { return string(e) }

// Machine is a machine that runs systemd. It consists of namespaces, which the
// script integration/systemd/machine creates.
type Machine struct {
	Suite string // such as trixie
	Root  string // path of its root directory on this machine
}

const machineScript = "../systemd/machine"

// Boot starts the machine.
func (m *Machine) Boot() error {
	first, err := RunScript(machineScript, m.Suite, "up")
	m.Root = "/proc/" + strings.TrimSpace(first) + "/root"
	return err
}

// Close stops the machine, unless it is to be kept for inspection.
func (m *Machine) Close() {
	if m.Suite != "" && os.Getenv("SYSTEMD_KEEP") == "" {
		RunScript(machineScript, m.Suite, "down")
	}
}

// RunScript runs a script that starts or stops a machine, and returns its
// output. The script's processes inherit no open files of the test.
func RunScript(path string, args ...string) (string, error) {
	var out, stderr bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&stderr, os.Stderr)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %v: %w\n%s", filepath.Base(path), args, err, &stderr)
	}
	return out.String(), nil
}

// Try runs shell commands in the machine, as root, and returns their output.
func (m *Machine) Try(commands string) (string, error) {
	commands = "set -o pipefail; export DEBIAN_FRONTEND=noninteractive\n" + commands
	out, err := exec.Command(machineScript, m.Suite, "run", "bash", "-ec", commands).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// Run runs shell commands in the machine. The test fails if they fail.
func (m *Machine) Run(t *testing.T, commands string) string {
	t.Helper()
	out, err := m.Try(commands)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, commands, out)
	}
	return out
}

// Write writes a file in the machine.
func (m *Machine) Write(t *testing.T, path, text string) {
	t.Helper()
	Must(t, os.WriteFile(m.Root+path, []byte(text), 0o644))
}

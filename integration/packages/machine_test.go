// Package packages checks the results of "make packages": with Debian's tools
// ("make packages-check"), and on machines with a real systemd and the Slurm of
// their release ("make integration-packages").
//
// PACKAGE_SUITE selects the Debian release of the machine; without it, the
// tests that need a machine are skipped. PACKAGES_REQUIRED=1 selects the checks
// that need no machine.
package packages

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

// machine is a machine that the script integration/systemd/machine runs, with
// Slurm but without the gateway.
type machine struct {
	suite string // such as trixie-slurm
	root  string // path of its root directory on this machine
}

// boot starts the machine that PACKAGE_SUITE selects. If the variable is not
// set, boot skips the test.
func boot(t *testing.T) *machine {
	t.Helper()
	suite := os.Getenv("PACKAGE_SUITE")
	if suite == "" {
		t.Skip("PACKAGE_SUITE is not set")
	}
	if os.Geteuid() != 0 {
		t.Fatal("needs root, to make a machine for systemd")
	}
	m := &machine{suite: suite + "-slurm"}
	first, err := m.script("up")
	t.Cleanup(func() {
		if os.Getenv("SYSTEMD_KEEP") == "" {
			m.script("down")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	m.root = "/proc/" + strings.TrimSpace(first) + "/root"
	return m
}

// script runs integration/systemd/machine.
func (m *machine) script(args ...string) (string, error) {
	var out, stderr bytes.Buffer
	cmd := exec.Command("../systemd/machine", append([]string{m.suite}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&stderr, os.Stderr)
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("machine %s %v: %w\n%s", m.suite, args, err, &stderr)
	}
	return out.String(), nil
}

// try runs a script in the machine, as root, and returns its output.
func (m *machine) try(script string) (string, error) {
	cmd := exec.Command("../systemd/machine", m.suite, "run", "bash", "-ec", "set -o pipefail; export DEBIAN_FRONTEND=noninteractive\n"+script)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// run runs a script in the machine. The test fails if the script fails.
func (m *machine) run(t *testing.T, script string) string {
	t.Helper()
	out, err := m.try(script)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, script, out)
	}
	return out
}

// expect runs a script in the machine and compares its output with want.
func (m *machine) expect(t *testing.T, script, want string) {
	t.Helper()
	if got := m.run(t, script); got != want {
		t.Errorf("%s\nprinted %q, want %q", script, got, want)
	}
}

// write writes a file in the machine.
func (m *machine) write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(m.root+path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// build runs "make packages" and returns the directory with the packages.
func build(t *testing.T, variables ...string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("make", append([]string{"-s", "-C", "../..", "packages", "DIST=" + dir}, variables...)...)
	cmd.Env = append(os.Environ(), "MAKEFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make packages: %v\n%s", err, out)
	}
	return filepath.Join(dir, "packages")
}

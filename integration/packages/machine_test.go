// Package packages checks the packages that "make packages" builds. "make
// packages-check" checks them with Debian's tools. "make integration-packages"
// checks them on machines that have a real systemd, and Slurm from a Debian
// release.
//
// PACKAGE_SUITE selects the Debian release of these machines. If it is not set,
// the tests that need a machine are skipped. PACKAGES_REQUIRED=1 enables the
// checks that need no machine.
package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"schedrestd/integration/harness"
)

// machine is a machine that the script integration/systemd/machine runs. Slurm
// is installed on it, but the gateway is not.
type machine struct{ harness.Machine }

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
	m := &machine{harness.Machine{Suite: suite + "-slurm"}}
	t.Cleanup(m.Close)
	harness.Must(t, m.Boot())
	return m
}

// expect runs a script in the machine and compares its output with want.
func (m *machine) expect(t *testing.T, script, want string) {
	t.Helper()
	if got := m.Run(t, script); got != want {
		t.Errorf("%s\nprinted %q, want %q", script, got, want)
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

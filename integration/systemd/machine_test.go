// Package systemd installs the gateway and its daemons on a machine with a real
// systemd, as docs/INSTALL.md describes, and checks the guarantees of the
// units. The script "machine" builds the machine from namespaces.
//
// "make integration-systemd" runs these tests. SYSTEMD_SUITE selects the Debian
// suite. If it is not set, all tests are skipped. SYSTEMD_REQUIRED=1 turns
// skips into failures. With SYSTEMD_KEEP=1 the machine keeps running until
// "machine SUITE down" stops it.
package systemd

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"schedrestd/integration/harness"
	"schedrestd/integration/page"
)

// machine is the machine with systemd.
type machine struct{ harness.Machine }

var (
	cluster    machine
	skipReason string // reason why there is none
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	err := cluster.open(os.Getenv("SYSTEMD_SUITE"))
	defer cluster.Close()
	if absent, ok := errors.AsType[harness.Missing](err); ok && os.Getenv("SYSTEMD_REQUIRED") == "" {
		skipReason, err = absent.Error(), nil
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// bootedMachine returns the machine, or skips the test if there is none.
func bootedMachine(t *testing.T) *machine {
	t.Helper()
	if skipReason != "" {
		t.Skip(skipReason)
	}
	return &cluster
}

func (m *machine) open(suite string) error {
	if suite == "" {
		return harness.Missing("SYSTEMD_SUITE names no Debian to boot")
	}
	if os.Geteuid() != 0 {
		return harness.Missing("needs root, to make a machine for systemd")
	}
	for _, program := range []string{"debootstrap", "unshare", "nsenter", "setpriv", "ip"} {
		if _, err := exec.LookPath(program); err != nil {
			return harness.Missing(program + " is not installed")
		}
	}
	if out, err := exec.Command("unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--cgroup", "--fork", "true").CombinedOutput(); err != nil {
		return harness.Missing(fmt.Sprintf("namespaces can't be made here: %s", bytes.TrimSpace(out)))
	}
	m.Suite = suite
	if err := m.Boot(); err != nil {
		return err
	}
	return m.install()
}

// install follows the first parts of docs/INSTALL.md. The machine keeps written
// files in memory, and loses them when it stops.
func (m *machine) install() error {
	for _, heading := range []string{"1. Install the programs", "2. Configure", "3. Choose the units"} {
		if out, err := m.follow(heading); err != nil {
			return fmt.Errorf("docs/INSTALL.md, %s: %w\n%s", heading, err, out)
		}
	}
	return nil
}

// blocks returns the command blocks below a heading of docs/INSTALL.md, or
// those of the whole page if heading is "".
func blocks(heading string) ([]page.Block, error) {
	all, err := page.Blocks("../../docs/INSTALL.md")
	if err != nil || heading == "" {
		return all, err
	}
	matching := slices.DeleteFunc(all, func(b page.Block) bool { return b.Heading != heading })
	if len(matching) == 0 {
		return nil, fmt.Errorf("docs/INSTALL.md has no commands below %q", heading)
	}
	return matching, nil
}

// follow runs the commands below a heading and returns their output.
func (m *machine) follow(heading string) (string, error) {
	list, err := blocks(heading)
	var all strings.Builder
	for _, b := range list {
		if err == nil {
			var out string
			out, err = m.runBlock(b)
			all.WriteString(out)
		}
	}
	return all.String(), err
}

// runBlock runs a block as printed. It runs the block as root, or as alice if
// the block's first line says "as a user". But it runs the block's make
// commands on the host, which has the project and Go. They install into the
// machine.
func (m *machine) runBlock(b page.Block) (string, error) {
	var all, piece strings.Builder
	flush := func() error {
		script := piece.String()
		piece.Reset()
		if strings.HasPrefix(b.Text, "# as a user\n") {
			script = "setpriv --reuid=alice --regid=alice --clear-groups bash -e <<'END OF BLOCK'\n" + script + "END OF BLOCK\n"
		}
		out, err := m.Try("cd /root\n" + script)
		all.WriteString(out + "\n")
		return err
	}
	for line := range strings.Lines(b.Text) {
		if !strings.HasPrefix(line, "make ") {
			piece.WriteString(line)
			continue
		}
		if err := flush(); err != nil {
			return all.String(), err
		}
		version, err := m.Try("systemctl --version | awk 'NR == 1 { print $2 + 0 }'")
		if err != nil {
			return version, err
		}
		make := exec.Command("bash", "-c", line)
		make.Dir, make.Env = "../..", append(os.Environ(), "DESTDIR="+m.Root, "SYSTEMD_VERSION="+version)
		out, err := make.CombinedOutput()
		if all.Write(out); err != nil {
			return all.String(), err
		}
	}
	err := flush()
	return all.String(), err
}

// reset stops all units of the gateway, and removes the settings of earlier
// tests.
func (m *machine) reset(t *testing.T) {
	t.Helper()
	m.Run(t, `units='schedrestd.socket schedrestd-https.socket schedrestd-users.socket schedrestd-inetd.socket schedrestd.service schedrestd-users.service'
		systemctl disable --now --quiet $units
		systemctl stop 'schedrestd@*'
		rm -rf /etc/sched/*.env /etc/systemd/system/schedrestd*.d /var/log/schedrestd* /var/log/private/schedrestd* /var/cache/schedrestd /var/cache/private/schedrestd /var/cache/schedrestd-config/*
		systemctl daemon-reload
		systemctl reset-failed`)
}

// journalSinceStart returns a unit's lines in the journal since its last start.
func (m *machine) journalSinceStart(t *testing.T, unit string) string {
	t.Helper()
	return m.Run(t, `journalctl --sync; journalctl -o cat --no-pager -u "`+unit+`" _SYSTEMD_INVOCATION_ID="$(systemctl show -P InvocationID "`+unit+`")"`)
}

// Package integration drives the real binaries as their users do: daemons on free
// ports of the loopback interface, requests over HTTP, commands in a shell.
//
// As root it tests more (other users' identities); what this machine can't show is
// skipped with the reason.
package integration

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// bin is where the binaries are.
var bin string

func TestMain(m *testing.M) {
	flag.Parse()
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// build makes the binaries from the sources as they are now: a test of yesterday's would
// say nothing.
func build() error {
	root, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	bin = filepath.Join(root, "bin")
	out, err := exec.Command("make", "-s", "-C", root, "build").CombinedOutput()
	if err != nil {
		return fmt.Errorf("make build: %w\n%s", err, out)
	}
	return nil
}

// TestCommands runs the pages of testdata/script: what a person types, and what comes back.
func TestCommands(t *testing.T) {
	l := newLab(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", bin+":"+env.Getenv("PATH"))
			env.Setenv("CONF", l.Conf())
			env.Setenv("URL", l.url)
			env.Setenv("NODE", l.Node)
			env.Setenv("USER", l.Owner)
			return nil
		},
	})
}

// Package install tests what a person does first: install the programs, run the demo, type the commands
// that README and manual show.
package install

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestCommands runs the pages of testdata/script: what a person types, and what comes back.
func TestCommands(t *testing.T) {
	l := harness.NewLab(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", harness.Bin+":"+env.Getenv("PATH"))
			env.Setenv("CONF", l.Conf())
			env.Setenv("URL", l.URL)
			env.Setenv("NODE", l.Node)
			env.Setenv("USER", l.Owner)
			return nil
		},
	})
}

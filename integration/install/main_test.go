// Package install tests the first steps of a new user: install the programs,
// run the demo, and type the commands of the README and the manual.
package install

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"schedrestd/integration/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestCommands runs the files in testdata/script, which contain commands and
// their expected output.
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

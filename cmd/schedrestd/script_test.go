package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"schedrestd/gateway/plan"
	"schedrestd/gateway/worker"
	"schedrestd/internal/feature"
	"schedrestd/internal/socket/sockettest"
)

// TestMain makes the test binary behave like the command, or like one of the
// programs that the command starts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"schedrestd":        main,
		"schedrestd-config": func() { os.Exit(plan.Main()) },
		"schedrestd-worker": func() {
			if len(os.Args) < 2 || os.Args[1] != feature.TablesMode {
				os.Exit(worker.Main(worker.NewHandler))
			}
			if err := worker.Tables(os.Args[2:], os.Stdout); err != nil {
				os.Exit(1)
			}
		},
	})
}

// TestCommand runs the scripts in testdata/script. A script contains commands
// and their expected output.
func TestCommand(t *testing.T) {
	root := sockettest.Dir(t)
	testscript.Run(t, testscript.Params{
		Dir:         "testdata/script",
		WorkdirRoot: root,
		Condition: func(cond string) (bool, error) { // [exists:PATH]
			_, err := os.Stat(strings.TrimPrefix(cond, "exists:"))
			return err == nil, nil
		},
		Setup: func(env *testscript.Env) error {
			for dir := env.WorkDir; len(dir) >= len(filepath.Dir(root)); dir = filepath.Dir(dir) {
				if err := os.Chmod(dir, 0o755); err != nil { // if root runs the test, some of the programs run as other users
					return err
				}
			}
			for _, v := range os.Environ() {
				if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "SCHED") || strings.HasPrefix(name, "SLURM") {
					env.Setenv(name, "")
				}
			}
			return nil
		},
	})
}

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"schedrestd/plugin"
	"schedrestd/worker"
)

// The test binary is the command and, beside it, its worker: what starts the other finds it there.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"schedrestd": main,
		"schedrestd-worker": func() {
			if len(os.Args) < 2 || os.Args[1] != plugin.TablesMode {
				os.Exit(worker.Main(worker.Join))
			}
			if err := worker.Tables(os.Args[2:], os.Stdout); err != nil {
				os.Exit(1)
			}
		},
	})
}

// TestCommand runs the pages of testdata/script: what a person types, and what comes back.
func TestCommand(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(cond string) (bool, error) { // [exists:PATH]
			_, err := os.Stat(strings.TrimPrefix(cond, "exists:"))
			return err == nil, nil
		},
		Setup: func(env *testscript.Env) error {
			for _, v := range os.Environ() {
				if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "SCHED") || strings.HasPrefix(name, "SLURM") {
					env.Setenv(name, "")
				}
			}
			return nil
		},
	})
}

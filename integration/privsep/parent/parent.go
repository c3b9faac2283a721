// Package parent runs the parent of a gateway for the tests of package privsep.
package parent

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/privsep"
)

// Env is the name of the environment variable that contains the configuration
// of the parent.
const Env = "PRIVSEP_TEST_PARENT"

// Main runs the parent with the configuration of a test, which is in the
// environment variable [Env] as JSON. The parent logs JSON to stderr. Main
// returns the exit status.
func Main() int {
	var test Config
	if err := json.Unmarshal([]byte(os.Getenv(Env)), &test); err != nil {
		panic(err)
	}
	if err := privsep.CheckStart(); err != nil {
		panic(err)
	}
	c := test.Config()
	c.Level.Set(slog.Level(c.Setup.LogLevel))
	c.Log = slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: c.Level}))
	if c.Mode == ipc.ModeCheck {
		if err := privsep.Check(c, os.Stdout); err != nil {
			fmt.Println("error:", err)
			return 1
		}
		return 0
	}
	statusRequests := make(chan os.Signal, 1)
	signal.Notify(statusRequests, syscall.SIGUSR2)
	go func() {
		for range statusRequests {
			is, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
			c.Log.Info("dumpable", "is", is, "error", fmt.Sprint(err))
		}
	}()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1)
	c.Reread = func() (*ipc.PackedPlan, error) { return rereadFile(os.Getenv(ReloadEnv), c.Setup) }
	run := privsep.Run
	if c.Setup.Inetd {
		run = func(signals <-chan os.Signal, c privsep.Config) error {
			return privsep.Inetd(signals, c, os.Stdin, os.Stdout)
		}
	}
	if err := run(signals, c); err != nil {
		c.Log.Error("failed", "error", err.Error(), "hint", errs.HintOf(err))
		return 1
	}
	return 0
}

// ReloadEnv is the name of an environment variable. The variable contains the
// path of the file that a parent rereads. The file contains a Setup and Secrets
// as JSON.
const ReloadEnv = "PRIVSEP_TEST_RELOAD"

func rereadFile(path string, now ipc.Setup) (*ipc.PackedPlan, error) {
	var next Reread
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &next)
	}
	p := &ipc.PackedPlan{Setup: next.Setup, Plan: ipc.Plan{Secrets: next.Secrets, Run: ipc.Run{LogLevel: next.Setup.LogLevel}}}
	p.Setup.Files, p.Setup.Sandbox, p.Setup.Audit, p.Setup.Claims = now.Files, now.Sandbox, now.Audit, now.Claims
	return p, err
}

// Reread is the content of the file that a parent rereads.
type Reread struct {
	ipc.Setup
	ipc.Secrets
}

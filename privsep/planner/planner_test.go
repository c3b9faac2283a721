package planner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/programtest"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
)

// playConfig acts as schedrestd-config. Its first argument selects what it
// does. The second is the path of the file that it asks for.
func playConfig(args []string) int {
	channel, err := ipc.Open(ipc.ConfigFD, ipc.Config, ipc.Parent)
	if err != nil {
		return 9
	}
	var start *ipc.ConfigSetup
	var env []string
	for remaining := 1; remaining > 0; remaining-- {
		m, err := channel.Receive()
		if err != nil {
			return 8
		}
		switch m := m.Message.(type) {
		case *ipc.ConfigSetup:
			start = m
			remaining += int(m.Variables)
		case *ipc.Variable:
			env = append(env, m.Text)
		}
	}
	ask := func(question ipc.Message) ipc.Received {
		_ = channel.Send(question)
		m, _ := channel.Receive()
		return m
	}
	open := func() ipc.Received {
		return ask(&ipc.OpenFile{Purpose: ipc.OpenConfiguration, Path: args[1]})
	}
	checkOwners := func() { ask(&ipc.CheckOwners{}) }
	var report []string
	plan := query.WholePlan{Plan: ipc.Plan{Mode: ipc.ModeServe}}
	switch args[0] {
	case "honest":
		m := open()
		text := make([]byte, 100)
		n, _ := os.NewFile(uintptr(m.FDs[0]), "").Read(text)
		checkOwners()
		status, _ := os.ReadFile("/proc/self/status")
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "NoNewPrivs:") || strings.HasPrefix(line, "CapEff:") || strings.HasPrefix(line, "CapPrm:") {
				report = append(report, strings.Join(strings.Fields(line), " "))
			}
		}
		groups, _ := os.Getgroups()
		report = append(report, env...)
		report = append(report, string(text[:n]), fmt.Sprint(groups, len(os.Environ()), start.Root))
		plan.Service.UID = uint32(os.Getuid())
	case "unjudged":
		open()
	case "judged too early":
		checkOwners()
		open()
	case "asks after the plan":
		_ = channel.Send(&plan.Plan)
		frame := append([]byte{byte(ipc.KindOf(new(ipc.OpenFile))), byte(ipc.OpenConfiguration), byte(len(args[1])), 0}, args[1]...)
		if _, err := unix.Write(ipc.ConfigFD, frame); err != nil { // the channel would refuse to send this frame
			return 6
		}
		time.Sleep(time.Hour) // keeps running even after its channel has ended
	case "asks for ever":
		for m := open(); m.Message != nil; m = open() {
			for _, fd := range m.FDs {
				os.NewFile(uintptr(fd), "").Close()
			}
		}
		return 0
	case "out of order":
		plan.Ranges = []ipc.Subuids{{First: 5, Last: 9, Owner: 1}, {First: 9, Last: 9, Owner: 2}}
	case "says why not":
		_ = channel.Send(&ipc.PlanFailed{Failure: ipc.FailureOf(errs.New(errs.Malformed, "no").WithHint("do"))})
		return 0
	case "hangs":
		time.Sleep(3 * time.Second)
		return 7
	case "leaves":
		return 7
	}
	for _, text := range report {
		plan.Listen = append(plan.Listen, ipc.Listen{Text: text, Network: ipc.TCP})
	}
	if query.SendPlan(channel, &plan) != nil {
		return 1
	}
	return 0
}

// binary is a copy of the test binary that every user can execute.
var binary string

func TestMain(m *testing.M) {
	if os.Args[0] == configName {
		os.Exit(playConfig(os.Args[1:]))
	}
	dir, err := os.MkdirTemp("", "planner")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err == nil {
		binary = filepath.Join(dir, "planner.test")
		err = programtest.Copy("/proc/self/exe", binary, 0o755)
	}
	if err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// configuration writes a configuration file into a directory that no other user
// can change.
func configuration(t *testing.T, text string, mode os.FileMode) (path string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "conf")
	for _, err := range []error{os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755), os.WriteFile(path, []byte(text), mode)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// runPlanner makes a Planner run playConfig with args, and returns the results
// of Plan.
func runPlanner(t *testing.T, isReload bool, args ...string) (*ipc.PackedPlan, int, error) {
	t.Helper()
	p, err := newPlanner(binary, args, []string{"SCHED_JWT=planted", "HOME=/planted", "SLURM_CONF=x"}, os.Stdout, os.Stderr, ipc.ConfigSetup{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.setup.Reload = isReload
	return p.Plan()
}

// TestPlanner checks that the program has no privileges, and that it gets only
// the environment variables that concern it. The program must also be able to
// read a file that only the parent's user can open.
func TestPlanner(t *testing.T) {
	path := configuration(t, "what root reads", 0o600)
	plan, status, err := runPlanner(t, false, "honest", path)
	if err != nil || plan == nil {
		t.Fatalf("exit status %d, %v", status, err)
	}
	var report []string
	for _, l := range plan.Listen {
		report = append(report, l.Text)
	}
	want := []string{"CapPrm: 0000000000000000", "CapEff: 0000000000000000", "NoNewPrivs: 1", "SCHED_JWT=planted", "SLURM_CONF=x", "what root reads"}
	if !slices.Equal(report[:len(report)-1], want) {
		t.Errorf("it has %q, want %q", report, want)
	}
	if os.Geteuid() == 0 && (report[len(report)-1] != "[] 2 true" || plan.Service.UID < 60_000) {
		t.Errorf("as root: uid %d, groups, variables and root %s", plan.Service.UID, report[len(report)-1])
	}
}

// TestPlannerIsHostile checks that a compromised program gets only a limited
// number of files, and none after its Plan. A Plan that breaks the rules must
// be rejected.
func TestPlannerIsHostile(t *testing.T) {
	path := configuration(t, "", 0o644)
	for _, tt := range []struct {
		part, want string
		root       bool
	}{
		{"unjudged", "before its files were checked", true},
		{"judged too early", "before its files were checked", true},
		{"asks after the plan", "not permitted while planned", false},
		{"asks for ever", "more than 10000", false},
		{"out of order", "out of order", false},
	} {
		t.Run(tt.part, func(t *testing.T) {
			if tt.root && os.Geteuid() != 0 {
				t.Skip("needs root, for which files must be judged")
			}
			plan, _, err := runPlanner(t, false, tt.part, path)
			if plan != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("plan %+v, %v; want %q", plan, err, tt.want)
			}
		})
	}
	if plan, status, err := runPlanner(t, false, "leaves"); plan != nil || status != 7 || err != nil {
		t.Errorf("one that has printed all: %v, exit status %d, %v", plan, status, err)
	}
	if plan, _, err := runPlanner(t, true, "leaves"); plan != nil || err == nil {
		t.Errorf("at a reload: %v, %v", plan, err)
	}
	if plan, _, err := runPlanner(t, true, "says why not"); plan != nil || err == nil || err.Error() != "no" {
		t.Errorf("at a reload that says why not: %v, %v", plan, err)
	}
}

// TestPlannerHangs checks that a program that sends no Plan at a reload is killed.
func TestPlannerHangs(t *testing.T) {
	defer func(limit time.Duration) { replanLimit = limit }(replanLimit)
	replanLimit = 100 * time.Millisecond
	if plan, _, err := runPlanner(t, true, "hangs"); plan != nil || err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v, %v", plan, err)
	}
}

// Close ends the spawner's thread and closes the program file. Only tests call
// Close. The parent keeps its Planner until it exits.
func (p *Planner) Close() {
	p.spawner.Stop()
	p.program.Close()
}

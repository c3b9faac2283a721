// Package harness starts the real programs for the tests in integration/: a
// site with all daemons ([NewLab]), further gateways ([Lab.StartGateway]),
// gateways with proxies in front of them ([NewProxyLab]), and gateways whose
// connections to the daemons are counted ([Lab.StartCounted]). It sends
// requests and checks answers ([Lab.Request], [Answer.Want]), and waits for
// events ([Eventually]).
//
// Each folder of integration/ is a package of tests about one subject. A test
// that starts its own site shares nothing with other tests, not even ports, and
// calls t.Parallel unless it measures time. Only Chromium serves several tests,
// each with a profile of its own ([StartBrowser]). Tests that run as root also
// act as other users. If this machine lacks something that a test needs, the
// test is skipped and the reason is printed. The daemons are stopped when the
// test ends. If the test fails, the last lines of their logs are printed.
package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"schedrestd/bundled/demo/site"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ordinaryUsers are users that most distributions have.
var ordinaryUsers = []string{"games", "daemon", "bin", "mail"}

// TwoUsers returns two ordinary users of this machine.
func TwoUsers(t *testing.T) (alice, bob Account) {
	t.Helper()
	NeedRoot(t)
	var found []Account
	for _, name := range ordinaryUsers {
		if u, ok := LookupAccount(name); ok && u.GID != 0 {
			found = append(found, u)
		}
	}
	if len(found) < 2 {
		t.Skip("this machine has no two ordinary users to act as")
	}
	return found[0], found[1]
}

// LookupAccount looks a user up by name.
func LookupAccount(name string) (Account, bool) {
	u, err := user.Lookup(name)
	if err != nil {
		return Account{}, false
	}
	return newAccount(u), true
}

func newAccount(u *user.User) Account {
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return Account{u.Username, uint32(uid), uint32(gid)}
}

// Lab is a site whose daemons run for one test.
type Lab struct {
	*site.Site
	T        *testing.T
	DBD      site.Part
	Ctld     site.Part
	Restd    site.Part
	URL      string // of the gateway
	Daemons  map[string]*site.Daemon
	Work     string // directory in which jobs run; all users may write to it
	OwnToken string // token of this process's user; created by the controller unless the test sets it
}

// NewLab creates a site, adjusts it with the functions in change, and starts
// its daemons and its gateway. They are stopped at the end of the test.
func NewLab(t *testing.T, change ...func(*Lab)) *Lab {
	t.Helper()
	l := NewDaemons(t, change...)
	l.Up(l.Restd)
	return l
}

// twoWorkers is an option that gives the gateway two workers, even on a machine
// with few processors.
const twoWorkers = "-t4"

// NewDaemons does the same as NewLab, but does not start the gateway. It is for
// tests that start only gateways of their own.
func NewDaemons(t *testing.T, change ...func(*Lab)) *Lab {
	t.Helper()
	l := PrepareLab(t)
	port, err := site.FreePorts(1)
	Must(t, err)
	l.Restd = l.Schedrestd(Bin, fmt.Sprintf("127.0.0.1:%d", port[0]))
	l.Restd.Args = slices.Insert(l.Restd.Args, len(l.Restd.Args)-1, twoWorkers)
	// All clients of a test have the same address, and many tests send requests
	// that would be penalized. So only the tests of admission enable penalties.
	l.Restd.Env = append(l.Restd.Env, "SCHEDRESTD_PENALTIES=off")
	l.URL = l.Restd.Address
	for _, f := range change {
		f(l)
	}
	Must(t, l.Configure())
	l.Up(l.DBD)
	l.Up(l.Ctld)
	if l.OwnToken == "" {
		l.OwnToken = l.UserToken("")
	}
	return l
}

// PrepareLab creates a site without a configuration, and starts nothing. The
// daemons that the test starts are stopped when the test ends.
func PrepareLab(t *testing.T) *Lab {
	t.Helper()
	dir, err := sockettest.MkdirTemp("lab-")
	Must(t, err)
	l := &Lab{T: t, Daemons: map[string]*site.Daemon{}, Work: filepath.Join(dir, "work")}
	t.Cleanup(func() {
		l.Down()
		// If a job is still running, its step writes into the directory, so
		// removing the directory may need several attempts.
		Eventually(t, "the directory can be removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	Must(t, os.Chmod(dir, 0o711))
	l.Site, err = site.New(dir)
	Must(t, err)
	Must(t, os.Mkdir(l.Work, 0o700))
	Must(t, os.Chmod(l.Work, 0o777|os.ModeSticky))
	l.DBD, l.Ctld = l.Scheddbd(Bin), l.Schedctld(Bin)
	return l
}

// Up starts a daemon and waits until it answers.
func (l *Lab) Up(p site.Part) {
	l.T.Helper()
	d, err := site.Start(p)
	Must(l.T, err)
	l.Daemons[p.Name] = d
	if err := d.WaitReady(l.T.Context()); err != nil {
		l.T.Fatalf("%v\n%s", err, strings.Join(d.LastLines(20), "\n"))
	}
}

// Down stops all daemons, clients before servers. If the test has failed, Down
// also prints the last lines of their logs.
func (l *Lab) Down() {
	if l.T.Failed() && l.Daemons["schedctld"] != nil {
		l.cancelAll() // otherwise jobs that a failed test has left would outlive their controller
	}
	for _, name := range []string{"schedrestd", "schedctld", "scheddbd"} {
		d := l.Daemons[name]
		if d == nil {
			continue
		}
		d.Stop()
		if l.T.Failed() {
			l.T.Logf("%s logged:\n%s", name, strings.Join(d.LastLines(12), "\n"))
		}
	}
}

// cancelAll cancels all jobs, if the controller is running.
func (l *Lab) cancelAll() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // l.T.Context() has ended
	defer cancel()
	controller := client.New(client.Config{Controllers: []client.Address{{Name: l.Node, Network: "unix", Address: l.Socket()}}})
	var ids []string
	_, err := controller.Jobs(ctx, model.Credential{}, model.Query{Flags: model.ShowAll}, func(j *model.Job) error {
		ids = append(ids, fmt.Sprint(j.StepID.JobID))
		return nil
	})
	for _, id := range ids {
		err = errors.Join(err, controller.Kill(ctx, model.Credential{}, id, uint16(syscall.SIGKILL), 0))
	}
	l.T.Logf("cancelled jobs %v: %v", ids, err)
}

// UserToken returns a token for user, or for this process's user when user is
// "".
func (l *Lab) UserToken(user string) string {
	l.T.Helper()
	ctx, cancel := context.WithTimeout(l.T.Context(), time.Minute)
	defer cancel()
	token, err := l.Token(ctx, user, time.Hour)
	Must(l.T, err)
	return token
}

// Account is a user of this machine. A test that runs as root can act as an
// Account.
type Account struct {
	Name     string
	UID, GID uint32
}

// OrdinaryUser returns an ordinary user if this process runs as root, and
// otherwise this process's user.
func OrdinaryUser(t *testing.T) Account {
	t.Helper()
	if uid := os.Geteuid(); uid != 0 {
		if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
			return newAccount(u)
		}
		t.Skip("this process's user has no name")
	}
	return OtherUser(t)
}

// OtherUser returns an ordinary user other than this process's user. Only root
// can start processes as this user.
func OtherUser(t *testing.T) Account {
	t.Helper()
	for _, name := range ordinaryUsers {
		if u, ok := LookupAccount(name); ok && u.UID != uint32(os.Geteuid()) {
			return u
		}
	}
	t.Skip("this machine has no ordinary user to act as")
	return Account{}
}

// NeedRoot skips the test unless this process is root.
func NeedRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to act as other users")
	}
}

// Must fails the test when err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Suspend stops a process and waits until all its threads have stopped, because
// kill(2) returns earlier.
func Suspend(t *testing.T, pid int) {
	t.Helper()
	Must(t, syscall.Kill(pid, syscall.SIGSTOP))
	Eventually(t, "all threads have stopped", func() bool {
		dir := fmt.Sprintf("/proc/%d/task", pid)
		threads, _ := os.ReadDir(dir)
		return len(threads) > 0 && !slices.ContainsFunc(threads, func(thread os.DirEntry) bool {
			stat, err := os.ReadFile(filepath.Join(dir, thread.Name(), "stat"))
			return err == nil && !strings.Contains(string(stat), ") T ")
		})
	})
}

// Eventually waits until condition returns true. The test fails if that takes
// more than two minutes.
func Eventually(t *testing.T, event string, condition func() bool) {
	t.Helper()
	eventually(t, event, nil, condition)
}

// Eventually does the same as the function Eventually, and fails at once if the lab's
// gateway exits.
func (l *Lab) Eventually(t *testing.T, event string, condition func() bool) {
	t.Helper()
	eventually(t, event, l.Daemons["schedrestd"].Done(), condition)
}

func eventually(t *testing.T, event string, exited <-chan struct{}, condition func() bool) {
	t.Helper()
	const shortest, longest = 20 * time.Millisecond, 100 * time.Millisecond
	pause, last := shortest, false
	for start := time.Now(); !condition(); {
		if last {
			t.Fatalf("the gateway exited before this: %s", event)
		}
		if time.Since(start) > 2*time.Minute {
			t.Fatalf("did not happen: %s", event)
		}
		select {
		case <-exited:
			last = true // the condition may be about the end of the log
		case <-time.After(pause):
		}
		pause = min(pause+shortest/10, longest) // because checking costs processor time
	}
}

// Package harness is what the tests of integration/ have in common: a site with the real programs on it ([NewLab]),
// gateways of a test's own beside the site's ([Lab.Gate]), requests and what is said of their answers ([Lab.Ask],
// [Answer.Want]), proxies before the gateway ([NewFronts]), daemons that can be counted and interrupted
// ([Lab.Tolled]), and waiting for what is bound to happen ([Eventually]).
//
// Each folder of integration/ is a package of tests about one subject. A test that starts its own site calls t.Parallel: all
// it uses, ports included, is its own. As root the tests do more (other users' identities); what this machine can't
// show is skipped with the reason. A test's site ends with the test, and its daemons' last lines are shown when it failed.
package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"schedrestd/demo/site"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TwoUsers are two ordinary ones of this machine.
func TwoUsers(t *testing.T) (alice, bob Account) {
	t.Helper()
	NeedRoot(t)
	var found []Account
	for _, name := range []string{"games", "daemon", "bin", "mail"} {
		if u, ok := AccountOf(name); ok && u.GID != 0 {
			found = append(found, u)
		}
	}
	if len(found) < 2 {
		t.Skip("this machine has no two ordinary users to act as")
	}
	return found[0], found[1]
}

func AccountOf(name string) (Account, bool) {
	u, err := user.Lookup(name)
	if err != nil {
		return Account{}, false
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return Account{u.Username, uint32(uid), uint32(gid)}, true
}

// Lab is a site with its daemons running, for one test.
type Lab struct {
	*site.Site
	T        *testing.T
	DBD      site.Part
	Ctld     site.Part
	Restd    site.Part
	URL      string // of the gateway
	Daemons  map[string]*site.Daemon
	Work     string // where jobs run; anybody may write there
	OwnToken string // of this process's user; made by the controller unless the test brings one
}

// NewLab makes a site, lets change adjust it, and starts its daemons. They end with the test.
func NewLab(t *testing.T, change ...func(*Lab)) *Lab {
	t.Helper()
	dir, err := os.MkdirTemp("", "lab-") // not t.TempDir: a socket's path is short
	Must(t, err)
	l := &Lab{T: t, Daemons: map[string]*site.Daemon{}, Work: filepath.Join(dir, "work")}
	t.Cleanup(func() {
		l.Down()
		// The step of a job that has not ended still writes there, until its directory is gone.
		Eventually(t, "the directory can be removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	Must(t, os.Chmod(dir, 0o711))
	l.Site, err = site.New(dir)
	Must(t, err)
	Must(t, os.Mkdir(l.Work, 0o700))
	Must(t, os.Chmod(l.Work, 0o777|os.ModeSticky))
	port, err := site.FreePorts(1)
	Must(t, err)
	listen := fmt.Sprintf("127.0.0.1:%d", port[0])
	l.DBD, l.Ctld, l.Restd = l.Scheddbd(Bin), l.Schedctld(Bin), l.Schedrestd(Bin, listen)
	// Every client of a test has one address, and many tests send what is refused: those of admission alone have this on.
	l.Restd.Env = append(l.Restd.Env, "SCHEDRESTD_PENALTIES=off")
	l.URL = l.Restd.At
	for _, f := range change {
		f(l)
	}
	Must(t, l.Configure())
	l.Up(l.DBD)
	l.Up(l.Ctld)
	l.Up(l.Restd)
	if l.OwnToken == "" {
		l.OwnToken = l.UserToken("")
	}
	return l
}

// Up starts a daemon and waits until it answers.
func (l *Lab) Up(p site.Part) {
	l.T.Helper()
	d, err := site.Start(p)
	Must(l.T, err)
	l.Daemons[p.Name] = d
	if err := d.Await(l.T.Context()); err != nil {
		l.T.Fatalf("%v\n%s", err, strings.Join(d.LastLines(20), "\n"))
	}
}

// Down ends all daemons, those who ask before those who are asked, and shows their
// logs when the test has failed.
func (l *Lab) Down() {
	l.cancelAll()
	for _, name := range []string{"schedrestd", "schedctld", "scheddbd"} {
		d := l.Daemons[name]
		if d == nil {
			continue
		}
		d.Stop()
		if l.T.Failed() {
			l.T.Logf("%s said:\n%s", name, strings.Join(d.LastLines(12), "\n"))
		}
	}
}

// cancelAll ends jobs that a failed test left: they would outlive their controller.
func (l *Lab) cancelAll() {
	if !l.T.Failed() || l.Daemons["schedrestd"] == nil {
		return
	}
	for id := 1; id < 10; id++ {
		exec.Command(filepath.Join(Bin, "schedctl"), "-f", l.Conf(), "cancel", strconv.Itoa(id)).Run()
	}
}

// UserToken is a token of user, "" being this process's.
func (l *Lab) UserToken(user string) string {
	l.T.Helper()
	ctx, cancel := context.WithTimeout(l.T.Context(), 10*time.Second)
	defer cancel()
	token, err := l.Token(ctx, user, time.Hour)
	Must(l.T, err)
	return token
}

// Account is a user of this machine that a test of root's can act as.
type Account struct {
	Name     string
	UID, GID uint32
}

// SomeUser is an ordinary user when this process is root, else this process's user.
func SomeUser(t *testing.T) Account {
	t.Helper()
	names := []string{"games", "daemon", "bin", "mail"}
	if os.Geteuid() != 0 {
		names = []string{strconv.Itoa(os.Geteuid())}
	}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			u, err = user.LookupId(name)
		}
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		return Account{u.Username, uint32(uid), uint32(gid)}
	}
	t.Skip("this machine has no ordinary user to act as")
	return Account{}
}

// NeedRoot skips a test that acts as several users.
func NeedRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to act as other users")
	}
}

func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Eventually waits for something that is bound to happen. How long it takes is not judged; the
// limit only ends a test that has failed.
func Eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !happened(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

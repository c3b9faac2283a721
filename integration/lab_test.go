package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/demo/site"
)

// lab is a site with its daemons running, for one test.
type lab struct {
	*site.Site
	t         *testing.T
	dbd       site.Part
	ctld      site.Part
	restd     site.Part
	url       string // of the gateway
	daemons   map[string]*site.Daemon
	work      string // where jobs run; anybody may write there
	userToken string // of this process's user; made by the controller unless the test brings one
}

// newLab makes a site, lets change adjust it, and starts its daemons. They end with the test.
func newLab(t *testing.T, change ...func(*lab)) *lab {
	t.Helper()
	dir, err := os.MkdirTemp("", "lab-") // not t.TempDir: a socket's path is short
	must(t, err)
	l := &lab{t: t, daemons: map[string]*site.Daemon{}, work: filepath.Join(dir, "work")}
	t.Cleanup(func() {
		l.down()
		// The step of a job that has not ended still writes there, until its directory is gone.
		eventually(t, "the directory can be removed", func() bool { return os.RemoveAll(dir) == nil })
	})
	must(t, os.Chmod(dir, 0o711))
	l.Site, err = site.New(dir)
	must(t, err)
	must(t, os.Mkdir(l.work, 0o700))
	must(t, os.Chmod(l.work, 0o777|os.ModeSticky))
	port, err := site.FreePorts(1)
	must(t, err)
	listen := fmt.Sprintf("127.0.0.1:%d", port[0])
	l.dbd, l.ctld, l.restd = l.Scheddbd(bin), l.Schedctld(bin), l.Schedrestd(bin, listen)
	// Every client of a test has one address, and many tests send what is refused: those of admission alone have this on.
	l.restd.Env = append(l.restd.Env, "SCHEDRESTD_PENALTIES=off")
	l.url = l.restd.At
	for _, f := range change {
		f(l)
	}
	must(t, l.Configure())
	l.up(l.dbd)
	l.up(l.ctld)
	l.up(l.restd)
	if l.userToken == "" {
		l.userToken = l.token("")
	}
	return l
}

// up starts a daemon and waits until it answers.
func (l *lab) up(p site.Part) {
	l.t.Helper()
	d, err := site.Start(p)
	must(l.t, err)
	l.daemons[p.Name] = d
	if err := d.Await(l.t.Context()); err != nil {
		l.t.Fatalf("%v\n%s", err, strings.Join(d.LastLines(20), "\n"))
	}
}

// down ends all daemons, those who ask before those who are asked, and shows their
// logs when the test has failed.
func (l *lab) down() {
	l.cancelAll()
	for _, name := range []string{"schedrestd", "schedctld", "scheddbd"} {
		d := l.daemons[name]
		if d == nil {
			continue
		}
		d.Stop()
		if l.t.Failed() {
			l.t.Logf("%s said:\n%s", name, strings.Join(d.LastLines(12), "\n"))
		}
	}
}

// cancelAll ends jobs that a failed test left: they would outlive their controller.
func (l *lab) cancelAll() {
	if !l.t.Failed() || l.daemons["schedrestd"] == nil {
		return
	}
	for id := 1; id < 10; id++ {
		exec.Command(filepath.Join(bin, "schedctl"), "-f", l.Conf(), "cancel", strconv.Itoa(id)).Run()
	}
}

// token is a token of user, "" being this process's.
func (l *lab) token(user string) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 10*time.Second)
	defer cancel()
	token, err := l.Token(ctx, user, time.Hour)
	must(l.t, err)
	return token
}

// account is a user of this machine that a test of root's can act as.
type account struct {
	name     string
	uid, gid uint32
}

// someUser is an ordinary user when this process is root, else this process's user.
func someUser(t *testing.T) account {
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
		return account{u.Username, uint32(uid), uint32(gid)}
	}
	t.Skip("this machine has no ordinary user to act as")
	return account{}
}

// needRoot skips a test that acts as several users.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to act as other users")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for something that is bound to happen. How long it takes is not judged; the
// limit only ends a test that has failed.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !happened(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not happen: %s", what)
		}
	}
}

package privsep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/bundled/demo/thread"
	"schedrestd/ipc"
)

// TestAbandonedWorker checks that the parent ends the worker of a user who has
// disconnected, even if the dispatcher never does.
func TestAbandonedWorker(t *testing.T) {
	t.Parallel()
	g, socket := serveBecomeUser(t, testConfig{Absence: time.Second})
	open, _, body := askAs(t, socket, 31001, 31101, "/pid")
	stays := pidOf(t, body)
	c, _, body := askAs(t, socket, 31002, 31101, "/pid")
	goes := pidOf(t, body)
	c.Close()
	g.awaitReason("worker terminated", "its user has no connection")
	g.await("worker exited unexpectedly", func(r map[string]any) bool { return r["pid"] == float64(goes) })
	if _, body, err := ask(open, "/pid"); err != nil || pidOf(t, body) != stays {
		t.Errorf("the one with a connection: %s %v", body, err)
	}
}

// TestDispatcherMisbehaves checks that the parent ends a compromised dispatcher
// that answers its Pings, but serves no clients or does not stop.
func TestDispatcherMisbehaves(t *testing.T) {
	t.Run("reads no connections", func(t *testing.T) {
		t.Parallel()
		g := launch(t, plainUser(t), testConfig{Silence: hangLimit, Argv: argv{ipc.Dispatcher: {"compromised", readsNoConnections}}})
		g.awaitReason("dispatcher exited", "has not read its channel for 5s")
	})
	for _, part := range []string{startsForAbsentUser, readsForAbsentUser} {
		t.Run(part, func(t *testing.T) {
			needRoot(t)
			t.Parallel()
			socket := sharedDir(t) + "/s"
			c := testConfig{Listen: listens("unix:" + socket), Argv: argv{ipc.Dispatcher: {"compromised", part}}}
			c.Switches.BecomeUser, c.Switches.Output, c.Setup.Local = true, true, true
			g := launch(t, nil, c)
			said := func(what string) {
				g.await("not a record", func(r map[string]any) bool { return strings.Contains(fmt.Sprint(r["raw"]), what) })
			}
			said(compromisedServes)
			client, err := thread.DialAs(31001, 31101, socket)
			must(t, err)
			said(`"got a worker" number=1`)
			client.Close()
			said(`"got no worker" number=2`)
		})
	}
	t.Run(sendsNothing, func(t *testing.T) {
		t.Parallel()
		g := launch(t, plainUser(t), testConfig{StartLimit: hangLimit, Argv: argv{ipc.Dispatcher: {"compromised", sendsNothing}}})
		if text, _ := g.failure(); !strings.Contains(text, "the dispatcher exited: was not ready within 5s") {
			t.Errorf("%q", text)
		}
	})
	t.Run("does not stop", func(t *testing.T) {
		t.Parallel()
		g := launch(t, plainUser(t), testConfig{Stop: time.Second, Argv: argv{ipc.Dispatcher: {"compromised", doesNotStop}}})
		g.await("not a record", func(r map[string]any) bool { return strings.Contains(fmt.Sprint(r["raw"]), compromisedServes) })
		must(t, g.cmd.Process.Signal(unix.SIGTERM))
		if text, _ := g.failure(); !strings.Contains(text, "did not exit within 1s after a signal to stop") {
			t.Errorf("%q", text)
		}
	})
}

package credential

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// A fakeEncoder issues credentials that consist of its name and the payload.
type fakeEncoder string

func (f fakeEncoder) Encode(_ context.Context, payload []byte, uid uint32) (string, error) {
	if payload[0] == 0 {
		return "", errs.New(errs.Unavailable, "munged is gone").WithHint("start it")
	}
	if uid != 64030 {
		return "", errors.New("for another user")
	}
	return string(f) + string(payload), nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// connect returns an issuer, and the keeper's end of a channel to it.
func connect(t *testing.T, exit func()) (*issuer, *ipc.Channel) {
	t.Helper()
	i := newIssuer(exit, time.Hour)
	keeper, fd, err := ipc.Pair(ipc.Keeper, ipc.Credential)
	must(t, err)
	t.Cleanup(func() { keeper.Close() })
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	must(t, err)
	unix.Close(fd)
	handled, err := i.Handle(ipc.Received{Message: new(ipc.KeeperChannel), FDs: []int{own}})
	must(t, err)
	if !handled {
		t.Fatal("the channel is not handled")
	}
	return i, keeper
}

// TestAnswers checks the answers to the keeper, some of which come before the settings,
// and that the process ends with the keeper.
func TestAnswers(t *testing.T) {
	exited := make(chan struct{})
	i, keeper := connect(t, func() { close(exited) })
	ask := func(id uint64, accounting bool, first byte) {
		t.Helper()
		q := &query.GetCredential{ID: id, Accounting: accounting}
		q.Payload[0] = first
		must(t, keeper.Send(q))
	}
	ask(1, false, 'x')
	if handled, err := i.Handle(ipc.Received{Message: new(ipc.Ping)}); handled || err != nil {
		t.Errorf("another message: %t, %v", handled, err)
	}
	i.encoders, i.uid = [2]encoder{fakeEncoder("controller "), fakeEncoder("accounting ")}, 64030
	close(i.ready)
	i.configure(work.Credentials{}) // a second time
	ask(2, true, 'y')
	ask(3, false, 0)
	want := map[uint64]string{1: "controller x", 2: "accounting y", 3: "munged is gone; start it"}
	for range want {
		m, err := keeper.Receive()
		must(t, err)
		a := m.Message.(*query.GotCredential)
		got := strings.TrimRight(string(a.Credential), "\x00") + a.Reason
		if got != want[a.ID] {
			t.Errorf("%d: %q, want %q", a.ID, got, want[a.ID])
		}
	}
	if issued, refused := i.issued.Load(), i.refused.Load(); issued != 2 || refused != 1 {
		t.Errorf("counted %d and %d", issued, refused)
	}
	// A captured dispatcher must not be able to ask.
	if handled, err := i.Handle(ipc.Received{Message: new(ipc.KeeperChannel), FDs: []int{-1}}); !handled || err != errSecondChannel {
		t.Errorf("a second channel: %t, %v", handled, err)
	}
	keeper.Close()
	<-exited
}

// TestIssuers checks who issues credentials.
func TestIssuers(t *testing.T) {
	for name, tt := range map[string]struct {
		settings work.Credentials
		same     bool
	}{
		"munged":                {work.Credentials{Munge: work.Munge{Socket: "/m"}}, false},
		"a munged for each":     {work.Credentials{Munge: work.Munge{Socket: "/m", Accounting: "/a"}}, false},
		"sockets of auth/slurm": {work.Credentials{Sack: []string{"/s"}}, true},
	} {
		i := newIssuer(func() {}, time.Hour)
		i.configure(tt.settings)
		if i.encoders[0] == nil || i.encoders[1] == nil || (i.encoders[0] == i.encoders[1]) != tt.same {
			t.Errorf("%s: %+v", name, i.encoders)
		}
		if _, err := i.encoders[0].Encode(t.Context(), []byte("x"), 1); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("%s: without a socket: %v", name, err)
		}
	}
}

// TestRest checks that the process exits after a rest.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exited := time.Time{}
		begun := time.Now()
		newIssuer(func() { exited = time.Now() }, restTime)
		time.Sleep(2 * restTime)
		synctest.Wait()
		if exited.Sub(begun) != restTime {
			t.Errorf("exited after %v", exited.Sub(begun))
		}
	})
}

package dbd

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/auth"
	"schedrestd/become/nss"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
)

// A site is a configured daemon, and the key that signs tokens for the daemon.
type site struct {
	*conf.Dbd
	key     auth.Key
	clients map[string]*client.Accounting // by network ("unix", "tcp")
}

func newSite(t testing.TB) *site {
	t.Helper()
	dir := sockettest.Dir(t)
	secret := make([]byte, 32)
	rand.Read(secret)
	if err := os.WriteFile(filepath.Join(dir, "key"), secret, 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := auth.LoadKey(filepath.Join(dir, "key"), guard.Trust{})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{key: key, clients: map[string]*client.Accounting{}, Dbd: &conf.Dbd{Path: "dbd.conf", Address: "127.0.0.1", Port: port(t),
		User: strconv.Itoa(os.Geteuid()), StorageLoc: filepath.Join(dir, "jobs.sqlite"),
		Auth: conf.Auth{AuthType: "auth/cred", AuthSocket: filepath.Join(dir, "s"), JWT: true, JWTKey: filepath.Join(dir, "key")}}}
	for network, addr := range map[string]string{"tcp": fmt.Sprintf("127.0.0.1:%d", s.Port), "unix": s.AuthSocket} {
		s.clients[network] = client.NewAccounting(client.Config{Cluster: "c1",
			Accounting: []client.Address{{Name: "dbd", Network: network, Address: addr}}})
	}
	return s
}

func port(t testing.TB) int {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port
}

// run runs the daemon until the returned function is called.
func (s *site) run(t testing.TB) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, s.Dbd, slog.New(slog.DiscardHandler)) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	for {
		nc, err := net.Dial("unix", s.AuthSocket) // the daemon opens this socket last
		if err == nil {
			nc.Close()
			return stop
		}
		select {
		case err := <-done:
			t.Fatalf("Run: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *site) token(t testing.TB, user string) model.Credential {
	t.Helper()
	token, err := auth.Create(s.key, user, time.Minute, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return model.Credential{Token: token}
}

// twoUsers returns the user that this process runs as, and another user.
func twoUsers(t testing.TB) (self, other nss.User) {
	t.Helper()
	self, err := nss.LookupUID(uint32(os.Geteuid()))
	if err != nil {
		t.Skip("the user of this process has no name")
	}
	for _, name := range []string{"bin", "daemon", "mail"} {
		if other, err = nss.LookupUser(name); err == nil && other.UID != self.UID {
			return self, other
		}
	}
	t.Skip("no other user on this machine")
	return
}

func TestDaemon(t *testing.T) {
	s := newSite(t)
	s.run(t)
	self, other := twoUsers(t)
	selfCred, otherCred := s.token(t, self.Name), s.token(t, other.Name)
	ctx := context.Background()
	tcpClient, unixClient := s.clients["tcp"], s.clients["unix"]
	batch := []model.Job{job(1, 100, model.JobRunning)}

	if err := tcpClient.RecordJobs(ctx, selfCred, batch); err != nil {
		t.Errorf("record with a token: %v", err)
	}
	if err := unixClient.RecordJobs(ctx, model.Credential{}, batch); err != nil {
		t.Errorf("record over the UNIX socket: %v", err)
	}
	if err := tcpClient.RecordJobs(ctx, otherCred, batch); errs.KindOf(err) != errs.Denied {
		t.Errorf("record as an ordinary user: %v", err)
	}
	if err := tcpClient.RecordJobs(ctx, model.Credential{Token: otherCred.Token, ActAs: self.Name}, batch); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("record as another user: %v", err)
	}
	if err := tcpClient.RecordJobs(ctx, model.Credential{Token: selfCred.Token, ActAs: other.Name}, batch); errs.KindOf(err) != errs.Denied {
		t.Errorf("record on behalf of an ordinary user: %v", err)
	}
	if err := tcpClient.Verify(ctx, model.Credential{Token: selfCred.Token + "x"}); errs.KindOf(err) != errs.Unauthenticated {
		t.Errorf("forged: %v", err)
	}

	count := func(id, n uint32) model.CallCount { return model.CallCount{ID: id, Count: n} }
	rpcs := []model.CallCount{count(30003, 4)}
	for _, tt := range []struct {
		name  string
		cred  model.Credential
		rpcs  []model.CallCount
		users []model.CallCount
	}{
		{name: "ordinary user", cred: otherCred, rpcs: rpcs, users: []model.CallCount{count(other.UID, 2)}},
		{name: "scheduler's user", cred: selfCred, rpcs: []model.CallCount{count(1489, 1), count(30003, 4)},
			users: []model.CallCount{count(self.UID, 2), count(other.UID, 3)}},
	} {
		got, _, err := tcpClient.Stats(ctx, tt.cred)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		want := &model.AccountingStats{Rollup: model.Rollup{Periods: make([]model.RollupPeriod, 3)}, Rollups: []model.Rollup{},
			RPCs: tt.rpcs, Users: tt.users}
		byID := cmpopts.SortSlices(func(a, b model.CallCount) bool { return a.ID < b.ID })
		varying := cmp.Options{cmpopts.IgnoreFields(model.CallCount{}, "Time"), cmpopts.IgnoreFields(model.AccountingStats{}, "TimeStart")}
		if diff := cmp.Diff(want, got, byID, varying); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if got.TimeStart <= 0 || got.TimeStart > model.At(time.Now()) {
			t.Errorf("%s: counts since %d", tt.name, got.TimeStart)
		}
	}
}

func TestRestart(t *testing.T) {
	s := newSite(t)
	ctx := context.Background()
	for i, batch := range [][]model.Job{
		{job(1, 100, model.JobRunning)},
		{job(1, 100, model.JobRunning), job(2, 100, model.JobPending)},
		{job(1, 100, model.JobComplete)},
	} {
		stop := s.run(t)
		for range 2 { // sends the batch twice, as if the first acknowledgement had been lost
			if err := s.clients["unix"].RecordJobs(ctx, model.Credential{}, batch); err != nil {
				t.Fatalf("run %d: %v", i, err)
			}
		}
		stop()
		if err := s.clients["unix"].RecordJobs(ctx, model.Credential{}, batch); errs.KindOf(err) != errs.Unavailable {
			t.Errorf("while it is down: %v", err)
		}
		if _, err := os.Lstat(s.AuthSocket); err == nil {
			t.Error("the socket is left behind")
		}
	}
	if diff := cmp.Diff([]model.Job{job(1, 100, model.JobComplete), job(2, 100, model.JobPending)}, jobs(t, open(t, s.StorageLoc))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRunRefuses(t *testing.T) {
	tests := []struct {
		name string
		make func(t *testing.T, s *site)
		kind errs.Kind
	}{
		{name: "munge", make: func(t *testing.T, s *site) { s.AuthType = "auth/munge" }, kind: errs.Unsupported},
		{name: "tokens without a key", make: func(t *testing.T, s *site) { s.JWTKey = "" }, kind: errs.Invalid},
		{name: "key that is not there", make: func(t *testing.T, s *site) { s.JWTKey += "x" }, kind: errs.NotFound},
		{name: "key that others may read", make: func(t *testing.T, s *site) { os.Chmod(s.JWTKey, 0o644) }, kind: errs.Invalid},
		{name: "user that is not there", make: func(t *testing.T, s *site) { s.User = "no-such-user-here" }, kind: errs.NotFound},
		{name: "port in use", make: func(t *testing.T, s *site) {
			ln, err := net.Listen("tcp", net.JoinHostPort(s.Address, strconv.Itoa(s.Port)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { ln.Close() })
		}, kind: errs.Conflict},
		{name: "socket that is something else", make: func(t *testing.T, s *site) { os.WriteFile(s.AuthSocket, nil, 0o600) }, kind: errs.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			tt.make(t, s)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			if err := Serve(ctx, s.Dbd, slog.New(slog.DiscardHandler)); errs.KindOf(err) != tt.kind || err == nil {
				t.Errorf("got %v %v, want %v", errs.KindOf(err), err, tt.kind)
			}
		})
	}
}

func BenchmarkRecordJobs(b *testing.B) {
	s := newSite(b)
	s.run(b)
	batch := make([]model.Job, 100)
	for i := range batch {
		batch[i] = job(uint32(i+1), 100, model.JobRunning)
	}
	for b.Loop() {
		if err := s.clients["unix"].RecordJobs(context.Background(), model.Credential{}, batch); err != nil {
			b.Fatal(err)
		}
	}
}

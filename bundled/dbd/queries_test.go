package dbd

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"schedrestd/bundled/daemon"
	"schedrestd/internal/errs"
	"schedrestd/internal/limit"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// serveTokens starts a server for d. The token of each client is its uid. The
// result connect returns a new client of the server.
func serveTokens(t *testing.T, d *Daemon) (connect func() *client.Accounting) {
	t.Helper()
	s := &server.Server{Persistent: d.Handlers(), Greeting: message.PagesOffered, SpoolDir: t.TempDir(), Log: quiet, Super: d.privacy.Super,
		Verify: func(token, _ string) (server.Identity, error) {
			uid, err := strconv.ParseUint(token, 10, 32)
			return server.Identity{UID: uint32(uid), Name: token}, err
		}}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Shutdown(ctx)
	})
	return func() *client.Accounting {
		return client.NewAccounting(client.Config{Cluster: "c1", Timeout: time.Hour,
			Accounting: []client.Address{{Name: "dbd", Network: "tcp", Address: ln.Addr().String()}}})
	}
}

func onlyRoot(uid uint32) bool { return uid == 0 }

// onlySelf reports whether uid is that of the user who runs the tests. A daemon
// that uses onlySelf gives full rights only to this user.
func onlySelf(uid uint32) bool { return int(uid) == os.Getuid() }

// TestSlowQueries runs queries that would take minutes. It checks that they do
// not delay other users, and that they end when their clients disconnect.
func TestSlowQueries(t *testing.T) {
	store := open(t, storeFile(t))
	store.queryTimeout = time.Hour
	slow := make([]model.Job, 5000)
	for i := range slow {
		slow[i] = job(uint32(i+1), 1, model.JobComplete)
		slow[i].UserID, slow[i].Nodes = 1000, "n[1-200000]"
	}
	otherJob := job(5001, 1, model.JobComplete)
	otherJob.UserID = 1001
	if err := store.Record(context.Background(), "c1", append(slow, otherJob)); err != nil {
		t.Fatal(err)
	}
	d := New(store, daemon.Privacy{Super: onlyRoot}, quiet)
	connect := serveTokens(t, d)
	ctx, disconnect := context.WithCancel(context.Background())
	ended := make(chan error)
	clients := limit.DaemonQueries.Total
	for range clients {
		go func() {
			filter := model.AccountingJobFilter{UsedNodes: "none"}
			ignore := func(*model.AccountingJob) error { return nil }
			ended <- client.Records(ctx, connect(), model.Credential{Token: "1000"}, filter, ignore)
		}()
	}
	waitFor := func(what string, cond func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !cond(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				n, waiting := d.queries.Counts()
				t.Fatalf("%s: still %d queries, %d waiting", what, n, waiting)
			}
		}
	}
	waitFor("all have asked", func() bool { n, waiting := d.queries.Counts(); return n+waiting == clients })
	perUser, _ := d.queries.Counts()
	if perUser > limit.DaemonQueries.Share {
		t.Errorf("%d queries of one user run at a time", perUser)
	}
	found := 0
	if err := client.Records(context.Background(), connect(), model.Credential{Token: "1001"}, model.AccountingJobFilter{},
		func(*model.AccountingJob) error { found++; return nil }); err != nil || found != 1 {
		t.Errorf("another user: %d jobs, %v", found, err)
	}
	if n, _ := d.queries.Counts(); n != perUser {
		t.Errorf("%d slow queries are left: too fast for this test", n)
	}
	disconnect()
	for range clients {
		if err := <-ended; err == nil {
			t.Error("a slow query was answered")
		}
	}
	waitFor("their clients have gone", func() bool { n, waiting := d.queries.Counts(); return n == 0 && waiting == 0 })
}

// TestSlowQueryIsRefused checks that a query has a time limit.
func TestSlowQueryIsRefused(t *testing.T) {
	store := open(t, storeFile(t))
	store.queryTimeout = time.Nanosecond
	f := &model.AccountingJobFilter{}
	err := store.Jobs(context.Background(), f, model.Opt[uint32]{},
		func(int, func() (string, *model.Job, error)) error { return errors.New("found") })
	if errs.KindOf(err) != errs.Timeout || errs.HintOf(err) == "" {
		t.Errorf("got %v", err)
	}
}

// TestPrivateJobs checks that ordinary users see only their own jobs,
// regardless of the filters in their requests. The same rule applies in the
// controller.
func TestPrivateJobs(t *testing.T) {
	store := open(t, storeFile(t))
	ownJob, otherJob := job(1, 1, model.JobRunning), job(2, 1, model.JobRunning)
	otherJob.UserID, otherJob.SubmitLine, otherJob.Extra, otherJob.Comment = 1001, "run --password=secret", "secret", "secret"
	if err := store.Record(context.Background(), "c1", []model.Job{ownJob, otherJob}); err != nil {
		t.Fatal(err)
	}
	connect := serveTokens(t, New(store, daemon.Privacy{Super: onlyRoot}, quiet))
	for name, f := range map[string]model.AccountingJobFilter{
		"all":          {},
		"that user":    {UserIDs: []string{"1001"}},
		"both users":   {UserIDs: []string{"1000", "1001"}},
		"that job":     {Steps: []model.SelectedStep{{Step: model.StepID{JobID: 2}}}},
		"that state":   {States: []string{"1"}},
		"this machine": {Clusters: []string{"c1"}, Flags: model.JobFilterDuplicates},
	} {
		for uid, want := range map[string][]uint32{"0": nil, "1000": {1}, "1001": {2}, "1002": nil} {
			var got []uint32
			err := client.Records(context.Background(), connect(), model.Credential{Token: uid}, f, func(j *model.AccountingJob) error {
				got = append(got, j.JobID)
				return nil
			})
			var all []storedJob
			for _, j := range []model.Job{ownJob, otherJob} {
				all = append(all, storedJob{"c1", j})
			}
			selected := expectedJobs(&f, model.Opt[uint32]{}, all)
			if uid != "0" {
				selected = slices.DeleteFunc(selected, func(j storedJob) bool { return !slices.Contains(want, j.StepID.JobID) })
			}
			var ids []uint32
			for _, j := range selected {
				ids = append(ids, j.StepID.JobID)
			}
			if err != nil || !slices.Equal(got, ids) {
				t.Errorf("%s, asked by uid %s: %v, %v; want %v", name, uid, got, err, ids)
			}
			if got = followPages(t, connect(), model.Credential{Token: uid}, f); !slices.Equal(got, ids) {
				t.Errorf("%s, pages, asked by uid %s: %v; want %v", name, uid, got, ids)
			}
		}
	}
}

// followPages returns the numbers of the jobs on the pages of one job.
func followPages(t *testing.T, conn *client.Accounting, cred model.Credential, f model.AccountingJobFilter) (ids []uint32) {
	t.Helper()
	for p := (model.AccountingJobPage{AccountingJobFilter: f, Limit: 1}); ; {
		n := 0
		err := client.Records(t.Context(), conn, cred, p, func(j *model.AccountingJob) error {
			ids, p.After = append(ids, j.JobID), j.Key()
			n++
			return nil
		})
		if err != nil || n > 1 || len(ids) > 100 {
			t.Fatalf("%+v: %d jobs, %v", p, n, err)
		}
		if n == 0 {
			return ids
		}
	}
}

package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/auth"
	"schedrestd/become/nss"
	"schedrestd/bundled/dbd"
	"schedrestd/internal/guard"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// The benchmarks send requests to a real daemon. The environment variable
// SCHEDDBD_BENCH_JOBS sets the number of jobs that a benchmark records in the
// daemon's database. If SCHEDDBD_BENCH_DB names a database, for example one
// from an older release, the daemon gets a copy of that database instead.

// A cluster consists of a daemon with recorded jobs and two ordinary users.
type cluster struct {
	*started
	key     auth.Key
	address string
	users   [2]nss.User
}

// startCluster records n jobs and starts the daemon. Each job has a submit line
// of the given length. Every thousandth job belongs to the second user, and all
// other jobs belong to the first.
func startCluster(b *testing.B, n, text int) *cluster {
	b.Helper()
	c := &cluster{}
	for i, name := range []string{"bin", "daemon"} {
		user, err := nss.LookupUser(name)
		if err != nil {
			b.Skip(err)
		}
		c.users[i] = user
	}
	dir := sockettest.Dir(b)
	secret := make([]byte, 32)
	rand.Read(secret)
	keyFile := filepath.Join(dir, "key")
	if err := os.WriteFile(keyFile, secret, 0o600); err != nil {
		b.Fatal(err)
	}
	var err error
	if c.key, err = auth.LoadKey(keyFile, guard.Trust{}); err != nil {
		b.Fatal(err)
	}
	record(b, filepath.Join(dir, "jobs.sqlite"), n, text, c.users)
	path := writeConfig(b, dir, "SchedUser="+strconv.Itoa(os.Geteuid()), "AuthAltTypes=auth/jwt", "AuthAltParameters=jwt_key="+keyFile)
	c.started = start(b, path, filepath.Join(dir, "s"))
	conf, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(conf), "DbdPort=")
	port, _, _ := strings.Cut(rest, "\n")
	c.address = net.JoinHostPort("127.0.0.1", port)
	b.Logf("first answer after %v", elapsed(func() {
		for client.Records[model.AccountingJob](context.Background(), c.client(), c.token(b, 0), model.AccountingJobFilter{Names: []string{"none"}}, nil) != nil {
			time.Sleep(10 * time.Millisecond) // the daemon converts the database
		}
	}))
	return c
}

func elapsed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// record fills a database with n jobs. The job names repeat every thousand
// jobs.
func record(b *testing.B, path string, n, text int, users [2]nss.User) {
	b.Helper()
	if existing := os.Getenv("SCHEDDBD_BENCH_DB"); existing != "" { // it may be in an older format
		if err := copyFile(path, existing); err != nil {
			b.Fatal(err)
		}
		return
	}
	store, err := dbd.OpenStore(context.Background(), path, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	line := strings.Repeat("x", text)
	batch := make([]model.Job, 0, 1000)
	for i := range n {
		id := uint32(i + 1)
		user := users[0]
		if i%1000 == 999 {
			user = users[1]
		}
		submitted := model.Time(1_700_000_000 + i)
		batch = append(batch, model.Job{StepID: model.StepID{JobID: id}, SubmitTime: submitted, StartTime: submitted + 1, EndTime: submitted + 60,
			State: model.JobComplete, Name: fmt.Sprint("job", i%1000), Account: "lab", Partition: "main", UserID: user.UID, GroupID: user.GID,
			Nodes: "n1", NumNodes: 1, NumCPUs: 1, TimeLimit: model.Some[uint32](10), SubmitLine: line, Detailed: true})
		if len(batch) == cap(batch) || i == n-1 {
			if err := store.Record(context.Background(), "c1", batch); err != nil {
				b.Fatal(err)
			}
			batch = batch[:0]
		}
	}
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (c *cluster) token(b *testing.B, i int) model.Credential {
	b.Helper()
	token, err := auth.Create(c.key, c.users[i].Name, time.Hour, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	return model.Credential{Token: token}
}

// client returns a client that keeps its connections open.
func (c *cluster) client() *client.Accounting {
	return client.NewAccounting(client.Config{Cluster: "c1", Accounting: []client.Address{{Name: "dbd", Network: "tcp", Address: c.address}}})
}

// peak returns the daemon's peak resident memory so far, in MB.
func (c *cluster) peak(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kilobytes / 1024
}

func benchJobs(b *testing.B, fallback int) int {
	b.Helper()
	text := os.Getenv("SCHEDDBD_BENCH_JOBS")
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// reportLatencies reports the distribution of durations, in milliseconds.
func reportLatencies(b *testing.B, durations []time.Duration) {
	slices.Sort(durations)
	for part, q := range map[string]float64{"p50": 0.5, "p99": 0.99, "max": 1} {
		at := min(len(durations)-1, int(q*float64(len(durations))))
		b.ReportMetric(float64(durations[at].Microseconds())/1000, part+"-ms")
	}
}

// BenchmarkFind searches many jobs with filters that select a few jobs or none.
// Each kind of filter has its own sub-benchmark.
func BenchmarkFind(b *testing.B) {
	n := benchJobs(b, 20_000)
	c := startCluster(b, n, 200)
	last := uint32(n / 1000 * 1000) // it belongs to the second user
	step := func(id uint32) []model.SelectedStep { return []model.SelectedStep{{Step: model.StepID{JobID: id}}} }
	for _, tt := range []struct {
		name   string
		filter model.AccountingJobFilter
		want   int
	}{
		{"id", model.AccountingJobFilter{Steps: step(last)}, 1},
		{"id of a cluster", model.AccountingJobFilter{Clusters: []string{"c1"}, Steps: step(last)}, 1},
		{"time", model.AccountingJobFilter{UsageStart: model.Time(1_700_000_000 + n - 1)}, -1},
		{"user and name", model.AccountingJobFilter{UserIDs: []string{fmt.Sprint(c.users[1].UID)}, Names: []string{"job998"}}, 0},
		{"name and time", model.AccountingJobFilter{Names: []string{"job999"}, UsageStart: model.Time(1_700_000_000 + n - 1)}, -1},
		{"no such account", model.AccountingJobFilter{Accounts: []string{"none"}}, 0},
	} {
		b.Run(tt.name, func(b *testing.B) {
			tt.filter.Flags = model.JobFilterDuplicates
			accounting, cred := c.client(), c.token(b, 1)
			var durations []time.Duration
			for b.Loop() {
				found := 0
				durations = append(durations, elapsed(func() {
					if err := client.Records(context.Background(), accounting, cred, tt.filter, func(*model.AccountingJob) error { found++; return nil }); err != nil {
						b.Fatal(err)
					}
				}))
				if tt.want >= 0 && found != tt.want {
					b.Fatalf("%d jobs, want %d", found, tt.want)
				}
			}
			reportLatencies(b, durations)
			b.ReportMetric(c.peak(b), "peak-MB")
		})
	}
}

// BenchmarkPage reads pages of 100 jobs, as the daemon's own user, and at last the longest list that
// the daemon sends without pages.
func BenchmarkPage(b *testing.B) {
	n := benchJobs(b, 500_000)
	c := startCluster(b, n, 200)
	all := model.AccountingJobFilter{Flags: model.JobFilterDuplicates}
	user, recent, first := all, all, all
	user.UserIDs = []string{fmt.Sprint(c.users[1].UID)}
	recent.UsageStart = model.Time(1_700_000_000 + n - 20_000)
	first.UsageEnd = 1_700_000_000 + 50_000 - 1
	after := func(id int) model.AccountingJobKey {
		return model.AccountingJobKey{JobID: uint32(id), Cluster: "c1", Run: 1<<64 - 1}
	}
	for _, tt := range []struct {
		name string
		page model.AccountingJobPage // of the whole list if the limit is 0
		want int
	}{
		{"first", model.AccountingJobPage{AccountingJobFilter: all, Limit: 101}, 101},
		{"middle", model.AccountingJobPage{AccountingJobFilter: all, After: after(n / 2), Limit: 101}, 101},
		{"last", model.AccountingJobPage{AccountingJobFilter: all, After: after(n - 100), Limit: 101}, 100},
		{"latest of each number", model.AccountingJobPage{After: after(n / 2), Limit: 101}, 101},
		{"a thousandth of the jobs", model.AccountingJobPage{AccountingJobFilter: user, Limit: 101}, 101},
		{"the last 20000", model.AccountingJobPage{AccountingJobFilter: recent, Limit: 101}, 101},
		{"list of 50000", model.AccountingJobPage{AccountingJobFilter: first}, 50_000},
	} {
		b.Run(tt.name, func(b *testing.B) {
			accounting := client.NewAccounting(client.Config{Cluster: "c1", Accounting: []client.Address{{Name: "dbd", Network: "unix", Address: c.socket}}})
			var durations []time.Duration
			for b.Loop() {
				found := 0
				each := func(*model.AccountingJob) error { found++; return nil }
				durations = append(durations, elapsed(func() {
					list := model.List(tt.page, each)
					if tt.page.Limit == 0 {
						list = model.List(tt.page.AccountingJobFilter, each)
					}
					if err := accounting.List(context.Background(), model.Credential{}, list); err != nil {
						b.Fatal(err)
					}
				}))
				if found != tt.want {
					b.Fatalf("%d jobs, want %d", found, tt.want)
				}
			}
			reportLatencies(b, durations)
			b.ReportMetric(c.peak(b), "peak-MB")
		})
	}
}

// BenchmarkUnreadLists measures how long it takes to look up one job, first
// without other requests. Then it repeats the measurement while another user
// requests long lists on 60 connections and does not read the answers.
func BenchmarkUnreadLists(b *testing.B) {
	c := startCluster(b, benchJobs(b, 45_000), 2000)
	b.Run("before", c.benchLookup)
	ctx, cancel := context.WithCancel(context.Background())
	var attackers sync.WaitGroup
	for range 60 {
		attackers.Go(func() {
			for ctx.Err() == nil {
				c.requestUnread(ctx, b)
			}
		})
	}
	defer func() { cancel(); attackers.Wait() }()
	time.Sleep(5 * time.Second) // until their queries run
	b.Run("during", c.benchLookup)
}

func (c *cluster) benchLookup(b *testing.B) {
	accounting, cred := c.client(), c.token(b, 1)
	filter := model.AccountingJobFilter{Steps: []model.SelectedStep{{Step: model.StepID{JobID: 1000}}}}
	var durations []time.Duration
	failed := 0
	for b.Loop() {
		durations = append(durations, elapsed(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := client.Records(ctx, accounting, cred, filter, func(*model.AccountingJob) error { return nil }); err != nil {
				failed++
				b.Log(err)
			}
		}))
		time.Sleep(20 * time.Millisecond)
	}
	reportLatencies(b, durations)
	b.ReportMetric(float64(failed), "failed")
	b.ReportMetric(c.peak(b), "peak-MB")
}

// requestUnread requests all jobs but reads only the beginning of the answer.
// It then keeps the connection open until ctx is done. If the daemon refuses
// the request, requestUnread sends the request again. If the daemon closes the
// connection before it answers, requestUnread returns.
func (c *cluster) requestUnread(ctx context.Context, b *testing.B) {
	nc, err := net.Dial("tcp", c.address)
	if err != nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { nc.Close() })
	defer stop()
	defer nc.Close()
	nc.(*net.TCPConn).SetReadBuffer(4096)
	credential := &message.Credential{Plugin: message.PluginJWT, Token: c.token(b, 0).Token}
	opening, err := message.EncodeOpening(codec.Newest, message.FixedCredential(credential),
		&message.PersistInit{Version: codec.Newest, ClusterName: "c1", PersistType: message.PersistToAccounting})
	if err != nil {
		b.Error(err)
		return
	}
	request, err := message.EncodePersistent(codec.Newest, message.AccountingGetJobs,
		&message.GetAccountingJobs{AccountingJobFilter: model.AccountingJobFilter{Flags: model.JobFilterDuplicates}})
	if err != nil {
		b.Error(err)
		return
	}
	in := bufio.NewReaderSize(nc, 16)
	for next := opening; ; next = request {
		if _, err := nc.Write(next); err != nil {
			return
		}
		head, err := in.Peek(6)
		if err != nil {
			return
		}
		if message.Type(binary.BigEndian.Uint16(head[4:])) != message.AccountingRC {
			<-ctx.Done()
			return
		}
		io.CopyN(io.Discard, in, int64(binary.BigEndian.Uint32(head))+4)
	}
}

package worker

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/gateway/worker/keys"
	"schedrestd/internal/setting"
	"schedrestd/ipc"
	"schedrestd/ipc/work"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

// manyJobs returns the job list of a cluster with 5000 nodes: 20 000 jobs, three
// quarters of which run on four nodes each.
func manyJobs(b testing.TB) []byte {
	list := &message.JobInfo{LastUpdate: 1_700_000_000, LastBackfill: changing}
	for i := range uint32(20_000) {
		list.Jobs.List = append(list.Jobs.List, newJob(i, 5000, i%4 != 0))
	}
	answer, err := message.Encode(codec.Newest, 0, message.ResponseJobInfo, nil, list)
	must(b, err)
	return answer
}

// newJob returns a job of a cluster with the given number of nodes. If the job
// runs, it has four nodes.
func newJob(i, clusterNodes uint32, runs bool) model.Job {
	j := model.Job{
		StepID: model.StepID{JobID: 1_000_000 + i}, Account: "physics", AllocNode: "login1", AllocSID: 4711, BatchFlag: 1, BatchHost: "n0123",
		UserID: 1000, GroupID: 1000, UserName: "ann", State: 1, Name: fmt.Sprintf("simulation-%d", i), Partition: "batch", QOS: "normal", Cluster: "linux",
		Command: "/home/ann/project/run.sh", WorkDir: "/home/ann/project", Nodes: "n[0123-0126]", Priority: 4_294_901_000, TimeLimit: model.Some[uint32](1440),
		SubmitTime: 1_700_000_000, EligibleTime: 1_700_000_000, StartTime: 1_700_000_100, EndTime: 1_700_086_500, AccrueTime: 1_700_000_000,
		TRESReq: "cpu=16,mem=64G,node=4,billing=16", TRESAlloc: "cpu=16,mem=64G,node=4,billing=16", NumCPUs: 16, NumNodes: 4, NumTasks: 16,
		StdErr: "/home/ann/project/%j.err", StdIn: "/dev/null", StdOut: "/home/ann/project/%j.out", SubmitLine: "sbatch -N 4 run.sh", Detailed: true,
		Nice: 1 << 31, Requeue: 1, CPUsPerTask: model.Some[uint16](1), MinCPUsPerNode: 1, MinMemory: 16384,
	}
	users := [...]string{"ann", "ben", "eva"}
	if j.UserID += i % 2000 / 10; j.UserID != 1000 { // 200 users have jobs
		j.UserName = users[i%3] + strconv.Itoa(int(j.UserID))
	}
	if !runs {
		j.State, j.Nodes, j.BatchHost, j.Dependency = 0, "", "", "afterok:999999(unfulfilled)"
		return j
	}
	nodes := model.Bitmap{Len: clusterNodes, Set: true, Bits: make([]byte, (clusterNodes+7)/8)}
	nodes.Bits[i%600] = 0xf
	cores := model.Bitmap{Len: 64, Set: true, Bits: []byte{0xf, 0, 0xf, 0, 0xf, 0, 0xf, 0}}
	j.NodeIndexes = nodes
	j.Resources = model.JobResources{Hosts: model.Some[uint32](4), NCPUs: 16, NodeReq: 1, Nodes: j.Nodes, CRType: 0x14, ThreadsPerCore: 1,
		CPUArrayReps: []uint32{4}, CPUArrayValue: []uint16{4}, CPUs: []uint16{4, 4, 4, 4}, CPUsUsed: make([]uint16, 4),
		MemoryAllocated: []uint64{16384, 16384, 16384, 16384}, MemoryUsed: make([]uint64, 4),
		SocketsPerNode: []uint16{2}, CoresPerSocket: []uint16{8}, SockCoreRepCount: []uint32{4}, CoreBitmap: cores, CoreBitmapUsed: model.Bitmap{Len: 64, Set: true, Bits: make([]byte, 8)}, NodeBitmap: nodes}
	return j
}

// changing is the time of the last backfill in the list of manyJobs.
const changing = 0x1122334455667788

// listingController returns a controller that always sends the same answer. If
// changes is not nil and true, each answer has another time of the last backfill,
// so that the records must be rendered again.
func listingController(b testing.TB, answer []byte, changes *atomic.Bool) work.Address {
	at := bytes.Index(answer, binary.BigEndian.AppendUint64(nil, changing))
	var sent atomic.Uint64
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	pong, err := message.Encode(codec.Newest, 0, message.ResponseRC, nil, &message.RC{})
	must(b, err)
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			wait.Go(func() {
				defer nc.Close()
				request, err := wire.Read(nc, 1<<20)
				if err != nil {
					return
				}
				if f, _ := message.ParseFrame(request); f.Header.Type == message.RequestPing {
					nc.Write(pong)
					return
				}
				if changes != nil && changes.Load() {
					nc.Write(answer[:at])
					nc.Write(binary.BigEndian.AppendUint64(nil, sent.Add(1)))
					nc.Write(answer[at+8:])
					return
				}
				nc.Write(answer)
			})
		}
	})
	b.Cleanup(func() { ln.Close(); wait.Wait() })
	return work.Address{Name: "ctl", Network: "tcp", Address: ln.Addr().String()}
}

// A recorder is an http.ResponseWriter that counts the bytes of an answer, and
// records when the first byte arrived.
type recorder struct {
	header http.Header
	first  time.Time
	bytes  int
}

func (e *recorder) Header() http.Header { return e.header }
func (e *recorder) WriteHeader(int)     {}
func (e *recorder) Write(b []byte) (int, error) {
	if e.bytes == 0 {
		e.first = time.Now()
	}
	e.bytes += len(b)
	return len(b), nil
}

// BenchmarkList measures lists of 20 000 jobs, from the controller's connection
// to the output of the HTTP handler. It measures single lists and eight
// concurrent lists. Some of the lists are compressed, and some have their
// length announced, as for HTTP/1.0.
func BenchmarkList(b *testing.B) {
	log := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler))
	defer slog.SetDefault(log)
	answer := manyJobs(b)
	var changes atomic.Bool
	h, token := listHandler(b, listingController(b, answer, &changes)), tokenOf("ann")
	list := func(query string, minor int, coding, tag string) *recorder {
		r, err := http.NewRequest(http.MethodGet, "/sched/v0.0.43/jobs"+query, nil)
		must(b, err)
		r.Header.Set("X-SCHED-USER-TOKEN", token)
		r.Header.Set("Accept-Encoding", coding)
		r.Header.Set("If-None-Match", tag)
		r.ProtoMinor = minor
		e := &recorder{header: http.Header{}}
		h.ServeHTTP(e, r)
		return e
	}
	for _, bb := range []struct {
		name            string
		together, minor int
		coding, query   string
		same, tagged    bool // the list does not change; the client sends its tag
	}{
		{name: "1", together: 1, minor: 1},
		{name: "8", together: 8, minor: 1},
		{name: "1 gzip", together: 1, minor: 1, coding: "gzip"},
		{name: "1 zstd", together: 1, minor: 1, coding: "zstd"},
		{name: "1 sized", together: 1},
		{name: "8 sized", together: 8},
		{name: "1 gzip sized", together: 1, coding: "gzip"},
		{name: "1 with six fields", together: 1, minor: 1, query: "?fields=" + sixFields},
		{name: "1 with a state", together: 1, minor: 1, query: "?state=PENDING"},
		{name: "1 with a state and six fields", together: 1, minor: 1, query: "?state=PENDING&fields=" + sixFields},
		{name: "1 page of 100", together: 1, minor: 1, query: "?limit=100"},
		{name: "100 with six fields", together: 100, minor: 1, query: "?fields=" + sixFields},
		{name: "100 zstd", together: 100, minor: 1, coding: "zstd"},
		{name: "100 zstd, unchanged", together: 100, minor: 1, coding: "zstd", same: true},
		{name: "100 zstd, unchanged, with the tag", together: 100, minor: 1, coding: "zstd", same: true, tagged: true},
	} {
		b.Run(bb.name, func(b *testing.B) {
			together := bb.together
			changes.Store(!bb.same)
			tag := ""
			if first := list(bb.query, bb.minor, bb.coding, ""); bb.tagged {
				tag = first.header.Get("ETag")
			}
			peak := watchMemory(b)
			b.SetBytes(int64(together * len(answer)))
			b.ReportAllocs()
			var first time.Duration
			var sent atomic.Int64
			used := processorTime(b)
			for b.Loop() {
				var wait sync.WaitGroup
				begun := time.Now()
				for i := range together {
					wait.Go(func() {
						e := list(bb.query, bb.minor, bb.coding, tag)
						sent.Add(int64(e.bytes))
						if i == 0 {
							first = max(first, e.first.Sub(begun))
						}
					})
				}
				wait.Wait()
			}
			b.ReportMetric(float64((processorTime(b)-used).Microseconds())/1000/float64(b.N), "CPU-ms/op")
			b.ReportMetric(float64(peak())/(1<<20), "peak-MB")
			b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
			b.ReportMetric(float64(sent.Load())/1e6/b.Elapsed().Seconds(), "JSON-MB/s")
			b.ReportMetric(float64(sent.Load())/1e6/float64(b.N*together), "JSON-MB")
		})
	}
}

const sixFields = "job_id,job_state,name,user_name,partition,time_limit.number"

// listHandler returns the handler of a worker with this controller.
func listHandler(b testing.TB, controller work.Address) http.Handler {
	setup := work.Setup{Setup: ipc.Setup{JWT: true},
		Controllers: []work.Address{controller}, Names: work.NamesSched, Parsers: []work.Parser{{Version: 43}},
		Content: work.ContentController, REST: setting.REST{MaxWait: time.Minute, WatchInterval: time.Second}, Limits: work.Limits{Call: time.Minute, Accounting: time.Minute, Connect: time.Minute, Stall: time.Minute, Body: 1 << 20, Answers: 256 << 20},
	}
	h, err := NewHandler(setup, keys.New(), nil)
	must(b, err)
	return h
}

// tokenOf returns a token that the controllers of the benchmarks accept.
func tokenOf(user string) string {
	word := base64.RawURLEncoding.EncodeToString
	return word([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + word(fmt.Appendf(nil, `{"exp":%d,"iat":1700000000,"sun":%q}`, time.Now().Add(time.Hour).Unix(), user)) + "." + word(make([]byte, 32))
}

// BenchmarkClientRead measures how long it takes to read the list of
// BenchmarkList without rendering it: all of it, and without the parts that some
// answers do not need.
func BenchmarkClientRead(b *testing.B) {
	a := listingController(b, manyJobs(b), nil)
	c := client.New(client.Config{Controllers: []client.Address{{Name: a.Name, Network: a.Network, Address: a.Address}}})
	for _, bb := range []struct {
		name    string
		without model.JobParts
	}{{"all", 0}, {"as for metrics", model.JobAllocation}, {"as for lists", model.JobNodeIndexes}, {"as for lists without job_resources", model.JobAllocation | model.JobNodeIndexes}} {
		b.Run(bb.name, func(b *testing.B) {
			read := func() {
				_, err := c.Jobs(b.Context(), model.Credential{Token: "t"}, model.Query{Without: bb.without}, func(*model.Job) error { return nil })
				must(b, err)
			}
			read()
			used := processorTime(b)
			for b.Loop() {
				read()
			}
			b.ReportMetric(float64((processorTime(b)-used).Microseconds())/1000/float64(b.N), "CPU-ms/op")
		})
	}
}

// processorTime returns the processor time that this process has used.
func processorTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	must(b, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// watchMemory starts measuring the memory of this process. The returned
// function returns the peak growth of the resident set, in bytes.
func watchMemory(b *testing.B) (peak func() int) {
	debug.FreeOSMemory()
	must(b, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) // resets the peak
	before := resident(b, "VmRSS:")
	return func() int { return resident(b, "VmHWM:") - before }
}

func resident(b *testing.B, name string) int {
	text, err := os.ReadFile("/proc/self/status")
	must(b, err)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == name {
			kb, err := strconv.Atoi(f[1])
			must(b, err)
			return kb << 10
		}
	}
	b.Fatal(name)
	return 0
}

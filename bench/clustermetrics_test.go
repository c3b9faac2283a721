package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/bundled/demo/site"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
	"schedrestd/rpc/wire"
)

var clusterScrapes = &comparison{title: "GET /metrics/cluster, 5000 nodes", columns: []string{"median", "peak memory of a worker"}}

func init() { tables = append(tables, clusterScrapes) }

// BenchmarkClusterMetrics measures the duration of a scrape and the memory that
// it needs, for several numbers of jobs. The test controller prepares all
// answers in advance and replies immediately, as slurmctld does.
func BenchmarkClusterMetrics(b *testing.B) {
	l := theLab.open(b)
	sizes := []int{1000, manyJobs, 3 * manyJobs}
	var servers []server
	for _, jobs := range sizes {
		servers = append(servers, l.startForController(b, startListController(b, 5000, jobs), fmt.Sprintf("listing-%d", jobs)))
	}
	durations := make([][]float64, len(sizes))
	for b.Loop() {
		for i, s := range servers {
			start := time.Now()
			text, err := fetch(context.Background(), s.dial, "/metrics/cluster", "X-SCHED-USER-TOKEN", l.token)
			must(b, err)
			durations[i] = append(durations[i], 1000*time.Since(start).Seconds())
			if want := fmt.Sprintf("\nslurm_jobs %d\n", sizes[i]); !bytes.Contains(text, []byte(want)) {
				b.Fatalf("no %q: %.300s", want, text)
			}
		}
	}
	for i, s := range servers {
		clusterScrapes.add(row{name: fmt.Sprintf("%d jobs (ms, MB)", sizes[i]), figures: []float64{medianFloat(durations[i]), s.peak(b)}})
	}
	b.ReportMetric(0, "ns/op")
}

// startForController starts a gateway whose controller listens on port.
func (l *lab) startForController(b *testing.B, port int, name string, args ...string) server {
	b.Helper()
	return l.startWithLines(b, port, name, "", args...)
}

// startWithLines is like startForController, for a gateway with more lines in its
// configuration.
func (l *lab) startWithLines(b *testing.B, port int, name, lines string, args ...string) server {
	b.Helper()
	ports, err := site.FreePorts(1)
	must(b, err)
	text, err := os.ReadFile(l.Conf())
	must(b, err)
	conf := filepath.Join(filepath.Dir(l.Conf()), name+".conf")
	must(b, site.WritePrivate(conf, strings.Replace(string(text), fmt.Sprintf("SchedctldPort=%d\n", l.Controller), fmt.Sprintf("SchedctldPort=%d\n", port), 1)+lines))
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	part := l.Schedrestd(l.bin, address)
	part.Name, part.Log, part.Args[1] = name, l.Log(name), conf
	part.Args = append(args, part.Args...)
	part.Check = func(ctx context.Context) error {
		_, err := site.NewGateway(part.Address, l.token).Ping(ctx)
		return err
	}
	d := l.start(b, part)
	b.Cleanup(func() { _ = d.Stop() })
	return newServer(b, d, tcpDialer(address))
}

// startListController starts a controller that accepts every token and lists
// the given numbers of nodes and jobs. It returns the controller's port.
func startListController(b *testing.B, nodes, jobs int) int {
	b.Helper()
	return startListControllerOver(b, nodes, jobs, func(nc net.Conn) net.Conn { return nc })
}

// startListControllerOver is like startListController. The function wrap makes
// the controller's end of a connection.
func startListControllerOver(b *testing.B, nodes, jobs int, wrap func(net.Conn) net.Conn) int {
	b.Helper()
	encode := func(v codec.Version, kind message.Type, body message.Body) []byte {
		frame, err := message.Encode(v, 0, kind, nil, body)
		must(b, err)
		return frame
	}
	var allNodes []model.Node
	for i := range nodes {
		allNodes = append(allNodes, model.Node{Name: fmt.Sprintf("n%d", i+1), State: model.NodeIdle, CPUs: 64, EffectiveCPUs: 64, Memory: 256_000,
			TRES: "cpu=64,mem=250G,billing=64,gres/gpu=4", GRES: "gpu:a100:4", GRESUsed: "gpu:a100:0(IDX:N/A)"})
	}
	var allJobs []model.Job
	for i := range jobs {
		allJobs = append(allJobs, model.Job{StepID: model.StepID{JobID: uint32(i + 1)}, Partition: "batch", Account: "physics", UserName: "ann",
			Name: fmt.Sprintf("simulation-%d", i), State: model.JobPending, StateReason: 8, WorkDir: "/home/ann/project", Command: "/home/ann/project/run.sh",
			StdOut: "/home/ann/project/%j.out", SubmitLine: "sbatch -N 4 run.sh", TRESReq: "cpu=16,mem=64G,node=4,billing=16", NumCPUs: 16, NumNodes: 4, Detailed: true})
	}
	// A gateway of an earlier release requests an older version.
	answers := map[codec.Version]map[message.Type][]byte{}
	for _, v := range []codec.Version{codec.Newest, codec.Newest - 1} {
		var nodeInfo message.NodeInfo
		var jobInfo message.JobInfo
		nodeInfo.Nodes.List, jobInfo.Jobs.List = allNodes, allJobs
		partitions := &message.PartitionInfo{}
		partitions.Partitions.List = []model.Partition{{Name: "batch", Nodes: fmt.Sprintf("n[1-%d]", nodes), TotalNodes: uint32(nodes), TotalCPUs: uint32(64 * nodes)}}
		answers[v] = map[message.Type][]byte{
			message.RequestPing:          encode(v, message.ResponseRC, &message.RC{}),
			message.RequestStats:         encode(v, message.ResponseStats, &message.ControllerStats{ControllerStats: model.ControllerStats{Parts: true}}),
			message.RequestPartitionInfo: encode(v, message.ResponsePartitionInfo, partitions),
			message.RequestNodeInfo:      encode(v, message.ResponseNodeInfo, &nodeInfo),
			message.RequestJobInfo:       encode(v, message.ResponseJobInfo, &jobInfo),
		}
	}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(b, err)
	var wg sync.WaitGroup
	b.Cleanup(func() { ln.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				nc := wrap(nc)
				defer nc.Close()
				if request, err := wire.Read(nc, 1<<20); err == nil {
					f, _ := message.ParseFrame(request)
					_, _ = nc.Write(answers[f.Header.Version][f.Header.Type])
				}
			})
		}
	})
	return ln.Addr().(*net.TCPAddr).Port
}

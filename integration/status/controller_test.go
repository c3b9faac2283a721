package status

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"schedrestd/integration/harness"
	"schedrestd/model"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
)

// controller plays the controller of a cluster of any size. It accepts every
// token, and counts the requests of each type. It refuses changes unless they are
// permitted; then it answers as if it had made them.
type controller struct {
	port int

	mu         sync.Mutex // guards what follows
	requests   map[message.Type]int
	permits    bool // changes
	changedAt  model.Time
	nodes      []model.Node
	jobs       []model.Job
	partitions []model.Partition
	shares     []model.Share
	encoded    map[message.Type][]byte // answers of the current state
}

func newController(t *testing.T, nodes []model.Node, jobs []model.Job, partitions []model.Partition) *controller {
	t.Helper()
	c := &controller{requests: map[message.Type]int{}, nodes: nodes, jobs: jobs, partitions: partitions}
	c.change(func() {})
	c.port = harness.PlayDaemon(t, func(nc net.Conn, f message.Frame) {
		nc.Write(c.answer(t, f))
		io.Copy(io.Discard, nc)
	})
	return c
}

// change changes the cluster's nodes and jobs.
func (c *controller) change(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	c.changedAt = max(c.changedAt+1, model.Time(time.Now().Unix()))
	c.encoded = map[message.Type][]byte{}
}

// counts returns the numbers of requests so far, by type.
func (c *controller) counts() map[message.Type]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[message.Type]int{}
	for kind, n := range c.requests {
		counts[kind] = n
	}
	return counts
}

func (c *controller) answer(t *testing.T, f message.Frame) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[f.Header.Type]++
	if answer := c.encoded[f.Header.Type]; answer != nil {
		return answer
	}
	kind, body := c.compose(f)
	answer, err := message.Encode(codec.Newest, 0, kind, nil, body)
	if err != nil {
		t.Error(err)
	}
	if f.Header.Type != message.RequestJobInfoSingle && f.Header.Type != message.RequestNodeInfoSingle {
		c.encoded[f.Header.Type] = answer
	}
	return answer
}

func (c *controller) compose(f message.Frame) (message.Type, message.Body) {
	switch f.Header.Type {
	case message.RequestPing:
		return message.ResponseRC, &message.RC{}
	case message.RequestPartitionInfo:
		answer := &message.PartitionInfo{LastUpdate: c.changedAt}
		answer.Partitions.List = c.partitions
		return message.ResponsePartitionInfo, answer
	case message.RequestReservationInfo:
		return message.ResponseReservationInfo, &message.ReservationInfo{LastUpdate: c.changedAt}
	case message.RequestShares:
		answer := &message.Shares{}
		answer.Shares.List = c.shares
		return message.ResponseShares, answer
	case message.RequestNodeInfo, message.RequestNodeInfoSingle:
		answer := &message.NodeInfo{LastUpdate: c.changedAt}
		answer.Nodes.List = c.nodes
		if f.Header.Type == message.RequestNodeInfoSingle {
			var request message.NodeInfoSingleRequest
			answer.Nodes.List = nil
			if message.DecodeBody(f.Header.Version, f.Header.Type, f.Body, &request) == nil {
				for _, n := range c.nodes {
					if n.Name == request.NodeName {
						answer.Nodes.List = append(answer.Nodes.List, n)
					}
				}
			}
			if answer.Nodes.List == nil {
				return message.ResponseRC, &message.RC{Code: fault.InvalidNodeName}
			}
		}
		return message.ResponseNodeInfo, answer
	case message.RequestJobInfo, message.RequestJobInfoSingle:
		answer := &message.JobInfo{LastUpdate: c.changedAt}
		answer.Jobs.List = c.jobs
		if f.Header.Type == message.RequestJobInfoSingle {
			var request message.JobInfoSingleRequest
			answer.Jobs.List = nil
			if message.DecodeBody(f.Header.Version, f.Header.Type, f.Body, &request) == nil {
				for _, j := range c.jobs {
					if j.StepID.JobID == request.JobID.Number || j.ArrayJobID == request.JobID.Number {
						answer.Jobs.List = append(answer.Jobs.List, j)
					}
				}
			}
			if answer.Jobs.List == nil {
				return message.ResponseRC, &message.RC{Code: fault.InvalidJobID}
			}
		}
		return message.ResponseJobInfo, answer
	}
	switch {
	case !c.permits:
		return message.ResponseRC, &message.RC{Code: fault.AccessDenied}
	case f.Header.Type == message.RequestKillJobs:
		return message.ResponseKillJobs, &message.KillJobsResponse{}
	}
	return message.ResponseRC, &message.RC{}
}

// cluster returns nodes, jobs and partitions with all kinds of states.
func cluster(nodes, jobs int) ([]model.Node, []model.Job, []model.Partition) {
	now := model.Time(time.Now().Unix())
	var nodeList []model.Node
	for i := range nodes {
		gpu := i%5 == 0
		n := model.Node{
			Name: fmt.Sprintf("r%02dn%02d", i/40+1, i%40+1), Hostname: "host", Address: "192.0.2.1", State: model.NodeAllocated, Version: "24.11.5", CPUs: 64, EffectiveCPUs: 64, Boards: 1, Sockets: 2, Cores: 16, Threads: 2,
			Memory: 256 << 10, AllocCPUs: 64, AllocMemory: 200 << 10, CPULoad: model.Some(uint32(6000 + i%500)), FreeMem: model.Some(uint64(40<<10 + i)), Architecture: "x86_64", OS: "Linux 6.1",
			Features: "rome,ib", ActiveFeatures: "rome,ib", BootTime: now - 900000, LastBusy: now, TRES: "cpu=64,mem=256G", Weight: 1,
		}
		if gpu {
			n.GRES, n.GRESUsed, n.Features = "gpu:a100:4", "gpu:a100:4(IDX:0-3)", "milan,a100"
		}
		switch h := i * 7919 % 100; {
		case h < 45:
		case h < 66:
			n.AllocCPUs, n.AllocMemory, n.GRESUsed = uint16(h%60+2), uint64(h)<<10, map[bool]string{true: "gpu:a100:1(IDX:0)"}[gpu]
		case h < 86:
			n.State, n.AllocCPUs, n.AllocMemory, n.GRESUsed, n.CPULoad = model.NodeIdle, 0, 0, "", model.Some(uint32(2))
		case h < 90:
			n.State, n.AllocCPUs, n.Reason, n.ReasonTime = model.NodeIdle|model.NodeDrain, 0, "memory errors in DIMM 7", now-7200
		case h < 92:
			n.State, n.Reason, n.ReasonTime = n.State|model.NodeDrain, "firmware update", now-600
		case h < 95:
			n.State, n.AllocCPUs, n.Reason, n.ReasonTime = model.NodeDown|model.NodeNotResponding, 0, "Not responding", now-86400
		case h < 97:
			n.State, n.AllocCPUs = model.NodeIdle|model.NodeReserved, 0
		default:
			n.State, n.AllocCPUs = model.NodeIdle|model.NodePoweredDown, 0
		}
		nodeList = append(nodeList, n)
	}
	users, accounts := []string{"root", "bob", "chen", "dara", "eva", "femi", "gita", "hugo", "ines", "jo", "kim"}, []string{"physics", "biology", "climate", "chemistry"}
	names := []string{"relax-mos2", "train-resnet", "align-reads", "cfd-wing", "md-water-300K", "post", "jupyter"}
	reasons := []uint32{1, 1, 1, 3, 2, 40, 8}
	var jobList []model.Job
	for i := range jobs {
		id := uint32(100_001 + i)
		user := i * 31 % len(users)
		j := model.Job{
			StepID: model.StepID{JobID: id}, UserID: uint32(5000 + user), UserName: users[user], Account: accounts[user%len(accounts)], Name: names[i%len(names)], Partition: []string{"batch", "batch", "gpu", "long"}[i%4], QOS: "normal",
			NumCPUs: uint32(1 << (i % 7)), NumNodes: 1, TimeLimit: model.Some(uint32(60 * (i%24 + 1))), SubmitTime: now - model.Time(3600+i%7200), EligibleTime: now - 3600, WorkDir: "/home/" + users[user] + "/project",
			TRESReq: fmt.Sprintf("cpu=%d,mem=%dG,node=1", 1<<(i%7), 2<<(i%7)), Priority: uint32(10000 + i%500), Nice: model.NiceOffset, Detailed: true, Requeue: 1, BatchFlag: 1, Command: "/home/" + users[user] + "/run.sh",
		}
		switch h := i * 7919 % 100; {
		case h < 55:
			j.State, j.StateReason = model.JobPending, reasons[i%len(reasons)]
			if j.StateReason == 8 {
				j.Priority = 0
			}
		case h < 85:
			j.State, j.StartTime, j.Nodes, j.TRESAlloc = model.JobRunning, now-model.Time(60+i%3000), nodeList[i%nodes].Name, j.TRESReq
			j.EndTime = j.StartTime + model.Time(j.TimeLimit.Number)*60
			if i%4 == 2 {
				j.TRESAlloc += ",gres/gpu=2"
			}
		default:
			j.State, j.StartTime, j.EndTime, j.Nodes = []model.JobState{model.JobComplete, model.JobComplete, model.JobFailed, model.JobCancelled, model.JobTimeout}[h%5], now-1800, now-model.Time(i%600), nodeList[i%nodes].Name
		}
		if i%50 == 7 {
			j.ArrayJobID, j.ArrayTaskID = id-uint32(i%50), model.Some(uint32(i%10))
		}
		jobList = append(jobList, j)
	}
	partition := func(name, hosts string, flags uint32) model.Partition {
		return model.Partition{Name: name, Nodes: hosts, TotalNodes: uint32(nodes), TotalCPUs: uint32(64 * nodes), StateUp: 3, MaxTime: model.Some(uint32(2880)), MaxNodes: model.Opt[uint32]{Infinite: true}, PriorityTier: 1, Flags: flags}
	}
	racks := (nodes + 39) / 40
	return nodeList, jobList, []model.Partition{
		partition("batch", fmt.Sprintf("r[01-%02d]n[01-40]", racks), 1), partition("gpu", fmt.Sprintf("r[01-%02d]n[01,06,11,16,21,26,31,36]", racks), 0), partition("long", "r01n[01-40]", 0),
	}
}

// startFor starts a gateway for c.
func startFor(t *testing.T, c *controller) *harness.CountedGateway {
	t.Helper()
	l := harness.NewDaemons(t)
	l.Controller = c.port
	return l.StartCounted(t)
}

package message

import (
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// messages maps the name of each message to a function that returns a new body.
var messages = map[string]func() Body{
	"Header":               func() Body { return new(Header) },
	"Credential":           func() Body { return new(Credential) },
	"RC":                   func() Body { return new(RC) },
	"RCMessage":            func() Body { return new(RCMessage) },
	"JobArrayErrors":       func() Body { return new(JobArrayErrors) },
	"NodeInfoRequest":      func() Body { return new(NodeInfoRequest) },
	"NodeInfoSingle":       func() Body { return new(NodeInfoSingleRequest) },
	"NodeInfo":             func() Body { return new(NodeInfo) },
	"PartitionInfoRequest": func() Body { return new(PartitionInfoRequest) },
	"PartitionInfo":        func() Body { return new(PartitionInfo) },
	"ConfigFilesRequest":   func() Body { return new(ConfigFilesRequest) },
	"ConfigFiles":          func() Body { return new(ConfigFiles) },
	"JobInfoRequest":       func() Body { return new(JobInfoRequest) },
	"JobInfoSingle":        func() Body { return new(JobInfoSingleRequest) },
	"JobInfo":              func() Body { return new(JobInfo) },
	"SubmitRequest":        func() Body { return new(SubmitRequest) },
	"SubmitResponse":       func() Body { return new(SubmitResponse) },
	"KillJob":              func() Body { return new(KillJob) },
	"ReservationName":      func() Body { return new(ReservationName) },
	"NodeUpdate":           func() Body { return new(NodeUpdate) },
	"JobDescs":             func() Body { return new(JobDescs) },
	"AllocationInfo":       func() Body { return new(AllocationInfoRequest) },
	"CompleteAllocation":   func() Body { return new(CompleteAllocation) },
	"ReservationUpdate":    func() Body { return new(ReservationUpdate) },
	"PartitionUpdate":      func() Body { return new(PartitionUpdate) },
	"PartitionName":        func() Body { return new(PartitionName) },
	"BatchScript":          func() Body { return new(BatchScript) },
	"ResourceLayout":       func() Body { return new(ResourceLayout) },
	"RequeueRequest":       func() Body { return new(RequeueRequest) },
	"TokenRequest":         func() Body { return new(TokenRequest) },
	"TokenResponse":        func() Body { return new(TokenResponse) },
	"PersistInit":          func() Body { return new(PersistInit) },
	"PersistRC":            func() Body { return new(PersistRC) },
	"AccountingStats":      func() Body { return new(AccountingStats) },
	"RecordJobs":           func() Body { return new(RecordJobs) },
	"RecordRuns":           func() Body { return new(RecordRuns) },
	"GetAccountingJobPage": func() Body { return new(GetAccountingJobPage) },
}

var comparable = cmp.Options{
	cmpopts.IgnoreUnexported(codec.Stream[model.Node]{}, codec.Stream[model.Job]{}, codec.Stream[model.Partition]{}),
	cmpopts.EquateEmpty(),
}

// TestRoundTrips fills each message with random values, at each protocol
// version. Encoding and decoding the message must preserve them.
func TestRoundTrips(t *testing.T) {
	for name, make := range messages {
		t.Run(name, func(t *testing.T) {
			for v := codec.Oldest; v <= codec.Newest; v++ {
				for seed := range uint64(15) {
					filled := make()
					filled.Walk(codec.NewFiller(v, rand.New(rand.NewPCG(seed, uint64(v)))))
					out := codec.NewEncoder(v, nil)
					filled.Walk(out)
					if err := out.Finish(); err != nil {
						t.Fatalf("protocol %d, seed %d: encode: %v", v, seed, err)
					}
					back := make()
					in := codec.NewDecoder(v, out.Bytes())
					back.Walk(in)
					if err := in.Finish(); err != nil {
						t.Fatalf("protocol %d, seed %d: decode: %v", v, seed, err)
					}
					if reflect.DeepEqual(filled, back) { // faster than cmp.Diff
						continue
					}
					if diff := cmp.Diff(filled, back, comparable); diff != "" {
						t.Fatalf("protocol %d, seed %d (filled -, decoded +):\n%s", v, seed, diff)
					}
				}
			}
		})
	}
}

// TestEachInsteadOfList checks that a stream passes on the same records that it
// would store in a list.
func TestEachInsteadOfList(t *testing.T) {
	want := &JobInfo{LastUpdate: 7}
	for id := range uint32(5) {
		want.Jobs.List = append(want.Jobs.List, model.Job{StepID: model.StepID{JobID: id}, Name: "job", Detailed: true})
	}
	out := codec.NewEncoder(codec.V2411, nil)
	want.Walk(out)

	var got []model.Job
	streamed := &JobInfo{}
	streamed.Jobs.Each = func(j *model.Job) error { got = append(got, *j); return nil }
	in := codec.NewDecoder(codec.V2411, out.Bytes())
	streamed.Walk(in)
	if err := in.Finish(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Jobs.List, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("list -, each +:\n%s", diff)
	}
	if streamed.Jobs.List != nil || streamed.LastUpdate != 7 {
		t.Errorf("streamed: list %v, last update %d", streamed.Jobs.List, streamed.LastUpdate)
	}
}

// fuzzed lists the names of the messages that FuzzDecode decodes. The corpus of
// FuzzDecode refers to them by index.
var fuzzed = []string{"Header", "Credential", "RCMessage", "JobArrayErrors", "NodeInfo", "PartitionInfo", "JobInfoRequest",
	"JobInfo", "SubmitRequest", "SubmitResponse", "KillJob", "PersistRC", "AccountingStats", "RecordJobs", "RecordRuns", "ConfigFiles"}

// decodeAny decodes data as the message fuzzed[which], and returns how many
// bytes of memory were allocated.
func decodeAny(which, version byte, data []byte) (allocated uint64) {
	v := codec.Oldest + codec.Version(version)%(codec.Newest-codec.Oldest+1)
	body := messages[fuzzed[int(which)%len(fuzzed)]]()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c := codec.NewDecoder(v, data)
	body.Walk(c)
	_ = c.Finish()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// allowance returns how many bytes may be allocated to decode n bytes. A record
// takes more bytes in memory than its shortest form on the wire, but only by a
// constant factor.
func allowance(n int) uint64 { return 1<<16 + 256*uint64(n) }

// FuzzDecode checks that no input causes a panic. It also checks that the
// decoder does not allocate memory for more elements than the input can
// contain.
func FuzzDecode(f *testing.F) {
	for which := range byte(len(fuzzed)) {
		f.Add(which, byte(4), []byte{})
		f.Add(which, byte(7), []byte("\xff\xff\xff\xf0\xff\xff\xff\xf0\xff\xff\xff\xf0\xff\xff\xff\xf0\xff\xff\xff\xf0"))
		f.Add(which, byte(0), []byte("\x00\x00\x00\x02\x00\x00\x00\x02a\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02"))
	}
	for which, name := range fuzzed {
		for _, v := range []codec.Version{codec.V2411, codec.Newest} {
			body := messages[name]()
			body.Walk(codec.NewFiller(v, rand.New(rand.NewPCG(1, 2))))
			c := codec.NewEncoder(v, nil)
			body.Walk(c)
			f.Add(byte(which), byte(v-codec.Oldest), c.Bytes())
		}
	}
	f.Fuzz(func(t *testing.T, which, version byte, data []byte) {
		if got := decodeAny(which, version, data); got > allowance(len(data)) {
			t.Errorf("%d bytes allocated for %d", got, len(data))
		}
	})
}

// FuzzParseFrame parses arbitrary bytes as a header and a credential.
func FuzzParseFrame(f *testing.F) {
	for _, v := range []codec.Version{codec.V2205, codec.V2411, codec.Newest} {
		frame, err := Encode(v, 0, RequestPing, &Credential{Plugin: PluginJWT, Token: "a.b.c", ActAs: "alice"}, Empty{})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(frame[4:])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		frame, err := ParseFrame(data)
		if err == nil && int(frame.Header.BodyLength) != len(frame.Body) {
			t.Errorf("body of %d bytes, header says %d", len(frame.Body), frame.Header.BodyLength)
		}
	})
}

// TestFrameThereAndBack checks that ParseFrame returns the values with which
// Encode was called.
func TestFrameThereAndBack(t *testing.T) {
	credential := &Credential{Plugin: PluginJWT, Token: "a.b.c", ActAs: "alice"}
	for v := codec.Oldest; v <= codec.Newest; v++ {
		b, err := Encode(v, 0, RequestNodeInfoSingle, credential, &NodeInfoSingleRequest{NodeName: "n1", ShowFlags: uint16(model.ShowAll)})
		if err != nil {
			t.Fatal(err)
		}
		frame, err := ParseFrame(b[4:])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*credential, frame.Credential); diff != "" {
			t.Error(diff)
		}
		var body NodeInfoSingleRequest
		if err := frame.Decode(&body); err != nil || body.NodeName != "n1" || frame.Header.Type != RequestNodeInfoSingle || frame.Header.Version != v {
			t.Errorf("protocol %d: %+v, %+v, %v", v, frame.Header, body, err)
		}
	}
}

// TestJobsWithoutParts checks that a decoder that skips parts of jobs finds the
// same values in the other parts, also if the answer arrives in small pieces.
func TestJobsWithoutParts(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	forget := func(jobs []model.Job, parts model.JobParts) []model.Job {
		for i := range jobs {
			j := &jobs[i]
			if parts&model.JobAllocation != 0 {
				j.Resources = model.JobResources{}
			}
			if parts&model.JobNodeIndexes != 0 {
				j.NodeIndexes, j.ReqNodeIndexes, j.ExcNodeIndexes, j.Resources.NodeBitmap = model.Bitmap{}, model.Bitmap{}, model.Bitmap{}, model.Bitmap{}
			}
		}
		return jobs
	}
	for v := codec.Oldest; v <= codec.Newest; v++ {
		for range 15 {
			var filled JobInfo
			filled.Walk(codec.NewFiller(v, rng))
			e := codec.NewEncoder(v, nil)
			filled.Walk(e)
			for _, parts := range []model.JobParts{model.JobAllocation, model.JobNodeIndexes, model.JobAllocation | model.JobNodeIndexes} {
				for _, size := range []int{len(e.Bytes()) + 1, 7} {
					var whole JobInfo
					part := JobInfo{Without: parts}
					for _, m := range []*JobInfo{&whole, &part} {
						rest := e.Bytes()
						next := func() ([]byte, error) {
							piece := rest[:min(size, len(rest))]
							rest = rest[len(piece):]
							return piece, nil
						}
						first, _ := next()
						if err := DecodePieces(v, ResponseJobInfo, first, next, len(rest), m); err != nil {
							t.Fatal(v, parts, err)
						}
					}
					if diff := cmp.Diff(forget(whole.Jobs.List, parts), forget(part.Jobs.List, parts), comparable); diff != "" {
						t.Fatalf("protocol %d without %b (-want +got):\n%s", v, parts, diff)
					}
					for i := range part.Jobs.List {
						j := &part.Jobs.List[i]
						if parts&model.JobAllocation != 0 && (j.Resources.Nodes != "" || j.Resources.CPUs != nil || j.Resources.CoreBitmap.Set) ||
							parts&model.JobNodeIndexes != 0 && (j.NodeIndexes.Set || j.ReqNodeIndexes.Set || j.Resources.NodeBitmap.Set) {
							t.Errorf("protocol %d without %b: %+v", v, parts, j)
						}
					}
				}
			}
		}
	}
}

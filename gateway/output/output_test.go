package output

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"schedrestd/gateway/service"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// TestServe checks the answers to a worker, also to one that does not read them: it
// gets no more of them than may be pending.
func TestServe(t *testing.T) {
	worker, fd, err := ipc.Pair(ipc.Worker, ipc.Output)
	must(t, err)
	defer worker.Close()
	end, err := ipc.Open(fd, ipc.Output, ipc.Worker)
	must(t, err)
	defer end.Close()
	r := newReader(func() {}, time.Hour)
	go r.Serve(service.NewClient(work.WorkerChannel{Number: 1}, end))
	path := write(t, t.TempDir()+"/f")
	must(t, worker.Send(&query.ReadOutput{ID: 1, Path: path, Max: 100}))
	m, err := worker.Receive()
	must(t, err)
	if part, ok := m.Message.(*query.OutputPart); !ok || part.ID != 1 || string(part.Data) != "secret" {
		t.Fatalf("%+v", m.Message)
	}
	for id := uint64(2); ; id++ {
		err := worker.TrySend(&query.ReadOutput{ID: id, Path: path, Max: 100})
		if errors.Is(err, ipc.ErrFull) {
			break
		}
		must(t, err)
		if id%1000 == 0 {
			time.Sleep(time.Millisecond) // the reader takes the questions as long as it can
		}
	}
	if n := r.pending.Load(); n > maxPending {
		t.Errorf("%d questions are pending", n)
	}
}

// TestRest checks that the process exits after a rest, and not while a question is
// pending.
func TestRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var exited atomic.Bool
		r := newReader(func() { exited.Store(true) }, restLimit)
		r.pending.Add(1)
		time.Sleep(3 * restLimit)
		if synctest.Wait(); exited.Load() {
			t.Error("it has exited, and a question is pending")
		}
		r.pending.Add(-1)
		time.Sleep(restLimit)
		if synctest.Wait(); !exited.Load() {
			t.Error("it has not exited")
		}
	})
}

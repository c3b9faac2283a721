package ipc_test

import (
	"bytes"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// seeds adds frames of every kind to the corpus: some with the smallest values,
// some with a value in every field, and some that violate the protocol.
func seeds(f *testing.F) {
	for _, r := range ipc.Table() {
		for _, frame := range [][]byte{frameOf(f, minMessage(r)), frameOf(f, fullMessage(r))} {
			for p := range ipc.AllPhases {
				f.Add(uint8(p), uint8(r.FDs), frame)
			}
		}
	}
	f.Add(uint8(ipc.Serving), uint8(0), []byte{byte(ipc.KindOf(new(work.Dial))), 0, 0, 0, 0, 0, 0, 0, 0, byte(work.UpstreamSack + 1), 0, 0, 0})
	f.Add(uint8(ipc.Serving), uint8(1), []byte{})
	f.Add(uint8(ipc.Configured), uint8(0), []byte{byte(ipc.KindOf(new(ipc.Attributes))), 0xff, 0xff, 1, 0})
}

// fuzzSide tests one end of a channel: the end of a process with the role self.
// The protocol table must permit each packet that this end accepts, and the
// decoded message must encode to the same bytes. A packet that is refused must
// not change the phase.
func fuzzSide(f *testing.F, self, peer ipc.Role) {
	seeds(f)
	f.Fuzz(func(t *testing.T, phase, fds uint8, frame []byte) {
		before := ipc.Phase(phase % uint8(ipc.AllPhases))
		var oob []byte
		if n := int(fds) % ipc.MaxFDs; n > 0 {
			oob = unix.UnixRights(slices.Repeat([]int{1 << 30}, n)...) // this descriptor is not open, so closing it does no harm
		}
		r, after, err := ipc.DecodePacket(self, peer, before, frame, oob)
		if err != nil {
			if after != before {
				t.Fatalf("a refused message changed the phase from %s to %s", before, after)
			}
			return
		}
		row := ipc.RowOf(r.Message)
		if !slices.ContainsFunc(row.Routes, func(route ipc.Route) bool {
			return route.From.Has(peer) && route.To.Has(self) && route.Phases.Has(before)
		}) {
			t.Fatalf("%s was accepted in the phase %s", row.Name, before)
		}
		again, err := ipc.Encode(r.Message)
		if err != nil || !bytes.Equal(again, frame) {
			t.Fatalf("read %x, written back %x, %v", frame, again, err)
		}
	})
}

// FuzzDispatcherFromWorker tests the dispatcher reading from a compromised
// worker.
func FuzzDispatcherFromWorker(f *testing.F) { fuzzSide(f, ipc.Dispatcher, ipc.Worker) }

// FuzzWorkerFromManagers tests a worker reading from the parent and the
// dispatcher.
func FuzzWorkerFromManagers(f *testing.F) { fuzzSide(f, ipc.Worker, ipc.Managers) }

// FuzzKeeperFromWorker tests the keeper reading from a compromised worker.
func FuzzKeeperFromWorker(f *testing.F) { fuzzSide(f, ipc.Keeper, ipc.Worker) }

// FuzzWorkerFromKeeper tests a worker reading from the keeper.
func FuzzWorkerFromKeeper(f *testing.F) { fuzzSide(f, ipc.Worker, ipc.Keeper) }

// FuzzDispatcherFromKeeper tests the dispatcher reading from a compromised
// keeper.
func FuzzDispatcherFromKeeper(f *testing.F) { fuzzSide(f, ipc.Dispatcher, ipc.Keeper) }

// FuzzKeeperFromManagers tests the keeper reading from the parent and the
// dispatcher.
func FuzzKeeperFromManagers(f *testing.F) { fuzzSide(f, ipc.Keeper, ipc.Managers) }

// FuzzResolverFromWorker tests the resolver reading from a compromised worker.
func FuzzResolverFromWorker(f *testing.F) { fuzzSide(f, ipc.Resolver, ipc.Worker) }

// FuzzWorkerFromResolver tests a worker reading from a compromised resolver.
func FuzzWorkerFromResolver(f *testing.F) { fuzzSide(f, ipc.Worker, ipc.Resolver) }

// FuzzDispatcherFromResolver tests the dispatcher reading from a compromised
// resolver.
func FuzzDispatcherFromResolver(f *testing.F) { fuzzSide(f, ipc.Dispatcher, ipc.Resolver) }

// FuzzAuditorFromWorker tests the auditor reading from a compromised worker.
func FuzzAuditorFromWorker(f *testing.F) { fuzzSide(f, ipc.Auditor, ipc.Worker) }

// FuzzWorkerFromAuditor tests a worker reading from a compromised auditor.
func FuzzWorkerFromAuditor(f *testing.F) { fuzzSide(f, ipc.Worker, ipc.Auditor) }

// FuzzDispatcherFromAuditor tests the dispatcher reading from a compromised
// auditor.
func FuzzDispatcherFromAuditor(f *testing.F) { fuzzSide(f, ipc.Dispatcher, ipc.Auditor) }

// FuzzDispatcherFromExporter tests the dispatcher reading from a compromised
// exporter.
func FuzzDispatcherFromExporter(f *testing.F) { fuzzSide(f, ipc.Dispatcher, ipc.Exporter) }

// FuzzExporterFromManagers tests the exporter reading from the parent and the
// dispatcher.
func FuzzExporterFromManagers(f *testing.F) { fuzzSide(f, ipc.Exporter, ipc.Managers) }

// FuzzParentFromDispatcher tests the parent reading from a compromised
// dispatcher.
func FuzzParentFromDispatcher(f *testing.F) { fuzzSide(f, ipc.Parent, ipc.Dispatcher) }

// FuzzParentFromConfig tests the parent reading from a compromised schedrestd-
// config.
func FuzzParentFromConfig(f *testing.F) { fuzzSide(f, ipc.Parent, ipc.Config) }

// FuzzConfigFromParent tests schedrestd-config reading from the parent.
func FuzzConfigFromParent(f *testing.F) { fuzzSide(f, ipc.Config, ipc.Parent) }

// FuzzSettings tests a worker decoding the Settings in its Setup. The parent
// passes Settings on without decoding them.
func FuzzSettings(f *testing.F) {
	for _, m := range []ipc.Message{new(work.Setup).Opaque(), fill(new(work.Setup).Opaque())} {
		b, err := ipc.Encode(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b[1:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(work.Setup).Opaque()
		if ipc.Unmarshal(b, m) != nil {
			return
		}
		if again, err := ipc.Encode(m); err != nil || !bytes.Equal(again[1:], b) {
			t.Fatalf("read %x, written back %x, %v", b, again, err)
		}
	})
}

// FuzzRights tests the reading of control messages that the kernel never sends.
func FuzzRights(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{24, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, oob []byte) {
		fds, _ := ipc.ParseFDs(oob)
		if len(fds)*4 > len(oob) {
			t.Fatalf("%d descriptors out of %d bytes", len(fds), len(oob))
		}
	})
}

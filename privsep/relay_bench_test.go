package privsep

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"schedrestd/ipc"
)

// BenchmarkRelayedLine is what one request's line costs the parent.
func BenchmarkRelayedLine(b *testing.B) {
	const line = `level=INFO msg=request id=7IIDVHSNFISRB6KLHZCR46XOSO peer=127.0.0.1:35776 user=root method=GET path=/sched/v0.0.42/ping route=sched_v0042_get_ping status=200 bytes=487 took=1.234567ms`
	log := slog.New(slog.NewTextHandler(io.Discard, nil).WithAttrs(label(ipc.Worker, 1, 4711, 65534)))
	b.ReportAllocs()
	for b.Loop() {
		e := readEntry(line)
		log.LogAttrs(context.Background(), e.level, "worker: "+e.msg, e.attrs...)
	}
}

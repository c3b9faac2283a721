package logger

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLogLines(t *testing.T) {
	var out bytes.Buffer
	buffered := &Lines{out: &out, flushScheduled: true} // as if a flush were scheduled
	log := slog.New(New(buffered, slog.LevelInfo))
	log.Debug("left out")
	log.Info("request", "id", 1)
	log.Info("request", "id", 2)
	if out.Len() > 0 {
		t.Errorf("lines were not buffered: %q", out.String())
	}
	log.Warn("two\nlines", "a", "b c")
	log.With("id", 7).WithGroup("g").Error("more", "time", "kept")
	log.Info("last")
	buffered.Flush()
	want := "level=INFO msg=request id=1\nlevel=INFO msg=request id=2\nlevel=WARN msg=\"two\\nlines\" a=\"b c\"\nlevel=ERROR msg=more id=7 g.time=kept\nlevel=INFO msg=last\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

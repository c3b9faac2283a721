package privsep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"schedrestd/ipc"
)

func TestReadEntry(t *testing.T) {
	text := func(line string) entry { return entry{level: slog.LevelError, msg: line} }
	pairs := func(list ...string) (attrs []slog.Attr) {
		for i := 0; i < len(list); i += 2 {
			attrs = append(attrs, slog.String(list[i], list[i+1]))
		}
		return attrs
	}
	long := ("level=INFO msg=x a=" + strings.Repeat("y", maxLine))[:maxLine] // as readLine cuts it
	tests := []struct {
		line string
		want entry
	}{
		{`level=INFO msg=request id=7 status=200 user=alice took=1.5ms`,
			entry{slog.LevelInfo, "request", pairs("id", "7", "status", "200", "user", "alice", "took", "1.5ms")}},
		{`level=WARN msg="two words" why="a \"b\" \u00e9\n" empty="" g.sub=x`,
			entry{slog.LevelWarn, "two words", pairs("why", `a "b" é\n`, "empty", "", "g.sub", "x")}},
		{`level=DEBUG-2 msg=x`, entry{slog.LevelDebug - 2, "x", nil}},
		{`level=ERROR+90 msg=loud`, entry{slog.LevelError, "loud", nil}},
		{`level=INFO msg=x uid=0 uid=5 worker=9 WORKER_UID=0 worker_pid=1 time=now level=ERROR msg=y source=z`,
			entry{slog.LevelInfo, "x", pairs("uid", "0")}},
		{"level=INFO msg=x a=\"\x1b[2J\" b=\xff", entry{slog.LevelInfo, "x", pairs("a", `\x1b[2J`, "b", `\xff`)}},
		{long, text(long)},
		{"panic: runtime error", text("panic: runtime error")},
		{"", text("")},
		{"msg=x level=INFO", text("msg=x level=INFO")},
		{"level=INFO", text("level=INFO")},
		{"level=LOUD msg=x", text("level=LOUD msg=x")},
		{"level=INFO msg=x ", text("level=INFO msg=x ")},
		{"level=INFO  msg=x", text("level=INFO  msg=x")},
		{"level=INFO msg=x a", text("level=INFO msg=x a")},
		{"level=INFO msg=x a=", text("level=INFO msg=x a=")},
		{"level=INFO msg=x =b", text("level=INFO msg=x =b")},
		{"level=INFO msg=x a=b=c", text("level=INFO msg=x a=b=c")},
		{`level=INFO msg=x a="b`, text(`level=INFO msg=x a="b`)},
		{`level=INFO msg=x a="b"c=d`, text(`level=INFO msg=x a="b"c=d`)},
		{"level=INFO msg=x a=`b`", entry{slog.LevelInfo, "x", pairs("a", "`b`")}},
		{`level=INFO msg=x "a b"=c`, text(`level=INFO msg=x "a b"=c`)},
		{"level=INFO msg=x " + strings.Repeat("k", maxKey+1) + "=1", text("level=INFO msg=x " + strings.Repeat("k", maxKey+1) + "=1")},
		{"level=INFO msg=x" + strings.Repeat(" a=1", maxPairs+1), text("level=INFO msg=x" + strings.Repeat(" a=1", maxPairs+1))},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, readEntry(tt.line), cmp.AllowUnexported(entry{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.line, diff)
		}
	}
}

// TestLabels: what the parent says of a process beside its lines it can't say itself, whatever its role.
func TestLabels(t *testing.T) {
	for _, role := range []ipc.Role{ipc.Worker, ipc.Keeper} {
		line := "level=INFO msg=x own=1"
		for _, a := range label(role, 0, 0, 0) {
			line += fmt.Sprintf(" %s=9 %s=9", a.Key, strings.ToUpper(a.Key))
		}
		var keys []string
		for _, a := range readEntry(line).attrs {
			keys = append(keys, a.Key)
		}
		if diff := cmp.Diff([]string{"own"}, keys); diff != "" {
			t.Errorf("%s (-want +got):\n%s", line, diff)
		}
	}
}

// FuzzEntry: whatever line a worker writes, what the log gets is one record, of bounded
// length and printable, in which the parent's words are the parent's.
func FuzzEntry(f *testing.F) {
	for _, s := range []string{"", "panic: x", `level=INFO msg=request id=7 status=200`, `level=WARN msg="a b" why="\x1b" why=2 worker=1`,
		`level=ERROR+3 msg="" worker_uid=0 Time=x`, "level=INFO msg=x a=\xff b=\u2028", `level=INFO msg=x a="\ud800"`, `level=INFO msg=x a="b"c=d`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line = line[:min(len(line), maxLine)]
		e := readEntry(line)
		if e.level > slog.LevelError || len(e.attrs) > maxPairs {
			t.Fatalf("level %s, %d attributes", e.level, len(e.attrs))
		}
		keys := map[string]bool{}
		size := len(e.msg)
		for _, a := range e.attrs {
			size += len(a.Key) + len(a.Value.String())
			if keys[a.Key] || reserved(a.Key) || !isKey(a.Key) {
				t.Fatalf("key %q", a.Key)
			}
			keys[a.Key] = true
			for _, r := range a.Value.String() {
				if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
					t.Fatalf("%q lets %U through", line, r)
				}
			}
		}
		if size > 10*maxLine { // a byte may become \U0010ffff
			t.Fatalf("%d bytes out of %d", size, len(line))
		}
		var text, object bytes.Buffer
		for _, h := range []slog.Handler{slog.NewTextHandler(&text, nil), slog.NewJSONHandler(&object, nil)} {
			slog.New(h.WithAttrs(label(ipc.Worker, 3, 4, 5))).LogAttrs(t.Context(), max(e.level, slog.LevelInfo), "worker: "+e.msg, e.attrs...)
		}
		var r map[string]any
		if err := json.Unmarshal(object.Bytes(), &r); err != nil || r["worker"] != 3.0 || r["worker_pid"] != 4.0 || r["worker_uid"] != 5.0 || strings.Count(text.String(), "\n") != 1 {
			t.Fatalf("%v: %s%s", err, &object, &text)
		}
		if !strings.Contains(text.String(), " worker=3") {
			t.Fatalf("%s", &text)
		}
	})
}

// FuzzEntryOfWorker: what a worker that is not captured logs comes through whole.
func FuzzEntryOfWorker(f *testing.F) {
	f.Add("request", "status", "200")
	f.Add("two words", "why", "a \"quoted\"\nline = b")
	f.Add("", "k", "")
	f.Add("ünïcödé", "a.b", "\x00\u2028")
	f.Fuzz(func(t *testing.T, msg, key, value string) {
		if !isKey(key) || reserved(key) || len(msg)+len(value) > maxLine/8 {
			t.Skip()
		}
		var out bytes.Buffer
		h := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}})
		slog.New(h).Info(msg, key, value)
		want := entry{slog.LevelInfo, printable(msg), []slog.Attr{slog.String(key, printable(value))}}
		got := readEntry(strings.TrimSuffix(out.String(), "\n"))
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", &out, diff)
		}
	})
}

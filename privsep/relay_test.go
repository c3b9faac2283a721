package privsep

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"schedrestd/ipc"
)

// relayedLine matches a line of a process in the log.
var relayedLine = regexp.MustCompile(`^time=\S+ (worker|keeper)=(\d+) (?:worker|keeper)_pid=(\d+) (?:worker|keeper)_uid=(\d+) (.*)$`)

// field matches one field of a line as package slog writes it.
var field = regexp.MustCompile(`^([A-Za-z][-.\w]*)=("(?:[^"\\]|\\.)*"|[^ ="]*)(?: |$)`)

// relayed returns the fields of a line that the parent relayed, or nil. The message is
// behind the role, as "worker: serving". A line that is not of package slog's form is the message.
func relayed(line string) map[string]any {
	m := relayedLine.FindStringSubmatch(line)
	if m == nil {
		return nil
	}
	role, rest := m[1], m[5]
	r := map[string]any{"msg": role + ": " + rest} // when it has no fields
	fields := map[string]any{}
	for rest != "" {
		f := field.FindStringSubmatch(rest)
		if f == nil {
			fields = nil
			break
		}
		value := f[2]
		if v, err := strconv.Unquote(value); err == nil {
			value = v
		}
		if _, twice := fields[f[1]]; !twice {
			fields[f[1]] = value
		}
		rest = rest[len(f[0]):]
	}
	if msg, ok := fields["msg"]; ok {
		r = fields
		r["msg"] = role + ": " + msg.(string)
	}
	for i, key := range []string{role, role + "_pid", role + "_uid"} {
		n, _ := strconv.ParseFloat(m[2+i], 64) // as numbers of the parent's own records are
		r[key] = n
	}
	r["raw"] = line
	return r
}

// FuzzRelay: whatever a process writes becomes whole lines that begin with what the parent
// says about it, and have no character that a terminal obeys.
func FuzzRelay(f *testing.F) {
	for _, s := range []string{"", "\n", "panic: x\n\ngoroutine 1", "level=INFO msg=request id=7\nlevel=INFO msg=x worker=9\n",
		"a\r\x1b[2J\xff\u2028\u202e\n", strings.Repeat("x", 3*maxLine)} {
		f.Add(s)
	}
	prefix := regexp.MustCompile(`^time=\S+ worker=3 worker_pid=4 worker_uid=5 `)
	f.Fuzz(func(t *testing.T, text string) {
		r, w, err := os.Pipe()
		must(t, err)
		go func() { _, _ = w.WriteString(text); w.Close() }()
		defer r.Close()
		var out bytes.Buffer
		p := &process{log: r, silent: make(chan struct{})}
		p.relay(label(ipc.Worker, 3, 4, 5), output{&out}, newQuota(1<<20, 1))
		for line := range strings.Lines(out.String()) {
			said := strings.TrimSuffix(line, "\n")
			if said == line || !prefix.MatchString(line) || len(line) > 2*maxLine {
				t.Fatalf("%.200q", line)
			}
			for _, c := range said {
				if !unicode.IsPrint(c) || c == unicode.ReplacementChar {
					t.Fatalf("%q lets %U through", said, c)
				}
			}
		}
	})
}

// BenchmarkRelayedLine is what one request's line costs the parent.
func BenchmarkRelayedLine(b *testing.B) {
	const line = `level=INFO msg=request id=7IIDVHSNFISRB6KLHZCR46XOSO peer=127.0.0.1:35776 user=root method=GET path=/sched/v0.0.42/ping route=sched_v0042_get_ping status=200 bytes=487 took=1.234567ms`
	out, prefix := output{new(bytes.Buffer)}, label(ipc.Worker, 1, 4711, 65534)
	b.ReportAllocs()
	for b.Loop() {
		out.write(time.Now(), prefix, printable(line))
		out.Writer.(*bytes.Buffer).Reset()
	}
}

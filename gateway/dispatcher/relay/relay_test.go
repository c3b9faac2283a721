package relay

import (
	"bufio"
	"bytes"
	"os"
	"regexp"
	"schedrestd/internal/limit"
	"schedrestd/internal/printable"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
)

func TestReadLine(t *testing.T) {
	in := bufio.NewReaderSize(strings.NewReader("a\n\n"+strings.Repeat("x", 3*printable.MaxLength)+"\nlast"), 2*printable.MaxLength)
	want := []string{"a", "", strings.Repeat("x", printable.MaxLength), "last"}
	for _, w := range want {
		if got, _ := readLine(in); got != w {
			t.Errorf("got %.20q (%d), want %.20q (%d)", got, len(got), w, len(w))
		}
	}
	if _, err := readLine(in); err == nil {
		t.Error("no end")
	}
}

// A calls is a writer that sends the text of each Write to a channel.
type calls chan string

func (c calls) Write(p []byte) (int, error) {
	c <- string(p)
	return len(p), nil
}

// TestLinesTogether checks that if a process writes several lines at once,
// Lines copies them together, in pieces of at most maxBatch bytes. It must not
// wait for the rest of an incomplete line.
func TestLinesTogether(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	out := make(calls)
	go func() {
		Lines(r, Text(out), "worker=3 ", NewQuota(1000, 1))
		close(out)
	}()
	for _, tt := range []struct {
		text  string
		lines []int // number of lines in each call of Write
	}{
		{"a\n", []int{1}},
		{"b\nc\nd\nhalf of", []int{3}},
		{" a line\n" + strings.Repeat(strings.Repeat("x", 1000)+"\n", 7), []int{4, 3, 1}},
	} {
		if _, err := w.WriteString(tt.text); err != nil {
			t.Fatal(err)
		}
		for _, n := range tt.lines {
			if got := <-out; strings.Count(got, "\n") != n || !strings.HasSuffix(got, "\n") || len(got) > maxBatch {
				t.Errorf("%.20q: %d lines in %d bytes, want %d", tt.text, strings.Count(got, "\n"), len(got), n)
			}
		}
	}
}

// TestFlood checks that a process that logs more than its quota permits does not
// fill the log, and that the log has the number of the lines that were left out.
func TestFlood(t *testing.T) {
	const lines, quota = 450, 10
	var out bytes.Buffer
	Lines(strings.NewReader(strings.Repeat("x\n", lines)), Text(&out), "worker=3 ", NewQuota(quota, 1))
	passed := strings.Count(out.String(), "worker=3 x\n")
	dropped := 0
	for _, m := range regexp.MustCompile(`worker=3 .* lines_dropped=(\d+)`).FindAllStringSubmatch(out.String(), -1) {
		n, _ := strconv.Atoi(m[1])
		dropped += n
	}
	if passed < quota || passed > 2*quota || passed+dropped != lines {
		t.Errorf("%d lines passed and %d were left out, want %d and %d", passed, dropped, quota, lines-quota)
	}
}

// FuzzRelay checks that Lines turns any output of a process into complete lines
// without unprintable characters. Each line must begin with the time and the
// label.
func FuzzRelay(f *testing.F) {
	for _, s := range []string{"", "\n", "panic: x\n\ngoroutine 1", "level=INFO msg=request id=7\nlevel=INFO msg=x worker=9\n",
		"a\r\x1b[2J\xff\u2028\u202e\n", strings.Repeat("x", 3*printable.MaxLength)} {
		f.Add(s)
	}
	prefix := regexp.MustCompile(`^time=\S+ worker=3 worker_pid=4 worker_uid=5 `)
	f.Fuzz(func(t *testing.T, text string) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = w.WriteString(text); w.Close() }()
		defer r.Close()
		var out bytes.Buffer
		Lines(r, Text(&out), "worker=3 worker_pid=4 worker_uid=5 ", NewQuota(1<<20, 1))
		for line := range strings.Lines(out.String()) {
			body := strings.TrimSuffix(line, "\n")
			if body == line || !prefix.MatchString(line) || len(line) > 2*printable.MaxLength {
				t.Fatalf("%.200q", line)
			}
			for _, c := range body {
				if !unicode.IsPrint(c) || c == unicode.ReplacementChar {
					t.Fatalf("%q lets %U through", body, c)
				}
			}
		}
	})
}

// BenchmarkRelayedLine measures the cost of copying one line about a request.
func BenchmarkRelayedLine(b *testing.B) {
	const line = `level=INFO msg=request id=7IIDVHSNFISRB6KLHZCR46XOSO peer=127.0.0.1:35776 user=root method=GET path=/sched/v0.0.42/ping route=sched_v0042_get_ping status=200 bytes=487 took=1.234567ms`
	out, prefix := new(bytes.Buffer), "worker=1 worker_pid=4711 worker_uid=65534 "
	b.ReportAllocs()
	for b.Loop() {
		out.Write(asText(time.Now(), prefix, printable.Text(line)))
		out.Reset()
	}
}

// TestQuota checks that the next worker in the same place gets the same quota,
// that a long line counts as several, and a short one as much as a usual one.
func TestQuota(t *testing.T) {
	all, now := NewQuota(10, 10), time.Now()
	for range 8 {
		if !all.Of(1, 0).admit(1, now) {
			t.Fatal("a line within the quota is refused")
		}
	}
	long := all.Of(1, 0).admit(2*limit.LogLineSize, now)
	again := all.Of(1, 0).admit(1, now)
	sibling := all.Of(1, 1).admit(1, now)
	other := all.Of(2, 0).admit(1, now)
	if !long || again || !sibling || !other {
		t.Errorf("a long line: %t, after all its lines: %t, its sibling %t, another's %t", long, again, sibling, other)
	}
}

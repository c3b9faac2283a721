package relay

import (
	"bufio"
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
)

func TestPrintable(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain, ünïcödé 日本", "plain, ünïcödé 日本"},
		{"\x1b[2J", `\x1b[2J`},
		{"a\nb\r\tc\x00", `a\nb\r\tc\x00`},
		{"\u202e\u200b\ufeff", `\u202e\u200b\ufeff`},
		{"\xff\xfe", `\xff\xfe`},
		{strings.Repeat("x", MaxLine+5), strings.Repeat("x", MaxLine) + "…"},
	}
	for _, tt := range tests {
		if got := Printable(tt.in); got != tt.want {
			t.Errorf("%q became %q, want %q", tt.in, got, tt.want)
		}
	}
}

// FuzzPrintable: whatever a worker writes, a terminal shows it as text, and not for long.
func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "a", "\x1b]0;t\x07", "\xf0\x28\x8c\x28", "\u2028", "<4>text"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Printable(s)
		if len(got) > MaxLine+16 {
			t.Fatalf("%d bytes out of %d", len(got), len(s))
		}
		for _, r := range got {
			if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
				t.Fatalf("%q lets %U through", s, r)
			}
		}
	})
}

func TestReadLine(t *testing.T) {
	in := bufio.NewReaderSize(strings.NewReader("a\n\n"+strings.Repeat("x", 3*MaxLine)+"\nlast"), MaxLine)
	want := []string{"a", "", strings.Repeat("x", MaxLine), "last"}
	for _, w := range want {
		if got, _ := readLine(in); got != w {
			t.Errorf("got %.20q (%d), want %.20q (%d)", got, len(got), w, len(w))
		}
	}
	if _, err := readLine(in); err == nil {
		t.Error("no end")
	}
}

// FuzzRelay: whatever a process writes becomes whole lines that begin with what the parent
// says about it, and have no character that a terminal obeys.
func FuzzRelay(f *testing.F) {
	for _, s := range []string{"", "\n", "panic: x\n\ngoroutine 1", "level=INFO msg=request id=7\nlevel=INFO msg=x worker=9\n",
		"a\r\x1b[2J\xff\u2028\u202e\n", strings.Repeat("x", 3*MaxLine)} {
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
		Lines(r, &out, "worker=3 worker_pid=4 worker_uid=5 ", NewQuota(1<<20, 1))
		for line := range strings.Lines(out.String()) {
			said := strings.TrimSuffix(line, "\n")
			if said == line || !prefix.MatchString(line) || len(line) > 2*MaxLine {
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
	out, prefix := new(bytes.Buffer), "worker=1 worker_pid=4711 worker_uid=65534 "
	b.ReportAllocs()
	for b.Loop() {
		write(out, time.Now(), prefix, Printable(line))
		out.Reset()
	}
}

// TestQuotas: what a worker may log is its place's, and places whose quota is full are forgotten.
func TestQuotas(t *testing.T) {
	var qs Quotas
	for range 10 {
		if !qs.Of(1, 0, 10, 10).admit(1, time.Now()) {
			t.Fatal("a line is refused that there is room for")
		}
	}
	again := qs.Of(1, 0, 10, 10).admit(1, time.Now())
	sibling := qs.Of(1, 1, 10, 10).admit(1, time.Now())
	other := qs.Of(2, 0, 10, 10).admit(1, time.Now())
	if again || !sibling || !other {
		t.Errorf("after its lines: %t, its sibling %t, another's %t", again, sibling, other)
	}
	for _, q := range qs.list {
		full := NewQuota(10, 10) // as it is after a while
		q.lines, q.bytes = full.lines, full.bytes
	}
	for uid := range uint32(mostQuotas) {
		qs.Of(100+uid, 0, 10, 10)
	}
	if qs.list[place{1, 0}] != nil || len(qs.list) > mostQuotas {
		t.Errorf("%d quotas", len(qs.list))
	}
}

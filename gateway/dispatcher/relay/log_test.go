package relay

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/internal/socket/sockettest"
)

const label = "worker=3 worker_pid=4 worker_uid=5 "

// hostile lists lines that a compromised worker could write. None of them may
// change the format of the output.
var hostile = []string{
	`{"worker":9,"msg":"x"}`,
	`level=INFO msg=x worker=9`,
	`level=INFO msg=x time=2026-11-22`,
	`level=INFO msg=x line=y`,
	`level=INFO msg=x request_id=y`,
	`level=INFO msg=x msg=y`,
	`level=INFO Worker=9`,
	`level=INFO w.orker=9`,
	`level=INFO msg="x`,
	`level=INFO msg="x"y`,
	`level=INFO msg=x"y`,
	`level=INFO msg=x=y`,
	`level=INFO  msg=x`,
	`level=INFO msg=x `,
	`level=INFO msg=`,
	`"},{"worker":9`,
	"\xff\xfe",
	`panic: runtime error`,
	``,
	strings.Repeat("{", 2000),
}

// copyLines calls Lines to copy text to a log.
func copyLines(t *testing.T, to *Log, text string) {
	t.Helper()
	Lines(strings.NewReader(text), to, label, NewQuota(1<<20, 1))
}

// TestJSON checks that a line in slog's format is split into fields, and that
// any other line becomes a single string. No line may replace the fields of the
// label.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	to := Open("json", &out)
	read := func(line string) (fields map[string]any) {
		t.Helper()
		out.Reset()
		copyLines(t, to, line+"\n")
		text := out.String()
		if strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, `{"time":"`) {
			t.Fatalf("%q became %q", line, text)
		}
		if err := json.Unmarshal([]byte(text), &fields); err != nil {
			t.Fatalf("%q became %q: %v", line, text, err)
		}
		if _, err := time.Parse(time.RFC3339, fields["time"].(string)); err != nil {
			t.Error(err)
		}
		delete(fields, "time")
		return fields
	}
	want := map[string]any{"worker": 3., "worker_pid": 4., "worker_uid": 5., "level": "INFO", "msg": "two words", "id": "7", "user": "", "status": 200., "took": "1.5ms"}
	if diff := cmp.Diff(want, read(`level=INFO msg="two words" id=7 user="" status=200 took=1.5ms`)); diff != "" {
		t.Error(diff)
	}
	want = map[string]any{"worker": 3., "worker_pid": 4., "worker_uid": 5., "msg": `a "b" \x1b[2J\u202e`, "status": "1e999"}
	if diff := cmp.Diff(want, read(`msg="a \"b\" \x1b[2J\u202e" status=1e999`)); diff != "" {
		t.Error(diff)
	}
	for _, line := range hostile {
		if line == "" {
			continue // empty lines are not copied
		}
		fields := read(line)
		text, ok := fields["line"].(string)
		if len(fields) != 4 || !ok || text == "" || fields["worker"] != 3. {
			t.Errorf("%q became %v", line, fields)
		}
	}
}

// FuzzJSON checks that any output of a process becomes JSON objects with the
// label's fields.
func FuzzJSON(f *testing.F) {
	for _, line := range append(hostile, `level=INFO msg="two words" id=7 status=200`) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		copyLines(t, Open("json", &out), text)
		for line := range strings.Lines(out.String()) {
			d := json.NewDecoder(strings.NewReader(line))
			seen := map[string]bool{}
			for depth := 0; ; {
				token, err := d.Token()
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				if token == json.Delim('{') {
					depth++
					continue
				}
				if token == json.Delim('}') {
					break
				}
				key, ok := token.(string)
				if !ok || depth != 1 || seen[key] || key != strings.ToLower(key) {
					t.Fatalf("%q: key %v", line, token)
				}
				seen[key] = true
				if value, err := d.Token(); err != nil || key == "worker" && value != 3. {
					t.Fatalf("%q: value %v, %v", line, value, err)
				}
			}
			if d.More() || !seen["worker"] || !strings.HasPrefix(line, `{"time":"`) {
				t.Fatalf("%q", line)
			}
		}
	})
}

// listener returns a datagram socket that stands in for journald or syslogd.
func listener(t *testing.T) (*net.UnixConn, string) {
	t.Helper()
	path := filepath.Join(sockettest.Dir(t), "log")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, path
}

func datagram(t *testing.T, c *net.UnixConn) []byte {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(30 * time.Second)) // limits the time of the test
	b := make([]byte, 64<<10)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

// journalFields decodes journald's native protocol.
func journalFields(t *testing.T, b []byte) map[string]string {
	t.Helper()
	fields := map[string]string{}
	for len(b) > 0 {
		key, rest, ok := bytes.Cut(b, []byte("\n"))
		if !ok || len(rest) < 8 {
			t.Fatalf("%q", b)
		}
		n := binary.LittleEndian.Uint64(rest)
		rest = rest[8:]
		if uint64(len(rest)) <= n || rest[n] != '\n' || !regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`).Match(key) {
			t.Fatalf("%q", b)
		}
		if _, duplicate := fields[string(key)]; duplicate {
			t.Fatalf("%s twice", key)
		}
		fields[string(key)], b = string(rest[:n]), rest[n+1:]
	}
	return fields
}

// TestJournal checks that the fields of a line become fields in the journal. A
// process must not be able to replace the fields about itself.
func TestJournal(t *testing.T) {
	c, path := listener(t)
	var errOut bytes.Buffer
	to := Open("journald:"+path, &errOut)
	const line = `level=WARN msg="two words" id=7 status=200`
	copyLines(t, to, line+"\n")
	got := journalFields(t, datagram(t, c))
	delete(got, "SYSLOG_PID")
	want := map[string]string{"MESSAGE": label + line, "PRIORITY": "4", "SYSLOG_IDENTIFIER": "schedrestd", "SCHEDRESTD_WORKER": "3", "SCHEDRESTD_WORKER_PID": "4", "SCHEDRESTD_WORKER_UID": "5",
		"SCHEDRESTD_REQUEST_ID": "7", "SCHEDRESTD_STATUS": "200"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, line := range append(hostile, "level=INFO msg=x\nMESSAGE=y\nPRIORITY=0") {
		for line := range strings.SplitSeq(line, "\n") {
			if line == "" {
				continue
			}
			copyLines(t, to, line+"\n")
			if got := journalFields(t, datagram(t, c)); got["SCHEDRESTD_WORKER"] != "3" || got["PRIORITY"] < "3" || !strings.HasPrefix(got["MESSAGE"], label) {
				t.Errorf("%q became %v", line, got)
			}
		}
	}
	if _, err := to.Write([]byte("time=2026-11-22T15:04:05.000Z level=INFO msg=own id=9\n")); err != nil {
		t.Error(err)
	}
	if got := journalFields(t, datagram(t, c)); got["MESSAGE"] != "level=INFO msg=own id=9" || got["SCHEDRESTD_REQUEST_ID"] != "9" {
		t.Errorf("own line: %v", got)
	}
	if errOut.Len() > 0 {
		t.Errorf("standard error: %s", errOut.String())
	}
}

// TestSyslog checks that a line has the format of RFC 5424.
func TestSyslog(t *testing.T) {
	c, path := listener(t)
	to := Open("syslog:"+path, os.Stderr)
	for line, pri := range map[string]string{"level=ERROR msg=x": "27", "level=INFO msg=x": "30", "panic: x": "28", "level=EMERG msg=x": "28", "<0>1 - - - - - - x": "28"} {
		copyLines(t, to, line+"\n")
		form := `^<` + pri + `>1 \d{4}-\d\d-\d\dT\S+ - schedrestd \d+ - - ` + regexp.QuoteMeta(label+line) + `$`
		if got := datagram(t, c); !regexp.MustCompile(form).Match(got) {
			t.Errorf("%q became %q", line, got)
		}
	}
}

// TestLost checks that lines appear on standard error if the socket does not
// accept them. A single line before them must report this.
func TestLost(t *testing.T) {
	c, path := listener(t)
	for name, open := range map[string]func(*bytes.Buffer) *Log{
		"never there": func(b *bytes.Buffer) *Log { return Open("syslog:"+path+"-none", b) },
		"gone": func(b *bytes.Buffer) *Log {
			l := Open("journald:"+path, b)
			c.Close()
			return l
		},
	} {
		var errOut bytes.Buffer
		to := open(&errOut)
		copyLines(t, to, "level=INFO msg=a\nlevel=INFO msg=b\n")
		got := errOut.String()
		if strings.Count(got, "log not reachable") != 1 || strings.Count(got, "\n") != 3 ||
			!strings.Contains(got, label+"level=INFO msg=a\n") || !strings.Contains(got, label+"level=INFO msg=b\n") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

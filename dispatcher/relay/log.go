package relay

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/printable"
)

// Log writes the lines of all processes but the parent, in one of these
// formats:
//
//	text           unchanged, after the time and the label
//	json           one object per line
//	journald:PATH  datagrams with the fields of systemd-journald
//	syslog:PATH    datagrams as in RFC 5424
//
// A line is split into fields only if all of it has the form of slog's text, no
// key appears twice, and no key is one that the label or this package writes.
// Any other line becomes one string as a whole. So a process that writes
// garbage can change neither the form of the output nor the fields that the
// dispatcher writes about this process.
type Log struct {
	format string
	errOut io.Writer
	socket int // of journald or syslog; -1: no connection
	down   atomic.Bool
}

// Text returns a Log of text lines.
func Text(to io.Writer) *Log { return &Log{format: "text", errOut: to, socket: -1} }

// Open returns the Log that SCHEDRESTD_LOG describes. It may connect to a
// socket, so it must be called before the process is confined. The Log never
// connects again. Lines that can't be delivered go to errOut.
func Open(to string, errOut io.Writer) *Log {
	format, path, _ := strings.Cut(to, ":")
	l := &Log{format: format, errOut: errOut, socket: -1}
	if path == "" {
		return l
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err == nil {
		if err = unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		l.logFallback(err)
		return l
	}
	l.socket = fd
	return l
}

// logFallback logs that lines go to standard error instead of the socket. It
// logs this once, until the socket has worked again.
func (l *Log) logFallback(err error) {
	if !l.down.Swap(true) {
		line := fmt.Sprintf(`level=ERROR msg="log not reachable; using standard error" log=%s error=%q`, l.format, err)
		_, _ = l.errOut.Write(asText(time.Now(), "", line))
	}
}

// Write logs a line that this process wrote in slog's text format. It removes
// the time at the beginning, because each format of the log adds its own.
func (l *Log) Write(line []byte) (int, error) {
	text := printable.Text(strings.TrimSuffix(string(line), "\n"))
	if first, rest, ok := strings.Cut(text, " "); ok && strings.HasPrefix(first, "time=") {
		text = rest
	}
	if text := l.deliver(time.Now(), "", text); text != nil {
		_, _ = l.errOut.Write(text)
	}
	return len(line), nil
}

// deliver writes a printable line to the socket, with the label of its process.
// It returns what must be written to standard error instead, or nil.
func (l *Log) deliver(now time.Time, label, line string) []byte {
	switch {
	case l.format == "json":
		return asJSON(now, label, line)
	case l.socket >= 0:
		message := asSyslog
		if l.format == "journald" {
			message = asJournal
		}
		_, err := unix.Write(l.socket, message(now, label, line))
		if err == nil {
			l.down.Store(false)
			return nil
		}
		l.logFallback(err)
	}
	return asText(now, label, line)
}

// field is a key and a value of a line.
type field struct{ key, value string }

// keyForm matches a key with its equals sign, and bareForm matches a value
// without quotes, at the beginning of a text.
var (
	keyForm  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}=`)
	bareForm = regexp.MustCompile(`^[^ "=]+`)
)

// reservedKeys are the keys that this package writes.
var reservedKeys = []string{"time", "line", "request_id"}

// fields splits a line of slog's text. ok is false if the line has another
// form, repeats a key, or has a key of reserved or reservedKeys.
func fields(line string, reserved []field) (list []field, ok bool) {
	has := func(list []field, key string) bool {
		return slices.ContainsFunc(list, func(f field) bool { return f.key == key })
	}
	for rest := line; ; rest = rest[1:] {
		key := strings.TrimSuffix(keyForm.FindString(rest), "=")
		if key == "" || slices.Contains(reservedKeys, key) || has(reserved, key) || has(list, key) {
			return nil, false
		}
		rest = rest[len(key)+1:]
		raw := bareForm.FindString(rest)
		value := raw
		if strings.HasPrefix(rest, `"`) {
			var err error
			if raw, err = strconv.QuotedPrefix(rest); err != nil {
				return nil, false
			}
			value, _ = strconv.Unquote(raw)
		}
		list = append(list, field{key, printable.Text(value)})
		switch rest = rest[len(raw):]; {
		case raw == "" || rest != "" && rest[0] != ' ':
			return nil, false
		case rest == "":
			return list, true
		}
	}
}

// split returns the fields of a label, which the dispatcher has written, and
// the fields of a line, which a process has written.
func split(label, line string) (trusted, untrusted []field) {
	trusted, _ = fields(strings.TrimSuffix(label, " "), nil)
	untrusted, ok := fields(line, trusted)
	if !ok {
		untrusted = []field{{"line", line}}
	}
	return trusted, untrusted
}

// numericKeys are the keys whose values are numbers, in lines about requests.
var numericKeys = []string{"status", "bytes"}

// numberForm matches a number that every reader of JSON can represent exactly.
var numberForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})$`)

// asJSON returns a line as a JSON object. The label comes first.
func asJSON(now time.Time, label, line string) []byte {
	trusted, untrusted := split(label, line)
	text := []byte(`{"time":"` + now.Format(logTime) + `"`)
	add := func(f field, number bool) {
		text = append(append(append(text, `,"`...), f.key...), `":`...)
		if number && numberForm.MatchString(f.value) {
			text = append(text, f.value...)
			return
		}
		value, _ := json.Marshal(f.value) // strings can always be encoded
		text = append(text, value...)
	}
	for _, f := range trusted {
		add(f, true)
	}
	for _, f := range untrusted {
		add(f, slices.Contains(numericKeys, f.key))
	}
	return append(text, "}\n"...)
}

// identifier is the gateway's name in logs that it shares with other programs.
const identifier = "schedrestd"

// severity returns the syslog severity of a line. The highest severity is that
// of an error. A line without a level counts as a warning.
func severity(untrusted []field) int {
	for _, f := range untrusted {
		if f.key == "level" {
			switch word, _, _ := strings.Cut(f.value, "+"); word {
			case "ERROR":
				return 3
			case "INFO", "VERBOSE":
				return 6
			case "DEBUG":
				return 7
			}
		}
	}
	return 4
}

// asJournal returns a line in journald's native protocol.
func asJournal(_ time.Time, label, line string) []byte {
	trusted, untrusted := split(label, line)
	var text []byte
	add := func(key, value string) {
		text = append(append(text, key...), '\n')
		text = binary.LittleEndian.AppendUint64(text, uint64(len(value)))
		text = append(append(text, value...), '\n')
	}
	add("MESSAGE", label+line)
	add("PRIORITY", strconv.Itoa(severity(untrusted)))
	add("SYSLOG_IDENTIFIER", identifier)
	add("SYSLOG_PID", strconv.Itoa(os.Getpid()))
	for _, f := range slices.Concat(trusted, untrusted) {
		switch f.key {
		case "line", "msg", "level":
			continue // these fields are in MESSAGE and PRIORITY
		case "id":
			f.key = "request_id"
		}
		add("SCHEDRESTD_"+strings.ToUpper(f.key), f.value)
	}
	return text
}

// asSyslog returns a line in the format of RFC 5424, without a host name.
func asSyslog(now time.Time, label, line string) []byte {
	const daemon = 3 << 3
	_, untrusted := split(label, line)
	return fmt.Appendf(nil, "<%d>1 %s - %s %d - - %s",
		daemon+severity(untrusted), now.Format(logTime), identifier, os.Getpid(), label+line)
}

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

	"schedrestd/internal/printable"
)

// Log writes the lines of all processes but the parent, in one of these
// formats:
//
//	text           unchanged, after the time and the label
//	json           one object per line
//	journald:PATH  datagrams with the fields of systemd-journald
//	syslog:PATH    datagrams as in RFC 5424
//
// A line is split into fields only if it is entirely in slog's text format and
// no key appears twice. It must also have no key that this package writes or
// that the label contains. Any other line becomes a single string. So a process
// that writes garbage can't change the format of the output. It also can't
// change the fields that the dispatcher writes about the process.
type Log struct {
	format string
	errOut io.Writer
	socket int // of journald or syslog; -1: no connection
	down   atomic.Bool
}

// Text returns a Log of text lines.
func Text(to io.Writer) *Log { return &Log{format: "text", errOut: to, socket: -1} }

// Open returns the Log with the format and destination of SCHEDRESTD_LOG. It
// may connect to a socket, so it must be called before the process is confined.
// The Log never reconnects. Lines that can't be delivered are written to
// errOut.
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

// logFallback logs once that lines are written to standard error instead of the
// socket. It logs this again only if the socket has worked in the meantime.
func (l *Log) logFallback(err error) {
	if !l.down.Swap(true) {
		line := fmt.Sprintf(`level=ERROR msg="log not reachable; using standard error" log=%s error=%q`, l.format, err)
		_, _ = l.errOut.Write(asText(time.Now(), "", line))
	}
}

// Write logs a line of this process. The line is in slog's text format. Write
// removes the time from the line, because each log format adds its own.
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

// deliver writes a printable line to the socket, if there is one, with the
// label of the process that logged it. It returns the text that must be written
// to standard error instead, or nil if there is none.
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

// A field is a key in a line, with its value.
type field struct{ key, value string }

// Patterns that match at the beginning of a text: keyForm matches a key and its
// equals sign, and bareForm matches a value without quotes.
var (
	keyForm  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}=`)
	bareForm = regexp.MustCompile(`^[^ "=]+`)
)

// reservedKeys lists the keys that this package writes.
var reservedKeys = []string{"time", "line", "request_id"}

// fields splits a line in slog's text format. ok is false if the line is not in
// that format, repeats a key, or has a key that is in reserved or reservedKeys.
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

// split splits a label and a line into fields. The fields of the label are
// trusted, because the dispatcher wrote them. Those of the line are not.
func split(label, line string) (trusted, untrusted []field) {
	trusted, _ = fields(strings.TrimSuffix(label, " "), nil)
	untrusted, ok := fields(line, trusted)
	if !ok {
		untrusted = []field{{"line", line}}
	}
	return trusted, untrusted
}

// numericKeys lists keys of lines about requests. The values of these keys
// become JSON numbers.
var numericKeys = []string{"status", "bytes"}

// numberForm matches numbers that all JSON parsers represent exactly.
var numberForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,14})$`)

// asJSON returns a line as a JSON object. The fields of the label come first.
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

// identifier is the gateway's name in a log that other programs also write to.
const identifier = "schedrestd"

// severity returns the syslog severity of a line, according to its level. A
// line without a level is a warning. No line is more severe than an error.
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

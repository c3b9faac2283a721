package abuse

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestAbusesTLS checks that the abuses have the expected outcomes over TLS,
// too.
func TestAbusesTLS(t *testing.T) {
	t.Parallel()
	s := harness.NewTLSLab(t)
	g := &harness.Gateway{Daemon: s.Daemons["schedrestd"], Lab: s.Lab, T: t}
	workers := g.Workers()
	own := "X-SCHED-USER-TOKEN: " + s.OwnToken + "\r\n"
	dial := func() (net.Conn, error) { return tls.Dial("tcp", s.Addr, &tls.Config{InsecureSkipVerify: true}) }
	client := requestBuilder{own, own}
	list := sendAbuses(abuses(client), 0, client.marker(), dial, clientTimeout)
	checkOutcomes(t, list, loggedPaths(g, list))
	checkUnharmed(g, t, workers)
}

// Frames of HTTP/2 and their flags (RFC 9113, 6).
const (
	frameData, frameHeaders, framePriority, frameReset, frameSettings = 0, 1, 2, 3, 4
	framePush, framePing, frameGoAway, frameWindow, frameContinuation = 5, 6, 7, 8, 9

	endStream, acknowledged, endHeaders, isPadded = 1, 1, 4, 8
)

func frame(kind, flags byte, stream uint32, payload string) string {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return string(binary.BigEndian.AppendUint32(head, stream)) + payload
}

// literals encodes header fields (name, value, name, value) as an HPACK encoder
// without a table does.
func literals(fields ...string) string {
	var b strings.Builder
	for i, text := range fields {
		if i%2 == 0 {
			b.WriteByte(0)
		}
		if n := len(text); n < 127 {
			b.WriteByte(byte(n))
		} else {
			b.WriteByte(127)
			for n -= 127; n >= 128; n >>= 7 {
				b.WriteByte(byte(n) | 128)
			}
			b.WriteByte(byte(n))
		}
		b.WriteString(text)
	}
	return b.String()
}

func encodeUint32(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

func setting(id uint16, value uint32) string {
	return string(binary.BigEndian.AppendUint16(nil, id)) + encodeUint32(value)
}

// h2Abuse is an abuse of HTTP/2: a sequence of frames. The frames of stream 1
// form a request.
type h2Abuse struct {
	name, frames string
	want         string // permitted outcomes, separated by bars
}

// The possible outcomes. The marker is a request on another stream, which the
// client sends after the frames of stream 1.
const (
	markStream = 99_999
	answered   = "404, mark 404"
	reset      = "reset, mark 404" // the gateway ends the stream
	goAway     = "ended"           // the gateway ends the connection
)

// h2Abuses returns the abuses of HTTP/2. Their requests carry the given token.
func h2Abuses(token string) []h2Abuse {
	fields := func(extra ...string) []string {
		return append([]string{":method", "GET", ":scheme", "https", ":path", strings.ReplaceAll(nodePath("own"), nonce, "00000"), ":authority", "lab", "x-sched-user-token", token}, extra...)
	}
	without := func(name string, extra ...string) string {
		all := fields(extra...)
		i := slices.Index(all, name)
		return literals(slices.Delete(all, i, i+2)...)
	}
	changed := func(name, value string, extra ...string) string {
		all := fields(extra...)
		all[slices.Index(all, name)+1] = value
		return literals(all...)
	}
	headersFrame := func(block string) string { return frame(frameHeaders, endStream|endHeaders, 1, block) }
	get := func(extra ...string) string { return headersFrame(literals(fields(extra...)...)) }
	post := func(extra ...string) string {
		all := fields(extra...)
		all[1], all[5] = "POST", "/sched/"+harness.Version+"/job/submit"
		return frame(frameHeaders, endHeaders, 1, literals(all...))
	}
	data := func(text string) string { return frame(frameData, endStream, 1, text) }
	concat := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i))
		}
		return b.String()
	}
	repeat := func(n int, text string) string { return strings.Repeat(text, n) }
	list := []h2Abuse{
		{"a GET", get(), answered},
		{"a submission", post() + data("{}"), "422, mark 404"},
		{"a name in capitals", get("X-Other", "1"), reset},
		{"a blank in a name", get("x other", "1"), reset},
		{"a colon in a name", get("x:other", "1"), reset},
		{"an empty name", get("", "1"), reset},
		{"a line end in a value", get("x-other", "1\r\nhost: elsewhere"), reset},
		{"a zero byte in a value", get("x-other", "1\x002"), reset},
		{"a line end in a name", get("x-other: 1\r\ny", "1"), reset},
		{"Connection", get("connection", "close"), "400, mark 404"},
		{"Connection that lists the token", get("connection", "x-sched-user-token"), "400, mark 404"},
		{"Transfer-Encoding", post("transfer-encoding", "chunked") + data(lastChunk), "400, mark 404"},
		{"Upgrade", get("upgrade", "h2c"), "400, mark 404"},
		{"Keep-Alive", get("keep-alive", "1"), "400, mark 404"},
		{"Proxy-Connection", get("proxy-connection", "close"), "400, mark 404"},
		{"TE", get("te", "gzip"), "400, mark 404"},
		{"TE: trailers", get("te", "trailers"), answered},
		{"another Host", get("host", "elsewhere.invalid"), answered},
		{"two Hosts", get("host", "lab", "host", "elsewhere.invalid"), answered},
		{"an authority with a user", headersFrame(changed(":authority", "root@lab")), "404, mark 404|400, mark 404|" + reset},
		{"no authority", headersFrame(without(":authority")), answered},
		{"no path", headersFrame(without(":path")), reset},
		{"an empty path", headersFrame(changed(":path", "")), reset},
		{"a path without a slash", headersFrame(changed(":path", "sched")), reset},
		{"a path with a blank", headersFrame(changed(":path", "/x HTTP/1.1\r\nHost: y")), reset},
		{"an asterisk", headersFrame(changed(":path", "*")), reset + "|" + answered},
		{"an address", headersFrame(changed(":path", "http://elsewhere.invalid/")), answered},
		{"no method", headersFrame(without(":method")), reset},
		{"a method with a blank", headersFrame(changed(":method", "GET / HTTP/1.1")), reset + "|405, mark 404"},
		{"CONNECT with a path", headersFrame(changed(":method", "CONNECT")), reset},
		{"no scheme", headersFrame(without(":scheme")), reset},
		{"another scheme", headersFrame(changed(":scheme", "ftp")), reset},
		{"two paths", headersFrame(literals(":path", "/") + literals(fields()...)), reset},
		{"two methods", headersFrame(literals(":method", "GET") + literals(fields()...)), reset},
		{"a pseudo field behind others", get(":path", "/"), reset},
		{"an unknown pseudo field", headersFrame(literals(append([]string{":other", "1"}, fields()...)...)), reset},
		{"a status", headersFrame(literals(append([]string{":status", "200"}, fields()...)...)), reset},
		{"two tokens", get("x-sched-user-token", token), "401, mark 404"},
		{"a token with underscores", get("x_sched_user_token", token), "401, mark 404"},
		{"less than its length", post("content-length", "100") + data("{}"), reset + "|400, mark 404|400, ended"},
		{"more than its length", post("content-length", "1") + data("{}"), reset + "|400, mark 404|reset, ended"}, // the body is not read, so the connection may end before the marker
		{"a length with a sign", post("content-length", "+2") + data("{}"), reset + "|400, mark 404|422, mark 404"},
		{"two lengths", post("content-length", "2", "content-length", "3") + data("{}"), reset + "|400, mark 404|422, mark 404"},
		{"a length of a GET without a body", get("content-length", "5"), reset + "|400, mark 404|" + answered},
		{"trailers", post() + frame(frameData, 0, 1, "{}") + headersFrame(literals("x-other", "1")), "422, mark 404"},
		{"a pseudo field in trailers", post() + frame(frameData, 0, 1, "{}") + headersFrame(literals(":path", "/")), reset},
		{"a token in trailers", strings.Replace(post(), token, strings.Repeat("x", len(token)), 1) + frame(frameData, 0, 1, "{}") + headersFrame(literals("x-sched-user-token", token)), "401, mark 404|401, " + goAway}, // the body is not read, so the connection may end before the marker
		{"trailers that do not end", post() + frame(frameData, 0, 1, "{}") + frame(frameHeaders, endHeaders, 1, literals("x-other", "1")), reset + "|" + goAway + "|400, mark 404"},
		{"padding longer than its frame", frame(frameHeaders, endStream|endHeaders|isPadded, 1, "\xff"+literals(fields()...)[:100]), reset + "|" + goAway},
		{"data behind the end", get() + data("{}"), answered + "|" + reset + "|" + goAway},
		{"data of no stream", frame(frameData, endStream, 7, "{}"), goAway},
		{"headers of the connection", frame(frameHeaders, endStream|endHeaders, 0, literals(fields()...)), goAway},
		{"a stream of even number", frame(frameHeaders, endStream|endHeaders, 2, literals(fields()...)), goAway},
		{"a stream that was", frame(frameHeaders, endStream|endHeaders, 5, literals(fields()...)) + get(), goAway},
		{"a push", frame(framePush, endHeaders, 1, encodeUint32(2)+literals(fields()...)), goAway},
		{"a continuation of nothing", frame(frameContinuation, endHeaders, 1, literals(fields()...)), goAway},
		{"headers that are interrupted", frame(frameHeaders, endStream, 1, literals(fields()...)) + frame(framePing, 0, 0, "12345678"), goAway},
		{"a frame too long", frame(frameData, 0, 1, repeat(1<<20, "a")), goAway},
		{"an unknown frame", frame(99, 0xff, 1, "?") + get(), answered},
		{"a window of nothing", frame(frameSettings, 0, 0, setting(4, 0)) + get(), answered},
		{"a window that grows by nothing", get() + frame(frameWindow, 0, 0, encodeUint32(0)), goAway},
		{"a window that overflows", get() + frame(frameWindow, 0, 0, encodeUint32(1<<31-1)), goAway},
		{"a first window that overflows", frame(frameSettings, 0, 0, setting(4, 1<<31)) + get(), goAway},
		{"a frame size too small", frame(frameSettings, 0, 0, setting(5, 1)) + get(), goAway},
		{"pushing 2", frame(frameSettings, 0, 0, setting(2, 2)) + get(), goAway},
		{"settings of no whole number", frame(frameSettings, 0, 0, "1234567") + get(), goAway},
		{"settings of a stream", frame(frameSettings, 0, 1, "") + get(), goAway},
		{"a short ping", frame(framePing, 0, 0, "1") + get(), goAway},
		{"a stream that depends on itself", frame(framePriority, 0, 1, encodeUint32(1)+"\x00") + get(), answered + "|" + reset + "|" + goAway},
		{"an index beyond the table", headersFrame("\xff\xff\xff\x7f"), goAway},
		{"index 0", headersFrame("\x80"), goAway},
		{"a table too large", headersFrame("\x3f\xff\xff\xff\x7f" + literals(fields()...)), goAway},
		{"Huffman that ends in the middle", headersFrame("\x00\x81\x00\x81\x00"), goAway},
		{"a string longer than its frame", headersFrame("\x00\x7f\xff\xff\xff\x7f"), goAway},
		{"a number without an end", headersFrame("\x7f" + repeat(100, "\xff")), goAway},
		{"a large field many times", headersFrame(literals(fields()...) + "\x40\x01x\x7f\x81\x1e" + repeat(4000, "a") + repeat(20_000, "\xbe")), "431, mark 404|" + goAway},
		{"a long header", frame(frameHeaders, endStream, 1, literals(fields()...)) + repeat(40, frame(frameContinuation, 0, 1, literals("x", repeat(10_000, "a")))) + frame(frameContinuation, endHeaders, 1, ""), "431, mark 404|" + goAway},

		{"continuations without an end", frame(frameHeaders, endStream, 1, literals(fields()...)) + repeat(20_000, frame(frameContinuation, 0, 1, literals("x", "1"))), goAway},
		{"empty continuations", frame(frameHeaders, endStream, 1, literals(fields()...)) + repeat(20_000, frame(frameContinuation, 0, 1, "")), goAway},
		{"settings by the thousand", repeat(20_000, frame(frameSettings, 0, 0, "")) + get(), goAway},
		{"pings by the thousand", repeat(20_000, frame(framePing, 0, 0, "12345678")) + get(), goAway},
		{"priorities by the thousand", concat(20_000, func(i int) string { return frame(framePriority, 0, uint32(2*i+3), encodeUint32(1)+"\x00") }) + get(), goAway},
		{"windows by the thousand", repeat(20_000, frame(frameWindow, 0, 0, encodeUint32(1))) + get(), goAway},
		{"empty data by the thousand", post() + repeat(20_000, frame(frameData, 0, 1, "")) + data("{}"), goAway},
		{"data of a byte each by the thousand", post() + repeat(20_000, frame(frameData, 0, 1, " ")) + data("{}"), goAway},
		{"unknown frames by the thousand", repeat(20_000, frame(99, 0, 0, "?")) + get(), goAway},
		{"some of each", repeat(50, frame(frameSettings, 0, 0, "")+frame(framePing, 0, 0, "12345678")+frame(framePriority, 0, 7, encodeUint32(1)+"\x00")+frame(frameWindow, 0, 0, encodeUint32(1))+frame(99, 0, 0, "?")) + get(), answered},
		{"streams that are reset at once", concat(5000, func(i int) string {
			id := uint32(2*i + 3)
			return frame(frameHeaders, endStream|endHeaders, id, literals(fields()...)) + frame(frameReset, 0, id, encodeUint32(8))
		}) + get(), goAway},
		{"bodies that are reset at once", concat(5000, func(i int) string {
			id := uint32(2*i + 3)
			return frame(frameHeaders, endHeaders, id, literals(fields()...)) + frame(frameReset, 0, id, encodeUint32(8))
		}) + get(), goAway},
		{"streams beyond the limit", concat(1000, func(i int) string {
			return frame(frameHeaders, endHeaders, uint32(2*i+3), literals(fields("content-length", "9")...))
		}), "none, mark 404|" + goAway + "|none, mark reset"},
	}
	return list
}

// TestAbusesHTTP2 checks that a request that violates HTTP/2 ends only its own
// stream or connection, and that a flood ends its connection.
func TestAbusesHTTP2(t *testing.T) {
	t.Parallel()
	s := harness.NewTLSLab(t)
	g := &harness.Gateway{Daemon: s.Daemons["schedrestd"], Lab: s.Lab, T: t}
	workers := g.Workers()
	for _, a := range h2Abuses(s.OwnToken) {
		t.Run(a.name, func(t *testing.T) {
			got := sendFrames(s, t, a.frames)
			t.Log(got)
			permitted := strings.Split(a.want, "|")
			// The gateway may answer stream 1 before it ends the connection.
			if _, end, _ := strings.Cut(got, ", "); !slices.Contains(permitted, got) && !(end == goAway && slices.Contains(permitted, goAway)) {
				t.Errorf("the outcome is %q, want %q", got, a.want)
			}
		})
	}
	s.Request("GET", "/sched/"+harness.Version+"/ping", "").Want(t, 200)
	checkUnharmed(g, t, workers)
}

// TestAbusesHTTP2Penalized sends three kinds of abuses: header blocks that get
// 431, floods, and requests on streams with a flow-control window of zero
// bytes. Without a window, the gateway can't send its answer, so the request
// occupies a slot for which other requests wait. The gateway must penalize all
// three kinds as malformed requests, and block the client for a while.
func TestAbusesHTTP2Penalized(t *testing.T) {
	t.Parallel()
	s := harness.NewTLSLab(t)
	list := h2Abuses(s.OwnToken)
	frames := func(name string) string {
		return list[slices.IndexFunc(list, func(a h2Abuse) bool { return a.name == name })].frames
	}
	oneGet := frames("a GET")
	twoGets := oneGet + oneGet[:8] + "\x03" + oneGet[9:] // with 16 slots, a connection may have at most two requests at a time
	zeroWindow := frame(frameSettings, 0, 0, setting(4, 0))
	for _, tt := range []struct {
		name, frames string
		options      []string
	}{
		{"431", frames("a large field many times"), nil},
		{"pings", frames("pings by the thousand"), nil},
		{"empty data", frames("empty data by the thousand"), nil},
		{"no window", zeroWindow + twoGets, []string{"--max-connections=16"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
			p := s.Restd
			p.Args = slices.Concat(p.Args[:len(p.Args)-2], tt.options, []string{"https://" + address})
			g := s.StartGatewayPart(t, p, []string{"SCHEDRESTD_PENALTIES=threshold:3s"})
			var wg sync.WaitGroup
			defer wg.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			harness.Eventually(t, "its source is blocked", func() bool {
				c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
				if err != nil {
					return strings.Contains(g.Logged(), "last=malformed")
				}
				context.AfterFunc(ctx, func() { c.Close() })
				wg.Go(func() {
					defer c.Close()
					_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(frameSettings, 0, 0, "")+tt.frames)
					_, _ = io.Copy(io.Discard, c)
				})
				return false
			})
		})
	}
}

// sendFrames sends frames and the marker on a connection of its own. It returns
// the outcome of stream 1 and of the marker.
func sendFrames(s *harness.TLSLab, t *testing.T, frames string) string {
	t.Helper()
	c, err := tls.Dial("tcp", s.Addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	harness.Must(t, err)
	defer c.Close()
	harness.Must(t, c.SetDeadline(time.Now().Add(time.Minute)))
	mark := literals(":method", "GET", ":scheme", "https", ":path", strings.ReplaceAll(nodePath("mark"), nonce, "00000"), ":authority", "lab", "x-sched-user-token", s.OwnToken)
	go func() { // the gateway may close the connection before everything is written
		_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"+frame(frameSettings, 0, 0, setting(1, 0))+frame(frameSettings, acknowledged, 0, "")+
			frames+frame(frameHeaders, endStream|endHeaders, markStream, mark))
	}()
	outcomes := map[uint32]string{1: "none"}
	ended := func() string {
		if outcomes[1] == "none" {
			return goAway
		}
		return outcomes[1] + ", " + goAway
	}
	in := bufio.NewReader(c)
	for settled := false; outcomes[markStream] == "" || outcomes[1] == "none" && !settled; {
		head := make([]byte, 9)
		if _, err := io.ReadFull(in, head); err != nil {
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				return "no end"
			}
			return ended()
		}
		payload := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
		if _, err := io.ReadFull(in, payload); err != nil {
			return ended()
		}
		switch id := binary.BigEndian.Uint32(head[5:]); head[3] {
		case frameHeaders:
			if outcomes[id] == "" || outcomes[id] == "none" {
				outcomes[id] = statusIn(t, payload)
			}
		case frameReset:
			if outcomes[id] == "" || outcomes[id] == "none" {
				outcomes[id] = "reset"
			}
		case frameGoAway:
			if binary.BigEndian.Uint32(payload[4:]) != 0 {
				return ended()
			}
		}
		if outcomes[markStream] != "" && !settled { // stream 1 may never get an answer
			settled = true
			if outcomes[1] == "none" {
				harness.Must(t, c.SetReadDeadline(time.Now().Add(5*time.Second)))
				settled = false
				if _, err := in.Peek(1); err != nil {
					settled = true
				}
				harness.Must(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
			}
		}
	}
	return outcomes[1] + ", mark " + outcomes[markStream]
}

// statusIn reads the status in the first header field of an answer. The
// client's settings forbid a dynamic table. So the field is either an index
// into the static table, or contains the status itself.
func statusIn(t *testing.T, block []byte) string {
	t.Helper()
	for len(block) > 0 && block[0]&0xe0 == 0x20 { // change of the table's size
		block = block[1:]
	}
	staticTable := map[byte]string{0x88: "200", 0x89: "204", 0x8a: "206", 0x8b: "304", 0x8c: "400", 0x8d: "404", 0x8e: "500"}
	if len(block) > 0 && staticTable[block[0]] != "" {
		return staticTable[block[0]]
	}
	if len(block) < 2 || block[0] < 8 || block[0] > 14 || len(block) < 2+int(block[1]&0x7f) {
		t.Errorf("an answer begins %x, with no status", block)
		return "?"
	}
	text := block[2 : 2+int(block[1]&0x7f)]
	if block[1]&0x80 == 0 {
		return string(text)
	}
	return digitsOf(text)
}

// digitsOf decodes three digits in the Huffman code of HPACK (RFC 7541,
// appendix B). The digits 0 to 2 have codes of five bits. The other digits have
// codes of six bits.
func digitsOf(text []byte) (digits string) {
	bits := ""
	for _, b := range text {
		bits += fmt.Sprintf("%08b", b)
	}
	for bits += "0"; len(digits) < 3 && len(bits) >= 6; {
		length, first := 6, 0x19-3
		if bits < "00011" {
			length, first = 5, 0
		}
		n, _ := strconv.ParseUint(bits[:length], 2, 8)
		digits, bits = digits+strconv.Itoa(int(n)-first), bits[length:]
	}
	return digits
}

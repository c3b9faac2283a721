package abuse

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// corpusVariable names the environment variable with the folder of llhttp's
// test cases for requests: test/request in its sources. The cases are not part
// of this project.
const corpusVariable = "LLHTTP_CASES"

// A corpusCase is a test case of llhttp, and what llhttp finds in it.
type corpusCase struct {
	name, text string
	requests   int    // requests whose header llhttp accepts
	complete   bool   // the last of them is complete
	refusal    string // llhttp's error; "" if there is none
}

var (
	corpusPart   = regexp.MustCompile("(?s)#+ ([^\n]*)\n([^#]*?)```http\n(.*?)\n?```.*?```log\n(.*?)```")
	corpusEvent  = regexp.MustCompile(`(message begin|headers complete|message complete)|reason="(.*)"`)
	corpusByte   = regexp.MustCompile(`\\(x[0-9a-fA-F]{2}|[0-7]{1,3})`)
	corpusStart  = regexp.MustCompile(`(?m)^([A-Z-]+ [^ \r\n]+ HTTP/1\.1)\r\n`)
	corpusText   = strings.NewReplacer("\\\n", "", "\n", "\r\n", `\r`, "\r", `\n`, "\n", `\t`, "\t", `\f`, "\f")
	refusedInput = regexp.MustCompile(`invalid HTTP/1.1 request|incomplete request header|unsupported |is too l|chunk|trailer`)

	// What llhttp refuses and the gateway accepts: each token is a method (RFC
	// 9110, 9.1), a lone LF ends a line of the header (RFC 9112, 2.2), and a
	// chunk's extension, which is ignored, may be empty.
	tolerated = regexp.MustCompile("ANNOUNCE method|Invalid method|separated by LF|Only LFs|Missing CR between headers|LF in header value|No extension after")
)

// readCorpus returns the cases in all files of a folder. A case without a Host
// gets one, because otherwise the gateway would refuse it for this reason
// alone. A chunked body is sent as a job, so that the gateway reads it. A
// request follows where llhttp finds an end or an error. It is answered only if
// the gateway finds the same end.
func readCorpus(t *testing.T, dir, token string) (list []corpusCase) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	harness.Must(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		harness.Must(t, err)
		for _, m := range corpusPart.FindAllStringSubmatch(string(data), -1) {
			c := corpusCase{name: filepath.Base(file) + ": " + m[1]}
			c.text = corpusByte.ReplaceAllStringFunc(corpusText.Replace(m[3]), func(code string) string {
				n, err := strconv.ParseUint(strings.Replace(code[1:], "x", "0x", 1), map[bool]int{true: 0, false: 8}[code[1] == 'x'], 8)
				harness.Must(t, err)
				return string([]byte{byte(n)})
			})
			if !strings.Contains(strings.ToLower(c.text), "\nhost") {
				c.text = corpusStart.ReplaceAllString(c.text, "$1\r\nHost: lab\r\n")
			}
			if strings.Contains(strings.ToLower(c.text), "\ntransfer-encoding") {
				c.text = corpusStart.ReplaceAllString(c.text, "POST /sched/"+harness.Version+"/job/submit HTTP/1.1\r\nX-SCHED-USER-TOKEN: "+token+"\r\n")
			}
			for _, e := range corpusEvent.FindAllStringSubmatch(m[4], -1) {
				c.complete, c.refusal = e[1] == "message complete", e[2]
				if e[1] == "headers complete" {
					c.requests++
				}
			}
			if strings.HasPrefix(c.refusal, "Pause on") || strings.Contains(m[2], "skipBody") {
				continue // llhttp leaves the rest of the input to its caller
			}
			if c.complete || c.refusal != "" {
				c.text += "GET /marker HTTP/1.1\r\nHost: lab\r\n\r\n"
			}
			list = append(list, c)
		}
	}
	if len(list) < 100 {
		t.Fatalf("%d cases in %s", len(list), dir)
	}
	return list
}

// judge compares the gateway's output with what llhttp finds.
func (c corpusCase) judge(t *testing.T, output string) string {
	t.Helper()
	answered, refused, closed := 0, false, false
	for in := bufio.NewReader(strings.NewReader(output)); ; {
		r, err := readReply(in, answered == 0 && strings.HasPrefix(c.text, "HEAD "))
		if r.raw == "" {
			break
		}
		if err != nil {
			t.Errorf("%s: %v in %q", c.name, err, output)
		}
		closed = strings.Contains(r.raw, "\r\nConnection: close\r\n")
		refused = closed && refusedInput.MatchString(r.text)
		if !refused && r.status != 100 {
			answered++
		}
	}
	lost := strings.HasPrefix(c.refusal, "Data after") // behind a request that closes the connection
	switch {
	case c.refusal != "" && !refused && tolerated.MatchString(c.name):
		return "accepted only by the gateway"
	case c.refusal != "" && answered <= c.requests && (refused || lost):
		return "refused by both"
	case c.refusal == "" && !c.complete && answered <= c.requests:
		return "incomplete"
	case c.complete && refused && answered <= c.requests:
		return "accepted only by llhttp"
	case c.complete && (answered == c.requests+1 || answered == c.requests && closed):
		return "accepted by both"
	}
	t.Errorf("%s: llhttp accepts %d requests (%s), the gateway %d\nof %q\nwith %q", c.name, c.requests, c.refusal, answered, c.text, output)
	return "judged differently"
}

// TestCorpus sends the cases of llhttp over each kind of connection. The
// gateway may refuse what llhttp accepts. But it must answer no request that
// llhttp does not find.
func TestCorpus(t *testing.T) {
	dir := os.Getenv(corpusVariable)
	if dir == "" {
		t.Skip("set " + corpusVariable + " to the folder test/request of llhttp's sources")
	}
	s := harness.NewTLSLab(t)
	list := readCorpus(t, dir, s.OwnToken)
	workers := s.Workers()
	socket, address := filepath.Join(harness.SocketDir(t, s.Lab), "corpus"), strings.TrimPrefix(s.URL, "http://")
	local := s.Restd
	local.Args = append(slices.Clone(local.Args[:len(local.Args)-2]), "unix:"+socket) // the lab's own listeners are in use
	s.StartGatewayPart(t, local, nil)
	send := func(text string, dial func() (net.Conn, error)) string {
		if dial == nil {
			cmd := s.InetdCommand()
			cmd.Args = slices.DeleteFunc(cmd.Args, func(arg string) bool { return arg == address })
			cmd.Stdin = strings.NewReader(text)
			output, _, _ := harness.RunCommand(t, cmd)
			return output
		}
		c, err := dial()
		harness.Must(t, err)
		defer c.Close()
		harness.Must(t, c.SetDeadline(time.Now().Add(clientTimeout)))
		_, _ = io.WriteString(c, text) // the gateway may have closed the connection already
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
		output, _ := io.ReadAll(c)
		return string(output)
	}
	for name, dial := range map[string]func() (net.Conn, error){
		"TCP": harness.DialFunc("tcp", address), "UNIX": harness.DialFunc("unix", socket), "inetd": nil,
		"TLS": func() (net.Conn, error) { return tls.Dial("tcp", s.Addr, &tls.Config{InsecureSkipVerify: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			counts := map[string]int{}
			for _, c := range list {
				counts[c.judge(t, send(c.text, dial))]++
			}
			t.Logf("%d cases: %v", len(list), counts)
		})
	}
	checkUnharmed(&harness.Gateway{Daemon: s.Daemons["schedrestd"], Lab: s.Lab, T: t}, t, workers)
}

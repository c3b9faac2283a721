package api

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// checkSizedList fails the test unless resp is a complete list of the given
// number of jobs and has a Content-Length. The list may be JSON or YAML, with
// or without gzip.
func checkSizedList(t *testing.T, resp *http.Response, jobs int) {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || resp.ContentLength != int64(len(body)) {
		t.Fatalf("status %d, Content-Length %d of %d bytes: %v", resp.StatusCode, resp.ContentLength, len(body), err)
	}
	if resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		harness.Must(t, err)
		body, err = io.ReadAll(z)
		harness.Must(t, err)
	}
	if n := bytes.Count(body, bytes.Repeat([]byte("x"), 200)); n != jobs { // the text in the jobs' comments
		t.Errorf("%d of %d jobs", n, jobs)
	}
}

// sendHTTP10 sends an HTTP/1.0 request. The gateway must close the connection
// after the answer, even if the request asks to keep the connection open.
func sendHTTP10(t *testing.T, address, request string) *http.Response {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	harness.Must(t, err)
	t.Cleanup(func() { nc.Close() })
	harness.Must(t, nc.SetDeadline(time.Now().Add(5*time.Minute)))
	_, err = io.WriteString(nc, request)
	harness.Must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
	harness.Must(t, err)
	if !resp.Close {
		t.Error("the connection stays open")
	}
	return resp
}

// TestSizedLists checks that a long list has a Content-Length if it is sent to
// an HTTP/1.0 client or to standard output. The length lets the client
// recognize an incomplete list. If there is not enough memory for the list, the
// answer has no Content-Length, and the connection must end after the answer.
func TestSizedLists(t *testing.T) {
	const jobs = 3000
	s := newFakeController(t)
	s.setAnswer(jobList(t, jobs), false)
	l := harness.NewDaemons(t)
	k := startGatewayFor(l, t, s)
	request := func(protocol, accept, coding string) string {
		return fmt.Sprintf("GET /sched/v0.0.43/jobs %s\r\nHost: x\r\nConnection: keep-alive\r\nX-SCHED-USER-TOKEN: %s\r\nAccept: %s\r\nAccept-Encoding: %s\r\n\r\n", protocol, l.OwnToken, accept, coding)
	}
	formats := [][2]string{{"application/json", "identity"}, {"application/yaml", "identity"}, {"application/json", "gzip"}, {"application/yaml", "gzip"}}
	t.Run("HTTP/1.0", func(t *testing.T) {
		for _, f := range formats {
			checkSizedList(t, sendHTTP10(t, k.Address, request("HTTP/1.0", f[0], f[1])), jobs)
		}
	})
	t.Run("inetd", func(t *testing.T) {
		var requests strings.Builder
		for _, f := range formats {
			requests.WriteString(request("HTTP/1.1", f[0], f[1]))
		}
		cmd := l.InetdCommand()
		for i, a := range cmd.Args {
			if a == l.Conf() {
				cmd.Args[i] = filepath.Join(l.Dir, "etc", "counted.conf")
			}
		}
		cmd.Stdin = strings.NewReader(requests.String())
		out, log, status := harness.RunCommand(t, cmd)
		in := bufio.NewReader(strings.NewReader(out))
		for range formats {
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%v, exit status %d\n%s", err, status, log)
			}
			checkSizedList(t, resp, jobs)
		}
	})
	t.Run("no memory", func(t *testing.T) {
		k := startGatewayFor(harness.NewDaemons(t), t, s, "SCHEDRESTD_ANSWER_MEMORY=20K")
		resp := sendHTTP10(t, k.Address, strings.Replace(request("HTTP/1.0", "application/json", "identity"), l.OwnToken, k.Lab.OwnToken, 1))
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.ContentLength != -1 || bytes.Count(body, []byte(`"comment":`)) < jobs {
			t.Errorf("Content-Length %d, %d bytes: %v", resp.ContentLength, len(body), err)
		}
	})
}

package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Inetd is the gateway without an address to listen on, not started yet.
func (l *Lab) Inetd(args ...string) *exec.Cmd {
	all := append([]string{}, l.Restd.Args[:len(l.Restd.Args)-1]...) // the last one is where the lab's own listens
	cmd := exec.Command(filepath.Join(Bin, "schedrestd"), append(all, args...)...)
	cmd.Env = append(os.Environ(), l.Restd.Env...)
	return cmd
}

// Finish runs cmd to its end and gives what it said.
func Finish(t *testing.T, cmd *exec.Cmd) (out, log string, status int) {
	t.Helper()
	var o, e bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &o
	}
	cmd.Stderr = &e
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// AnswersIn takes the answers apart that stand in text.
func AnswersIn(t *testing.T, text string) (list []Answer) {
	t.Helper()
	in := bufio.NewReader(strings.NewReader(text))
	for {
		if _, err := in.Peek(1); err != nil {
			return list
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		list = append(list, read(t, resp))
	}
}

func read(t *testing.T, resp *http.Response) Answer {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	Must(t, err)
	if resp.ContentLength != int64(len(body)) {
		t.Errorf("Content-Length %d of %d bytes", resp.ContentLength, len(body))
	}
	a := Answer{Status: resp.StatusCode, Header: resp.Header, Text: string(body)}
	Must(t, json.Unmarshal(body, &a.Body))
	return a
}

func Statuses(list []Answer) string {
	var s []int
	for _, a := range list {
		s = append(s, a.Status)
	}
	return fmt.Sprint(s)
}

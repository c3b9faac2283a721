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
	"slices"
	"strings"
	"testing"
)

// InetdCommand returns a command that runs a gateway in inetd mode. It does not
// start the command.
func (l *Lab) InetdCommand(args ...string) *exec.Cmd {
	// The last argument is the address on which the lab's gateway listens.
	base := slices.DeleteFunc(slices.Clone(l.Restd.Args[:len(l.Restd.Args)-1]), func(arg string) bool { return arg == twoWorkers })
	cmd := exec.Command(filepath.Join(Bin, "schedrestd"), append(base, args...)...)
	cmd.Env = append(os.Environ(), l.Restd.Env...)
	return cmd
}

// RunCommand runs cmd and returns its output, its log and its exit status.
func RunCommand(t *testing.T, cmd *exec.Cmd) (out, log string, status int) {
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

// ParseAnswers parses the answers in text.
func ParseAnswers(t *testing.T, text string) (list []Answer) {
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
		list = append(list, readAnswer(t, resp))
	}
}

// readAnswer reads an answer. The body must be a JSON object, and must have the
// length that Content-Length states.
func readAnswer(t *testing.T, resp *http.Response) Answer {
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

// Statuses returns the statuses of the answers as text, such as "[200 404]".
func Statuses(list []Answer) string {
	var s []int
	for _, a := range list {
		s = append(s, a.Status)
	}
	return fmt.Sprint(s)
}

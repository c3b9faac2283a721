package plan

import (
	"strings"
	"testing"

	"schedrestd/ipc"
)

// TestUnexpectedAnswer checks the error if the parent answers a request with a
// message that can't be an answer. The error must name that message.
func TestUnexpectedAnswer(t *testing.T) {
	channel, fd, err := ipc.Pair(ipc.Config, ipc.Parent)
	if err != nil {
		t.Fatal(err)
	}
	defer channel.Close()
	schedrestd, err := ipc.Open(fd, ipc.Parent, ipc.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer schedrestd.Close()
	p := parent{channel: channel}
	if err := schedrestd.Send(&ipc.ConfigSetup{}); err != nil {
		t.Fatal(err)
	}
	if err := p.receiveSetup(); err != nil {
		t.Fatal(err)
	}
	if err := schedrestd.Send(&ipc.Variable{Text: "A=b"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Open("/c"); err == nil || !strings.HasPrefix(err.Error(), "Variable ") {
		t.Errorf("got %v", err)
	}
}

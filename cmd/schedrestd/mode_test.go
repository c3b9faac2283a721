package main

import (
	"bytes"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestModes: who serves where nobody said on what address.
func TestModes(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, tt := range []struct {
		name    string
		listen  []string
		sockets []*os.File
		want    mode
	}{
		{"an address", []string{":1"}, nil, listening},
		{"a socket that was passed", nil, []*os.File{null}, listening},
		{"both", []string{":1"}, []*os.File{null}, listening},
		{"neither, and no terminal", nil, nil, inetd},
	} {
		o := options{listen: tt.listen}
		if got := o.runMode(tt.sockets, null); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// TestAnnounce: what has no effect in inetd mode is said, and a person is told what to type.
func TestAnnounce(t *testing.T) {
	var out bytes.Buffer
	var from slog.LevelVar
	log := newLog(&out, &from)
	inetd.announce(options{}, log)
	if out.Len() > 0 {
		t.Errorf("said without a reason:\n%s", &out)
	}
	inetd.announce(options{threads: 2}, log)
	if !strings.Contains(out.String(), "-t is ignored") || !strings.Contains(out.String(), "level=WARN") {
		t.Errorf("-t is not said to be ignored:\n%s", &out)
	}
	out.Reset()
	interactive.announce(options{}, log)
	if !strings.Contains(out.String(), "interactive mode: type") {
		t.Errorf("a person is not told:\n%s", &out)
	}
}

// TestLogIsNoAnswer: where standard error is the client's socket nothing is written to it.
func TestLogIsNoAnswer(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	again, err := syscall.Dup(pair[0])
	if err != nil {
		t.Fatal(err)
	}
	client, same, other := os.NewFile(uintptr(pair[0]), "in"), os.NewFile(uintptr(again), "err"), os.NewFile(uintptr(pair[1]), "journal")
	defer client.Close()
	defer same.Close()
	defer other.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	for _, tt := range []struct {
		name    string
		in, err *os.File
		want    bool
	}{
		{"the client's socket twice", client, same, true},
		{"another socket", client, other, false},
		{"a file", client, write, false},
		{"a pipe, which a person joined", write, write, false},
	} {
		if got := sameSocket(tt.in, tt.err); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

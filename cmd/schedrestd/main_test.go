package main

import (
	"os"
	"syscall"
	"testing"
)

// TestLogIsNotSentToClient checks that sameSocket recognises the client's
// socket, to which no log lines may be written.
func TestLogIsNotSentToClient(t *testing.T) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	dup, err := syscall.Dup(pair[0])
	if err != nil {
		t.Fatal(err)
	}
	client, duplicate, journal := os.NewFile(uintptr(pair[0]), "in"), os.NewFile(uintptr(dup), "err"), os.NewFile(uintptr(pair[1]), "journal")
	defer client.Close()
	defer duplicate.Close()
	defer journal.Close()
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
		{"the client's socket twice", client, duplicate, true},
		{"another socket", client, journal, false},
		{"a file", client, write, false},
		{"a pipe, which a person joined", write, write, false},
	} {
		if got := sameSocket(tt.in, tt.err); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

package main

import (
	"os"
	"syscall"
	"testing"
)

// TestLogIsNotSentToClient checks that nothing is written to standard error if
// it is the client's socket.
func TestLogIsNotSentToClient(t *testing.T) {
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

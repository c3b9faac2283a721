// Package ipc implements the messages between the gateway's processes: framing,
// the protocol table, and descriptor passing.
//
// A channel is a SOCK_SEQPACKET pair, so the kernel keeps message boundaries. A
// frame is one byte, the kind of the message, followed by the message's fields
// in little-endian order. The method Walk of a message both encodes and decodes
// the fields. A reader first checks the frame against the protocol table (kind,
// direction, phase, size, number of descriptors). Then it decodes the frame and
// rejects leftover bytes.
//
// The package is strict because the peer may be a compromised worker. Receive
// returns a *Violation for an unknown kind, a message out of order, a wrong
// size, or a missing or surplus descriptor. The caller then kills the peer and
// never answers the message.
//
// To use the package, start with Pair and Open, then Channel.Send and
// Channel.Receive. The protocol table is in table.go; docs/generated/MESSAGES.md has a
// generated copy.
package ipc

// MaxMessage is the maximum length of a frame in bytes, including the kind. It
// limits how much memory one message from a hostile peer can cost the reader.
const MaxMessage = 32 << 10

// NamespaceInitMode is the last argument of the worker's program when it runs
// as the first process (init) of a PID namespace. The argument before it
// contains the process's SandboxOptions, and the maximum number of processes in
// the namespace. The process sends Proven, and runs until its channel is
// closed.
const NamespaceInitMode = "namespace-init"

// tableVersion identifies the protocol table and the encoding of all messages.
// It is the checksum of testdata/table.txt, which describes both.
// TestTableVersion fails if tableVersion or testdata/table.txt is out of date.
//
// The first message that a process receives begins with the sender's
// tableVersion. The process checks this version before any field that may
// differ between builds, so that it can report a wrong build as the reason for
// its exit. Versions have no order.
const tableVersion = 0xe36d90b6

// WorkerFD is the descriptor of a worker's channel to the parent.
const WorkerFD = 3

// ConfigFD is the descriptor of schedrestd-config's channel to the parent.
const ConfigFD = WorkerFD

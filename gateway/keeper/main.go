// Package keeper implements the process that holds the gateway's secrets: the
// private key of its https:// listeners, and the key for HS256 tokens. Workers,
// which read input from the network, ask the keeper to sign their handshakes
// and to verify tokens. An attacker who compromises a worker can make the
// keeper sign handshakes while that worker runs, but never gets a key.
//
// The keeper starts like a worker, with an identity of its own. The parent
// gives it the keys and the certificates as open files. After the start, the
// dispatcher has the other end of the channel, and gives the keeper a
// channel to each worker. The keeper signs only messages that a TLS server
// signs in a handshake. A worker must send the whole message, because the
// keeper could not check a digest.
//
// For a gateway token of a portal, which acts for the members of a group, the keeper
// asks the resolver about the user (member.go), on a channel that the parent makes.
//
// The keeper opens no file by name, uses no network, and parses only PEM, the key set of
// RS256 tokens, tokens that a key has signed, the protocol's messages and the messages to
// sign. It exits when its channel to the dispatcher closes.
package keeper

import (
	"schedrestd/gateway/service"
	"schedrestd/ipc"
	"schedrestd/security/sandbox"
	"schedrestd/security/self"
)

// Rename sets the name of the process. It must be called from an init function.
func Rename() { self.Rename("schedrestd-keep") }

// Main runs the keeper and returns its exit status.
func Main() int {
	return service.Main(ipc.Keeper, confine, func(dispatcher *ipc.Channel) service.Service { return newKeeper(dispatcher) })
}

func confine(setup ipc.ServiceSetup) (sandbox.Layers, error) {
	s := setup.Sandbox
	return sandbox.Close(sandbox.Options{Kind: sandbox.Keeper, Register: s&ipc.SandboxFile != 0, Audit: s&ipc.SandboxAudit != 0}, s&ipc.SandboxRequire != 0)
}

// Package query has the messages between workers and services: what a worker asks
// the keeper and the auditor, and their answers. The parent takes no part in these
// channels and does not link the package, so that it knows none of them.
package query

import "schedrestd/ipc"

// Rows are the rows of these messages. The comment above a row is its meaning in
// docs/PRIVSEP.md.
var Rows = ipc.Register(
	// sign this handshake; the message itself, never a digest
	ipc.Of[Sign](19, ipc.Worker, ipc.Keeper, ipc.In(ipc.Born), 12, 12+maxHandshake, 0, ipc.Born),
	// the signature; empty when the keeper does not sign that
	ipc.Of[Signed](20, ipc.Keeper, ipc.Worker, ipc.In(ipc.Born), 10, 10+maxSignature, 0, ipc.Born),
	// is this token's HS256 signature good?
	ipc.Of[Verify](21, ipc.Worker, ipc.Keeper, ipc.In(ipc.Born), 42, 42+maxSigned, 0, ipc.Born),
	// yes, no, or that there is no key to tell with
	ipc.Of[Verified](22, ipc.Keeper, ipc.Worker, ipc.In(ipc.Born), 9, 9, 0, ipc.Born),
	// a change is about to be made for a connection of this worker: may it?
	ipc.Of[Intent](47, ipc.Worker, ipc.Auditor, ipc.In(ipc.Born), 36, 36+3*maxName+maxSource+maxMethod+maxRoute+maxObject+maxFields, 0, ipc.Born),
	// the audit log has the intent, and the change may be made; or it must not be, or not yet
	ipc.Of[Noted](48, ipc.Auditor, ipc.Worker, ipc.In(ipc.Born), 9, 9, 0, ipc.Born),
	// what became of a change that was let through; owed once
	ipc.Of[Outcome](49, ipc.Worker, ipc.Auditor, ipc.In(ipc.Born), 18, 18+maxCode+maxObject, 0, ipc.Born),
)

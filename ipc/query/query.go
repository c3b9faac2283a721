// Package query defines messages that the parent neither sends nor receives:
// requests from workers to the keeper and the auditor, a request from the keeper
// to the resolver, the answers to these requests, and the counts for the metrics. The parent does not link this
// package.
package query

import (
	"schedrestd/ipc"

	"schedrestd/internal/keystate"
)

// Rows are this package's rows of the protocol table. The comment above a row
// is its description in docs/generated/MESSAGES.md.
var Rows = ipc.Register(
	// asks for the signature of a whole handshake message, never of a digest
	ipc.Of[Sign](19, ipc.Worker, ipc.Keeper, ipc.In(ipc.Initial), 12, 12+maxHandshake, 0, ipc.Initial),
	// the signature; empty when the keeper refuses
	ipc.Of[Signed](20, ipc.Keeper, ipc.Worker, ipc.In(ipc.Initial), 10, 10+maxSignature, 0, ipc.Initial),
	// asks whether the HS256 signature of a token is valid
	ipc.Of[Verify](21, ipc.Worker, ipc.Keeper, ipc.In(ipc.Initial), 42, 42+maxSigned, 0, ipc.Initial),
	// the decision: the signature is valid, or it is forged, or the keeper
	// can't tell because it has no key or an outdated key
	ipc.Of[Verified](22, ipc.Keeper, ipc.Worker, ipc.In(ipc.Initial), 9, 9, 0, ipc.Initial),
	// asks for a token that the daemons accept, in exchange for a gateway token,
	// and names the user to act as
	ipc.Of[Exchange](23, ipc.Worker, ipc.Keeper, ipc.In(ipc.Initial), 45, 45+maxGatewayToken+maxUser, 0, ipc.Initial),
	// the token, or why there is none: the gateway token is forged, has expired
	// or is revoked, or does not act for this user, or the keeper can't tell
	ipc.Of[Exchanged](24, ipc.Keeper, ipc.Worker, ipc.In(ipc.Initial), 11, 11+maxBearer, 0, ipc.Initial),
	// asks with which key and which register the keeper decides about gateway tokens
	ipc.Of[AskDigests](25, ipc.Worker, ipc.Keeper, ipc.In(ipc.Initial), 8, 8, 0, ipc.Initial),
	// digests of the key and of the register
	ipc.Of[Digests](27, ipc.Keeper, ipc.Worker, ipc.In(ipc.Initial), 12, 12+2*maxDigest, 0, ipc.Initial),
	// asks for the uid of a user, and whether the user is a member of a group
	ipc.Of[AskMember](109, ipc.Keeper, ipc.Resolver, ipc.In(ipc.Initial), 13, 13+2*maxUser, 0, ipc.Initial),
	// the answer, or a report that the user database is unavailable
	ipc.Of[Membership](110, ipc.Resolver, ipc.Keeper, ipc.In(ipc.Initial), 20, 20+4*MaxGroups, 0, ipc.Initial),
	// asks for a number that stands for the user of a token when a process is
	// started that reads this user's files
	ipc.Of[VouchFor](118, ipc.Worker, ipc.Keeper, ipc.In(ipc.Initial), 47, 47+maxSigned+maxRSA+maxUser, 0, ipc.Initial),
	// the number, or why there is none
	ipc.Of[VouchedFor](119, ipc.Keeper, ipc.Worker, ipc.In(ipc.Initial), 21, 21, 0, ipc.Initial),
	// a part of the body of a message to a daemon
	ipc.Of[StampPart](131, ipc.Worker, ipc.Keeper, ipc.In(ipc.Initial), 4, 4+maxBody, 0, ipc.Initial),
	// asks for the credential of this message, in the name of the user of a gateway token
	ipc.Of[Stamp](132, ipc.Worker, ipc.Keeper, ipc.In(ipc.Initial), 48, 48+maxGatewayToken+maxUser+maxBody, 0, ipc.Initial),
	// the credential, or why there is none
	ipc.Of[Stamped](133, ipc.Keeper, ipc.Worker, ipc.In(ipc.Initial), 25, 25+ipc.MaxReason+maxStamp, 0, ipc.Initial),
	// asks for a credential of the process's user, for a message with this hash
	ipc.Of[GetCredential](134, ipc.Keeper, ipc.Credential, ipc.In(ipc.Initial), 9+payloadLen, 9+payloadLen, 0, ipc.Initial),
	// the credential, or why there is none
	ipc.Of[GotCredential](135, ipc.Credential, ipc.Keeper, ipc.In(ipc.Initial), 12, 12+ipc.MaxReason+maxStamp, 0, ipc.Initial),
	// asks to list, revoke or create gateway tokens of the user of a token
	ipc.Of[ManageTokens](140, ipc.Worker, ipc.Keeper, ipc.In(ipc.Initial), 59, 59+maxSigned+maxUser+maxTokenID+maxLabel, 0, ipc.Initial),
	// what was done or, if nothing was, why
	ipc.Of[TokensManaged](141, ipc.Keeper, ipc.Worker, ipc.In(ipc.Initial), 17, 17+maxUser+maxGatewayToken+MaxListed*(listedTokenSize+maxTokenID+maxUser+maxScopes+maxLabel), 0, ipc.Initial),
	// asks for permission to make a change for a connection of this worker, and
	// claims the change's Idempotency-Key, if it has one; key, user and request
	// are sent as hashes
	ipc.Of[Intent](47, ipc.Worker, ipc.Auditor, ipc.In(ipc.Initial), 40, 40+4*maxName+maxSource+maxMethod+maxRoute+maxObject+maxFields+keySize, 0, ipc.Initial),
	// the decision: the change is in the audit log and may be made, or it must
	// not be made, or the worker may ask again later; if an earlier request with
	// the key was answered, also that answer
	ipc.Of[IntentDecision](48, ipc.Auditor, ipc.Worker, ipc.In(ipc.Initial), 12, 12+keystate.MaxAnswer, 0, ipc.Initial),
	// the result of a permitted change, sent once; with an Idempotency-Key also
	// the answer to later requests with the key
	ipc.Of[Outcome](49, ipc.Worker, ipc.Auditor, ipc.In(ipc.Initial), 21, 21+maxCode+maxObject+keystate.MaxAnswer, 0, ipc.Initial),
	// the Outcome of a change with an Idempotency-Key was handled and, if
	// possible, written to the disk
	ipc.Of[Settled](26, ipc.Auditor, ipc.Worker, ipc.In(ipc.Initial), 8, 8, 0, ipc.Initial),
	// asks for a part of a file of the process's user, named by its path
	ipc.Of[ReadOutput](111, ipc.Worker, ipc.Output, ipc.In(ipc.Initial), 26, 26+maxOutputPath, 0, ipc.Initial),
	// the part of the file and what the kernel reports about the file, or why it
	// can't be read
	ipc.Of[OutputPart](112, ipc.Output, ipc.Worker, ipc.In(ipc.Initial), 47, 47+MaxOutputPart, 0, ipc.Initial),
	// what a worker has counted since its previous Counts, and the numbers of
	// requests, calls to daemons and so on that it has at present
	ipc.Of[Counts](101, ipc.Worker, ipc.Dispatcher, ipc.In(ipc.Handover, ipc.Serving, ipc.Draining), 22, 22+6*MaxCounts, 0, ipc.Initial),
	// asks for the samples of all metrics
	ipc.Of[Scrape](102, ipc.Exporter, ipc.Dispatcher, ipc.In(ipc.Handover, ipc.Serving), 0, 0, 0, ipc.Initial),
	// some of the samples; the last of these messages is marked
	ipc.Of[Samples](103, ipc.Dispatcher, ipc.Exporter, ipc.In(ipc.Handover, ipc.Serving), 3, 3+10*MaxSamples, 0, ipc.Initial),
)

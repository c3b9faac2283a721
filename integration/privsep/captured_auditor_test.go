package privsep

import (
	"cmp"
	little "encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"schedrestd/internal/keystate"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// The following functions make messages that a captured worker sends to the
// auditor.

// intentFrame returns a function that encodes an Intent, the message that
// announces a change on a connection.
func intentFrame(connection uint64) func() []byte {
	return func() []byte {
		raw := append([]byte{byte(ipc.KindOf(new(query.Intent)))}, make([]byte, 36)...)
		little.LittleEndian.PutUint64(raw[1:], 1)
		little.LittleEndian.PutUint64(raw[9:], connection)
		return raw
	}
}

// claimFrame returns a function that encodes a Claim, the message that reserves
// an Idempotency-Key. Each call to this function uses a new key.
func claimFrame() func() []byte {
	id := uint64(0)
	return func() []byte {
		id++
		raw := append([]byte{byte(ipc.KindOf(new(query.Claim)))}, make([]byte, 104)...)
		little.LittleEndian.PutUint64(raw[1:], id)
		little.LittleEndian.PutUint64(raw[9:], id)
		return raw
	}
}

// settleFrame returns a function that encodes a Settle, the message with the
// result of a change whose Idempotency-Key was reserved.
func settleFrame(claim uint64, state keystate.State) func() []byte {
	return func() []byte {
		raw := append([]byte{byte(ipc.KindOf(new(query.Settle)))}, make([]byte, 19)...)
		little.LittleEndian.PutUint64(raw[9:], claim)
		raw[17] = byte(state)
		return raw
	}
}

var auditorAttacks = []serviceAttack{
	{name: "a claim of an Idempotency-Key, for an invented user", frame: claimFrame()},
	{name: "the same claim twice", frame: zeroFrame(ipc.KindOf(new(query.Claim)), 104), times: 2, neverReads: true, breaksProtocol: true},
	{name: "the end of a claim that the worker does not have", frame: settleFrame(7, keystate.Answered), breaksProtocol: true},
	{name: "the end of a claim, with an invalid state", frame: settleFrame(7, keystate.Running), breaksProtocol: true},
	{name: "Claim cut short", frame: zeroFrame(ipc.KindOf(new(query.Claim)), 103), breaksProtocol: true},
	{name: "Claim with trailing bytes", frame: zeroFrame(ipc.KindOf(new(query.Claim)), 105), breaksProtocol: true},
	{name: "Settle with more than the longest answer", frame: zeroFrame(ipc.KindOf(new(query.Settle)), 20+keystate.MaxAnswer), breaksProtocol: true},
	{name: "a confirmation that it has a claim (Claimed)", frame: zeroFrame(ipc.KindOf(new(query.Claimed)), 11), breaksProtocol: true},
	{name: "a confirmation that the end of a claim was recorded (Settled)", frame: zeroFrame(ipc.KindOf(new(query.Settled)), 8), breaksProtocol: true},
	{name: "a file of its own for Idempotency-Keys (ClaimsFD)", frame: zeroFrame(ipc.KindOf(new(ipc.ClaimsFD)), 1), breaksProtocol: true},

	{name: "a change on a connection that never existed", frame: intentFrame(1 << 40), breaksProtocol: true},
	{name: "the outcome of a change that was not permitted", frame: zeroFrame(ipc.KindOf(new(query.Outcome)), 18), breaksProtocol: true},

	// Messages that the protocol does not define, or that a worker may not
	// send.
	{name: "a kind that is not in the protocol", frame: zeroFrame(99, 0), breaksProtocol: true},
	{name: "forged facts (ConnectionFacts)", frame: zeroFrame(ipc.KindOf(new(work.ConnectionFacts)), 31), breaksProtocol: true},
	{name: "the end of another worker's connection (ConnectionReleased)", frame: zeroFrame(ipc.KindOf(new(work.ConnectionReleased)), 8), breaksProtocol: true},
	{name: "the exit of another worker (WorkerExited)", frame: zeroFrame(ipc.KindOf(new(work.WorkerExited)), 6), breaksProtocol: true},
	{name: "a log file of its own (LogFD)", frame: zeroFrame(ipc.KindOf(new(ipc.LogFD)), 4), breaksProtocol: true},
	{name: "a log file of its own, with a descriptor", frame: zeroFrame(ipc.KindOf(new(ipc.LogFD)), 4), fds: 1, breaksProtocol: true},
	{name: "a confirmation that the file can be written (LogFileResult)", frame: zeroFrame(ipc.KindOf(new(ipc.LogFileResult)), 2), breaksProtocol: true},
	{name: "a second channel (WorkerChannel)", frame: zeroFrame(ipc.KindOf(new(work.WorkerChannel)), 16), breaksProtocol: true},
	{name: "permission for a change (IntentDecision)", frame: zeroFrame(ipc.KindOf(new(query.IntentDecision)), 9), breaksProtocol: true},
	{name: "WorkerViolation, about another worker", frame: zeroFrame(ipc.KindOf(new(work.WorkerViolation)), 6), breaksProtocol: true},
	{name: "Lookup, as if to the resolver", frame: zeroFrame(ipc.KindOf(new(work.Lookup)), 15), breaksProtocol: true},
	{name: "Intent cut short", frame: zeroFrame(ipc.KindOf(new(query.Intent)), 35), breaksProtocol: true},
	{name: "Intent with trailing bytes", frame: zeroFrame(ipc.KindOf(new(query.Intent)), 37), breaksProtocol: true},
	{name: "Intent with more than the longest texts", frame: zeroFrame(ipc.KindOf(new(query.Intent)), 1694), breaksProtocol: true},
	{name: "an oversized message", frame: zeroFrame(ipc.KindOf(new(query.Intent)), 60_000), breaksProtocol: true},
	{name: "its side of the channel shut down", close: true},
	{name: "an empty packet", frame: func() []byte { return nil }},
}

const (
	beginAuditorAttacks = "<!-- attacks on the auditor: generated by go test ./integration/privsep -run TestCaptured -update -->\n"
	endAuditorAttacks   = "<!-- end of attacks on the auditor -->\n"
)

// TestCapturedTellsTheAuditor checks that each message of a captured worker to
// the auditor has the effect that docs/generated/ATTACKS*.md states, and leaves no line
// in the audit log. At the end the same auditor must still run.
func TestCapturedTellsTheAuditor(t *testing.T) {
	t.Parallel()
	t.Run("without root", func(t *testing.T) { testAuditorAttacks(t, plainUser(t), testConfig{}) })
	t.Run("as root", func(t *testing.T) {
		needRoot(t)
		testAuditorAttacks(t, nil, testConfig{Service: identityOf("nobody", "nogroup", "")})
	})
}

func testAuditorAttacks(t *testing.T, as user, c testConfig) {
	c.Audit.Path = auditDir(t, as)
	c.Audit.Claims = filepath.Join(filepath.Dir(c.Audit.Path), "keys")
	g := serve(t, as, c)
	auditor := int(g.await("auditor ready", nil)["pid"].(float64))
	table := &strings.Builder{}
	fmt.Fprintf(table, "| sent to the auditor | result | logged about that worker |\n|---|---|---|\n")
	for _, one := range auditorAttacks {
		outcome, logged := g.runServiceAttack(2, one)
		fmt.Fprintf(table, "| %s | %s | %s |\n", one.name, outcome, cmp.Or(logged, "–"))
	}
	if lines := auditRecords(t, c.Audit.Path); len(lines) > 0 {
		t.Errorf("the audit log has %v", lines)
	}
	if n := g.count("auditor ready"); n != 1 || syscall.Kill(auditor, 0) != nil {
		t.Errorf("there were %d auditors", n)
	}
	checkTable(t, beginAuditorAttacks, endAuditorAttacks, table.String())
}

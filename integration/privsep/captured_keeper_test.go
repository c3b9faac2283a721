package privsep

import (
	"bytes"
	"cmp"
	"encoding/base64"
	little "encoding/binary"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/gateway/dispatcher/process"
	"schedrestd/internal/setting"
	"schedrestd/ipc"
	"schedrestd/ipc/query"
	"schedrestd/ipc/work"
)

// The following functions make messages that a captured worker sends to the
// keeper.

// serviceAttack is one message of a captured worker to a service.
type serviceAttack struct {
	name           string
	frame          func() []byte
	fds            int
	times          int  // how often it is sent; 0: once
	neverReads     bool // the attacker reads no answer
	breaksProtocol bool // the message violates the protocol table; the attacker waits until the parent kills the worker
	close          bool // the attacker closes its half of the channel

	stolen string // token of a portal that the attacker has stolen
}

// handshake returns a text that a TLS 1.3 server signs. The text ends with a
// hash of the given number of bytes.
func handshake(hash int) []byte {
	return append([]byte(strings.Repeat(" ", 64)+"TLS 1.3, server CertificateVerify\x00"), bytes.Repeat([]byte{7}, hash)...)
}

const ecdsaSHA256 = 0x0403

// signFrame returns a function that encodes a request for a signature.
func signFrame(scheme uint16, message []byte) func() []byte {
	return func() []byte { return encodeSign(scheme, message) }
}

func encodeSign(scheme uint16, message []byte) []byte {
	raw := append([]byte{byte(ipc.KindOf(new(query.Sign)))}, make([]byte, 8)...)
	raw = little.LittleEndian.AppendUint16(raw, scheme)
	raw = little.LittleEndian.AppendUint16(raw, uint16(len(message)))
	return append(raw, message...)
}

// verifyFrame returns a function that encodes a question about a token's
// signature.
func verifyFrame(signed string, mac []byte) func() []byte {
	return func() []byte {
		raw := append([]byte{byte(ipc.KindOf(new(query.Verify)))}, make([]byte, 8)...)
		raw = little.LittleEndian.AppendUint16(raw, uint16(len(signed)))
		return append(append(raw, signed...), mac...)
	}
}

// exchangeFrame returns a function that encodes a question for a token of the
// daemons, in exchange for the stolen token of a portal, as a user. A forged token
// has another signature.
func exchangeFrame(actAs string, forged bool) func() []byte {
	return func() []byte {
		signed, signature, _ := cutLast(stolenToken, ".")
		mac, err := base64.RawURLEncoding.DecodeString(signature)
		if err != nil || len(mac) != 32 {
			return nil
		}
		if forged {
			mac = noMAC
		}
		raw := append([]byte{byte(ipc.KindOf(new(query.Exchange)))}, make([]byte, 8)...)
		raw = little.LittleEndian.AppendUint16(raw, uint16(len(signed)))
		raw = append(append(raw, signed...), mac...)
		raw = little.LittleEndian.AppendUint16(raw, uint16(len(actAs)))
		return append(append(raw, actAs...), 0)
	}
}

// vouchFrame returns a function that encodes a question for a process of the user of a
// token: of the stolen token of a portal, as a user, or of a forged one.
func vouchFrame(actAs string, gateway, forged bool) func() []byte {
	return func() []byte {
		raw := exchangeFrame(actAs, forged)() // with another kind, the message differs only in its flag and an empty signature at its end
		if raw == nil {
			return nil
		}
		raw[0] = byte(ipc.KindOf(new(query.VouchFor)))
		if raw[len(raw)-1] = 0; gateway {
			raw[len(raw)-1] = 1
		}
		return append(raw, 0, 0)
	}
}

// manageFrame returns a function that encodes a question about gateway tokens, with the
// stolen token of a portal, or with a forged one of Slurm.
func manageFrame(q query.ManageTokens, forged bool) func() []byte {
	return func() []byte {
		signed, signature, _ := cutLast(stolenToken, ".")
		mac, err := base64.RawURLEncoding.DecodeString(signature)
		if err != nil || len(mac) != len(q.MAC) {
			return nil
		}
		q.Signed = []byte(signed)
		if copy(q.MAC[:], mac); forged {
			q.Signed, q.MAC = []byte(header13), [32]byte{}
		}
		if raw, err := ipc.Encode(&q); err == nil {
			return raw
		}
		return nil
	}
}

func cutLast(text, sep string) (before, after string, found bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(sep):], true
}

// stolenToken is the token of a portal that the captured worker of this process has
// seen. It acts for the members of the group daemon, the only one of whom in the
// tests is the user daemon.
var stolenToken string

// zeroFrame returns a function that returns a frame of zeros.
func zeroFrame(kind ipc.Kind, size int) func() []byte {
	return func() []byte { return append([]byte{byte(kind)}, make([]byte, size)...) }
}

// Headers and payloads of two tokens, without signatures. In header13 the
// algorithm is HS256. In headerNone it is "none".
const (
	header13   = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJyb290In0"
	headerNone = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJyb290In0"
)

var (
	noMAC      = make([]byte, 32)
	transcript = handshake(32)
)

func client13() []byte { return bytes.Replace(transcript, []byte("server"), []byte("client"), 1) }

// params12 returns the text that a TLS 1.2 server signs: two randoms and an
// X25519 key.
func params12() []byte {
	return slices.Concat(make([]byte, 64), []byte{3, 0, 29, 32}, make([]byte, 32))
}

var keeperAttacks = []serviceAttack{
	// Honest requests must succeed. Otherwise the failures of the other
	// requests would prove nothing.
	{name: "sign a TLS 1.3 handshake", frame: signFrame(ecdsaSHA256, transcript)},
	{name: "verify a forged token", frame: verifyFrame(header13, noMAC)},

	// Texts that a server never signs.
	{name: "sign a digest", frame: signFrame(ecdsaSHA256, noMAC)},
	{name: "sign nothing", frame: signFrame(ecdsaSHA256, nil)},
	{name: "sign as a TLS client", frame: signFrame(ecdsaSHA256, client13())},
	{name: "sign a text with 63 leading spaces instead of 64", frame: signFrame(ecdsaSHA256, transcript[1:])},
	{name: "sign with a transcript of 31 bytes", frame: signFrame(ecdsaSHA256, handshake(31))},
	{name: "sign with a transcript of 64 bytes", frame: signFrame(ecdsaSHA256, handshake(64))},
	{name: "sign a handshake with trailing bytes", frame: signFrame(ecdsaSHA256, append(slices.Clone(transcript), transcript...))},
	{name: "sign a TLS 1.2 handshake although TLS 1.2 is disabled", frame: signFrame(ecdsaSHA256, params12())},
	{name: "sign a token", frame: signFrame(ecdsaSHA256, []byte(header13))},
	{name: "sign a certificate", frame: signFrame(ecdsaSHA256, append([]byte{0x30, 0x82, 1, 0x22}, make([]byte, 0x122)...))},
	{name: "sign with RSA PKCS #1", frame: signFrame(0x0401, transcript)},
	{name: "sign with SHA-1", frame: signFrame(0x0203, transcript)},
	{name: "sign with an invalid scheme", frame: signFrame(0xffff, transcript)},
	{name: "request 2000 signatures of a digest", frame: signFrame(ecdsaSHA256, noMAC), times: 2000},
	{name: "request signatures endlessly, and read none", frame: signFrame(ecdsaSHA256, transcript), times: 10_000, neverReads: true},

	// Tokens.
	{name: "verify a token with the algorithm none", frame: verifyFrame(headerNone, noMAC)},
	{name: "verify 24 KiB of garbage", frame: verifyFrame(strings.Repeat("\xff\x00", 12<<10), noMAC)},
	{name: "verify nothing", frame: verifyFrame("", noMAC)},
	{name: "guess a token's signature 2000 times", frame: verifyFrame(header13, noMAC), times: 2000},
	{name: "request verdicts endlessly, and read none", frame: verifyFrame(strings.Repeat("x", 24<<10), noMAC), times: 10_000, neverReads: true},

	// Tokens of the daemons, with the stolen token of a portal. The first question is
	// an honest one.
	{name: "act as a member of the group of a portal's token", frame: exchangeFrame("daemon", false)},
	{name: "act as a user who is not a member", frame: exchangeFrame("bin", false)},
	{name: "act as a user who does not exist", frame: exchangeFrame("no-such-user", false)},
	{name: "act as root with a portal's token", frame: exchangeFrame("root", false)},
	{name: "act as uid 0 with a portal's token", frame: exchangeFrame("0", false)},
	{name: "act as the token's own user", frame: exchangeFrame("", false)},
	{name: "act as a user whose name ends the text in the daemons' token", frame: exchangeFrame(`daemon","sun":"root`, false)},
	{name: "act as a member with a forged token", frame: exchangeFrame("daemon", true)},
	{name: "act as a user who is not a member, 2000 times", frame: exchangeFrame("bin", false), times: 2000},

	// Processes of users, although no output is read: the parent asks for no vouches.
	{name: "a process of a member of the group of a portal's token", frame: vouchFrame("daemon", true, false)},
	{name: "a process of a user who is not a member", frame: vouchFrame("bin", true, false)},
	{name: "a process of root, with a portal's token", frame: vouchFrame("root", true, false)},
	{name: "a process of a user, with a forged token", frame: vouchFrame("daemon", true, true)},
	{name: "a process of a user, with a portal's token as one of Slurm's", frame: vouchFrame("daemon", false, false)},
	// Gateway tokens of others, with the stolen token of a portal. The first question is
	// an honest one.
	{name: "list the token of a portal itself", frame: manageFrame(query.ManageTokens{Gateway: true, ActAs: "daemon"}, false)},
	{name: "create a gateway token with a gateway token", frame: manageFrame(query.ManageTokens{Gateway: true, ActAs: "daemon", Action: query.CreateToken, Scopes: 127, Seconds: 3600}, false)},
	{name: "create a gateway token with a gateway token as one of Slurm's", frame: manageFrame(query.ManageTokens{Action: query.CreateToken, Scopes: 127, Seconds: 3600}, false)},
	{name: "create a gateway token with a forged token of root", frame: manageFrame(query.ManageTokens{Action: query.CreateToken, Scopes: 127, Seconds: 3600}, true)},
	{name: "revoke another token with a gateway token", frame: manageFrame(query.ManageTokens{Gateway: true, ActAs: "daemon", Action: query.RevokeOne, Token: strings.Repeat("A", 26)}, false)},
	{name: "revoke all tokens of a user with a gateway token", frame: manageFrame(query.ManageTokens{Gateway: true, ActAs: "daemon", Action: query.RevokeOwn}, false)},
	{name: "revoke all tokens of a user with a forged token", frame: manageFrame(query.ManageTokens{Action: query.RevokeOwn}, true)},
	{name: "revoke the token of a portal, as a user who is not a member", frame: manageFrame(query.ManageTokens{Gateway: true, ActAs: "root", Action: query.RevokeOne}, false)},
	{name: "list the token of a portal 2000 times", frame: manageFrame(query.ManageTokens{Gateway: true, ActAs: "daemon"}, false), times: 2000},
	{name: "a report that the register was replaced (RegisterMoved)", frame: zeroFrame(ipc.KindOf(new(work.RegisterMoved)), 0), breaksProtocol: true},
	{name: "the keeper's message TokensManaged", frame: zeroFrame(ipc.KindOf(new(query.TokensManaged)), 17), breaksProtocol: true},
	{name: "ManageTokens with an unknown action", frame: func() []byte {
		raw := manageFrame(query.ManageTokens{Gateway: true}, false)()
		if raw != nil {
			raw[len(raw)-14] = 9
		}
		return raw
	}, breaksProtocol: true},

	{name: "the keeper's word to the parent (Vouch)", frame: zeroFrame(ipc.KindOf(new(ipc.Vouch)), 18), breaksProtocol: true},
	{name: "the parent's answer (Vouched)", frame: zeroFrame(ipc.KindOf(new(ipc.Vouched)), 8), breaksProtocol: true},
	{name: "channels to a parent and a resolver of its own (KeeperChannels)", frame: zeroFrame(ipc.KindOf(new(ipc.KeeperChannels)), 0), breaksProtocol: true},

	{name: "the resolver's answer that a user is a member (Membership)", frame: zeroFrame(ipc.KindOf(new(query.Membership)), 20), breaksProtocol: true},
	{name: "a register of its own (TokenRegister)", frame: zeroFrame(ipc.KindOf(new(work.TokenRegister)), 16), breaksProtocol: true},
	{name: "Exchange with a name of 65 bytes", frame: exchangeFrame(strings.Repeat("x", 65), false), breaksProtocol: true},

	// Messages that are not in the protocol table, or that a worker may not
	// send.
	{name: "a message that is not in the protocol table", frame: zeroFrame(99, 0), breaksProtocol: true},
	{name: "kind 0", frame: zeroFrame(0, 0), breaksProtocol: true},
	{name: "the parent's message ServiceSetup", frame: zeroFrame(ipc.KindOf(new(ipc.ServiceSetup)), 8), breaksProtocol: true},
	{name: "the parent's message Attributes", frame: zeroFrame(ipc.KindOf(new(ipc.Attributes)), 2), breaksProtocol: true},
	{name: "keys of its own (SecretKeys)", frame: zeroFrame(ipc.KindOf(new(ipc.SecretKeys)), 8), breaksProtocol: true},
	{name: "a second channel (WorkerChannel)", frame: zeroFrame(ipc.KindOf(new(work.WorkerChannel)), 4), breaksProtocol: true},
	{name: "the dispatcher's message Ping", frame: zeroFrame(ipc.KindOf(new(ipc.Ping)), 8), breaksProtocol: true},
	{name: "the keeper's message Signed", frame: zeroFrame(ipc.KindOf(new(query.Signed)), 10), breaksProtocol: true},
	{name: "the keeper's message Verified", frame: zeroFrame(ipc.KindOf(new(query.Verified)), 9), breaksProtocol: true},
	{name: "the keeper's message KeysResult", frame: zeroFrame(ipc.KindOf(new(ipc.KeysResult)), 7), breaksProtocol: true},
	{name: "a report that another worker violated the protocol (WorkerViolation)", frame: zeroFrame(ipc.KindOf(new(work.WorkerViolation)), 6), breaksProtocol: true},
	{name: "ConnectionDone, as if to the dispatcher", frame: zeroFrame(ipc.KindOf(new(work.ConnectionDone)), 8), breaksProtocol: true},
	{name: "Ready, as if to the dispatcher", frame: zeroFrame(ipc.KindOf(new(ipc.Ready)), 2), breaksProtocol: true},
	{name: "Sign cut short", frame: zeroFrame(ipc.KindOf(new(query.Sign)), 11), breaksProtocol: true},
	{name: "Sign with trailing bytes", frame: zeroFrame(ipc.KindOf(new(query.Sign)), 13), breaksProtocol: true},
	{name: "Sign with a message longer than any handshake", frame: signFrame(ecdsaSHA256, make([]byte, 1025)), breaksProtocol: true},
	{name: "Sign with a length beyond the end of the message", frame: func() []byte { return signFrame(ecdsaSHA256, transcript)()[:60] }, breaksProtocol: true},
	{name: "Sign with a descriptor", frame: signFrame(ecdsaSHA256, transcript), fds: 1, breaksProtocol: true},
	{name: "Sign with 100 descriptors", frame: signFrame(ecdsaSHA256, transcript), fds: 100, breaksProtocol: true},
	{name: "Verify with a signature of 31 bytes", frame: verifyFrame(header13, noMAC[1:]), breaksProtocol: true},
	{name: "Verify with a text longer than any token", frame: verifyFrame(strings.Repeat("x", 24<<10+1), noMAC), breaksProtocol: true},
	{name: "an oversized message", frame: zeroFrame(ipc.KindOf(new(query.Verify)), 60_000), breaksProtocol: true},
	{name: "its side of the channel shut down", close: true},
	{name: "an empty packet", frame: func() []byte { return nil }},
}

// services lists each service with the messages that a captured worker sends to
// it. A worker has one channel to each service. The field nth is the index of
// this channel, starting at 0. The keeper's channel and the auditor's channel
// have the same index, so the list is correct only for a gateway that does not
// run both services.
var services = []struct {
	role     ipc.Role
	nth      int
	attacks  []serviceAttack
	reported string // the log's message about a worker that broke the protocol
}{
	{ipc.Resolver, 0, resolverAttacks, "resolver: worker violated the protocol"},
	{ipc.Keeper, 1, keeperAttacks, "keeper: worker violated the protocol"},
	{ipc.Auditor, 1, auditorAttacks, "auditor: worker violated the protocol"},
}

// steal returns the descriptor of the worker's nth channel to a service. It
// removes the descriptor from the runtime's poller, and waits for a moment, so
// that the worker's own code no longer receives from the channel.
func steal(nth int) int {
	for fd := ipc.WorkerFD + 1; fd < 100; fd++ {
		if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_SEQPACKET {
			continue
		}
		if nth--; nth >= 0 {
			continue
		}
		for poller := ipc.WorkerFD + 1; poller < 100; poller++ {
			if unix.EpollCtl(poller, unix.EPOLL_CTL_DEL, fd, nil) == nil {
				time.Sleep(10 * time.Millisecond) // the worker's own reader, if it was running, is waiting by now and is not woken again
				return fd
			}
		}
	}
	return -1
}

// handleServiceAttack handles the requests that the test sends to a captured
// worker. For each request, the worker sends one message to a service.
func handleServiceAttack(w http.ResponseWriter, r *http.Request) {
	var to int
	fmt.Sscan(r.FormValue("to"), &to)
	list := services[to].attacks
	at := slices.IndexFunc(list, func(s serviceAttack) bool { return s.name == r.FormValue("name") })
	stolenToken = r.FormValue("stolen")
	fd := steal(services[to].nth)
	if at < 0 || fd < 0 {
		fmt.Fprintf(w, "NO SUCH THING, OR NO CHANNEL: %d, %d", at, fd)
		return
	}
	for n := 1; n > 0; { // discard answers to the worker's own requests
		n, _, _ = unix.Recvfrom(fd, make([]byte, ipc.MaxMessage), unix.MSG_DONTWAIT)
	}
	fmt.Fprint(w, list[at].run(fd))
}

// run sends the message and returns the service's answer.
func (s serviceAttack) run(fd int) string {
	if s.close {
		_ = unix.Shutdown(fd, unix.SHUT_WR)
		return receive(fd, nil)
	}
	var oob []byte
	if s.fds > 0 {
		oob = unix.UnixRights(slices.Repeat([]int{2}, s.fds)...)
	}
	answers := map[string]int{}
	for n := range max(1, s.times) {
		frame := s.frame()
		err := sendRights(fd, frame, oob)
		switch {
		case err == unix.EAGAIN && s.neverReads && s.breaksProtocol:
			return wait()
		case err == unix.EAGAIN && s.neverReads:
			return "fills only its own channel"
		case (err == unix.ECONNRESET || err == unix.EPIPE) && s.breaksProtocol: // the service noticed the violation before the last message
			return wait()
		case err != nil:
			return fmt.Sprintf("CAN'T SAY IT %d TIMES: %v", n, err)
		case s.breaksProtocol && n == max(1, s.times)-1:
			return wait()
		case !s.neverReads:
			answers[receive(fd, frame)]++
		}
	}
	if len(answers) != 1 {
		return fmt.Sprintf("ANSWERS: %v", answers)
	}
	for answer := range answers {
		return answer
	}
	return ""
}

// receive reads the answer to the given message. It skips answers to the worker's
// own requests, which have other ids: on a busy machine they may still arrive.
func receive(fd int, message []byte) string {
	const id = 1 // the place of the id, of eight bytes, in each message
	raw := make([]byte, ipc.MaxMessage)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
		n, _, err := unix.Recvfrom(fd, raw, unix.MSG_DONTWAIT)
		switch {
		case err == unix.EAGAIN:
			continue
		case err != nil:
			return unix.ErrnoName(err.(syscall.Errno))
		case n == 0:
			return "loses its channel to the service"
		case len(message) >= id+8 && n >= id+8 && isAnswer(raw[0]) && !bytes.Equal(raw[id:id+8], message[id:id+8]):
			continue
		case raw[0] == byte(ipc.KindOf(new(query.Signed))) && n == 11:
			return "gets no signature"
		case raw[0] == byte(ipc.KindOf(new(query.Signed))):
			return "gets a signature"
		case raw[0] == byte(ipc.KindOf(new(work.LookupResult))):
			if raw[9] == 0 {
				return "is answered: unknown"
			}
			return fmt.Sprintf("is answered: %q", raw[12:12+int(raw[10])])
		case raw[0] == byte(ipc.KindOf(new(query.Exchanged))) && raw[9] == byte(query.Genuine):
			return "gets a token for " + userOf(string(raw[12:n]))
		case raw[0] == byte(ipc.KindOf(new(query.Exchanged))):
			return "is answered: " + map[byte]string{byte(query.NoVerdict): "UNKNOWN", byte(query.Forged): "forged", byte(query.Revoked): "revoked", byte(query.NotForUser): "not for this user"}[raw[9]]
		case raw[0] == byte(ipc.KindOf(new(query.VouchedFor))) && raw[9] == byte(query.Genuine):
			if bytes.Equal(raw[10:18], make([]byte, 8)) {
				return "gets none"
			}
			return "GETS A PROCESS"
		case raw[0] == byte(ipc.KindOf(new(query.VouchedFor))):
			return "is answered: " + map[byte]string{byte(query.NoVerdict): "UNKNOWN", byte(query.Forged): "forged", byte(query.NotForUser): "not for this user"}[raw[9]]
		case raw[0] == byte(ipc.KindOf(new(query.TokensManaged))):
			return describeManaged(raw[1:n])
		case raw[0] == byte(ipc.KindOf(new(query.Verified))):
			return "is answered: " + map[byte]string{byte(query.Genuine): "genuine", byte(query.Forged): "forged"}[raw[9]]
		}
		return fmt.Sprintf("HEARS %x", raw[:n])
	}
	return "HEARS NOTHING"
}

// describeManaged describes the answer to a question about gateway tokens.
func describeManaged(fields []byte) string {
	var m query.TokensManaged
	if err := ipc.Unmarshal(fields, &m); err != nil {
		return "HEARS " + err.Error()
	}
	switch {
	case m.Verdict == query.Forged:
		return "is answered: forged"
	case m.Verdict == query.NotForUser:
		return "is answered: not for this user"
	case m.Verdict != query.Genuine:
		return fmt.Sprintf("HEARS VERDICT %d", m.Verdict)
	case len(m.Token) > 0:
		return "GETS A TOKEN"
	case m.Result == query.NotOfThisToken:
		return "is answered: only itself"
	case m.Result == query.Managed:
		return fmt.Sprintf("is answered: %d recorded", len(m.Tokens))
	}
	return fmt.Sprintf("HEARS RESULT %d", m.Result)
}

// userOf returns the user of a daemons' token.
func userOf(bearer string) string {
	_, rest, _ := strings.Cut(bearer, ".")
	payload, _, _ := strings.Cut(rest, ".")
	text, _ := base64.RawURLEncoding.DecodeString(payload)
	_, user, _ := strings.Cut(string(text), `"sun":"`)
	return strings.TrimSuffix(user, `"}`)
}

// isAnswer reports whether messages of this kind answer a request.
func isAnswer(kind byte) bool {
	switch ipc.Kind(kind) {
	case ipc.KindOf(new(query.Signed)), ipc.KindOf(new(query.Verified)), ipc.KindOf(new(query.Exchanged)), ipc.KindOf(new(query.VouchedFor)), ipc.KindOf(new(query.TokensManaged)), ipc.KindOf(new(work.LookupResult)):
		return true
	}
	return false
}

const (
	beginKeeperAttacks = "<!-- attacks on the keeper: generated by go test ./integration/privsep -run TestCaptured -update -->\n"
	endKeeperAttacks   = "<!-- end of attacks on the keeper -->\n"
)

// TestCapturedAsksTheKeeper checks that each message of a captured worker to
// the keeper has the effect that docs/generated/ATTACKS*.md states. After each message
// the keeper must still sign and verify for other workers, and at the end the
// same keeper must still run.
func TestCapturedAsksTheKeeper(t *testing.T) {
	t.Parallel()
	t.Run("without root", func(t *testing.T) { testKeeperAttacks(t, plainUser(t), testConfig{}) })
	t.Run("as root", func(t *testing.T) {
		needRoot(t)
		testKeeperAttacks(t, nil, testConfig{Service: identityOf("nobody", "nogroup", "")})
	})
}

func testKeeperAttacks(t *testing.T, as user, c testConfig) {
	v, s := newVault(t, as), newSite(t, as)
	c.Listen = listens("127.0.0.1:0", "https://127.0.0.2:0")
	stolen := setUpPortal(t, v, &c)
	c = v.config(c)
	c.TLS = s.TLS
	g := serve(t, as, c)
	secure := g.await("serving", nil)["listen"].([]any)[1].(string) // the log sorts the listeners
	keeper := g.keeperPID(1)
	table := &strings.Builder{}
	fmt.Fprintf(table, "| sent to the keeper | result | logged about that worker |\n|---|---|---|\n")
	for _, one := range keeperAttacks {
		one.stolen = stolen
		outcome, logged := g.runServiceAttack(1, one)
		fmt.Fprintf(table, "| %s | %s | %s |\n", one.name, outcome, cmp.Or(logged, "–"))
		if _, _, err := secured(s.client(secure), "/pid"); err != nil {
			t.Errorf("after %q no client is served over TLS: %v", one.name, err)
		}
		g.awaitVerdict(hs256(v.key), "good")
		g.awaitVerdict(hs256(strangersKey), "bad")
	}
	if n := g.count("keeper ready"); n != 1 || syscall.Kill(keeper, 0) != nil {
		t.Errorf("there were %d keepers", n)
	}
	checkTable(t, beginKeeperAttacks, endKeeperAttacks, table.String())
}

// setUpPortal lets the gateway accept gateway tokens, and returns one that acts for
// the members of the group daemon.
func setUpPortal(t *testing.T, v *vault, c *testConfig) (token string) {
	t.Helper()
	register := filepath.Join(filepath.Dir(v.Key), "tokens")
	v.put(register, "", 0o644)
	c.Setup = packed(work.Setup{Cluster: "c", Tokens: setting.Tokens{Register: register, MinUID: 1}})
	now := time.Now().Truncate(time.Second)
	token, err := gatewaytoken.Sign(gatewaytoken.Token{Cluster: "c", User: "portal", ActFor: "daemon", Scopes: scope.ComputeRead,
		ID: gatewaytoken.NewID(), Issued: now, Expires: now.Add(time.Hour)}, v.key)
	must(t, err)
	return token
}

// runServiceAttack makes a worker send a message to a service. It chooses a
// worker that has already served a request. It returns the outcome and the
// reason that the log states. Afterwards it kills the worker, because the
// worker has lost its channel to the service.
func (g *gateway) runServiceAttack(to int, one serviceAttack) (outcome, logged string) {
	g.t.Helper()
	pid, answer, err := g.attackWorker(fmt.Sprintf("/says?to=%d&name=%s&stolen=%s", to, url.QueryEscape(one.name), one.stolen))
	number := g.await("worker ready", func(r map[string]any) bool { return r["pid"] == float64(pid) })["worker"]
	refused := strings.Contains(answer, "no signature")
	reported := services[to].reported
	if refused {
		reported = "keeper: signature refused"
	}
	if refused || one.breaksProtocol && one.fds == 0 { // the filter kills a worker that sends descriptors, so the service can't report the message
		r := g.awaitAny(func(r map[string]any) bool {
			return r["client"] == fmt.Sprint(number) && strings.HasPrefix(fmt.Sprint(r["msg"]), reported)
		})
		logged = fmt.Sprint(r["error"])
	}
	if err == nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	end := g.awaitAny(func(r map[string]any) bool { return r["worker"] == number && endsWorker(r) })
	if err != nil && end["msg"] == process.WorkerViolation {
		return "is killed by SIGSYS", ""
	}
	if err != nil {
		return "is " + strings.TrimPrefix(fmt.Sprint(end["msg"]), "worker "), fmt.Sprint(end["because"])
	}
	return answer, logged
}

package privsep

import (
	"encoding/base64"
	big "encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/api/scope"
	"schedrestd/auth/gatewaytoken"
	"schedrestd/become/nss"
	"schedrestd/gateway/worker/broker"
	"schedrestd/gateway/worker/keys"
	"schedrestd/internal/errs"
	"schedrestd/internal/setting"
	"schedrestd/ipc/work"
	"schedrestd/rpc/payload"
)

// bound is a gateway whose keeper decides about each message to a daemon.
type bound struct {
	*gateway
	vault           *vault
	register, munge string
	tokens          map[string]string // by name
}

// The users of the tokens.
var boundUsers = []string{"daemon", "bin"}

// serveBound starts a gateway for which a munged of the test issues credentials. It
// also reads output, so that the keeper gives numbers for processes that do.
func serveBound(t *testing.T, c testConfig) *bound {
	t.Helper()
	needRoot(t)
	needSandbox(t)
	v := newVault(t, nil)
	b := &bound{vault: v, register: filepath.Join(filepath.Dir(v.Key), "tokens"), munge: serveMunge(t), tokens: map[string]string{}}
	v.put(b.register, "", 0o644)
	c.Setup = packed(work.Setup{Cluster: "c", Tokens: setting.Tokens{Register: b.register, MinUID: 1}, TokenOutput: true,
		Credentials: work.Credentials{Munge: work.Munge{Socket: b.munge}, SchedUID: v.uid}})
	c.Setup.LogLevel = int8(slog.LevelDebug)
	c.Service = identityOf("nobody", "nogroup", "")
	c.Service.MinUID = 1
	c.Switches.Credentials, c.Switches.Output = true, true
	b.gateway = serve(t, nil, v.config(c))
	b.issue("daemon reads", "daemon", "", scope.ComputeRead)
	b.issue("bin reads", "bin", "", scope.ComputeRead)
	b.issue("daemon can do all", "daemon", "", scope.All)
	b.issue("portal reads", "portal", "daemon", scope.ComputeRead)
	b.issue("will be revoked", "daemon", "", scope.ComputeRead)
	return b
}

// issue adds a token. One that acts for others does so for the members of a group.
func (b *bound) issue(name, user, group string, scopes scope.Set) {
	now := time.Now().Truncate(time.Second)
	token, err := gatewaytoken.Sign(gatewaytoken.Token{Cluster: "c", User: user, ActFor: group, Scopes: scopes, ID: idOf(name), Issued: now, Expires: now.Add(time.Hour)}, b.vault.key)
	must(b.vault.t, err)
	b.tokens[name] = token
}

// idOf returns the id of a token.
func idOf(name string) string {
	letters := strings.ToUpper(strings.ReplaceAll(name, " ", ""))
	return (letters + strings.Repeat("A", 26))[:26]
}

// serveMunge acts as a munged. Its credentials are not secret: they consist of the uid
// of the process that asks, and the payload.
func serveMunge(t *testing.T) (socket string) {
	t.Helper()
	socket = filepath.Join(sharedDir(t), "munge")
	must(t, listenAsMunge(t, socket))
	return socket
}

func listenAsMunge(t *testing.T, socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerMunge(c.(*net.UnixConn))
		}
	}()
	return os.Chmod(socket, 0o777)
}

func answerMunge(c *net.UnixConn) {
	defer c.Close()
	header := make([]byte, 11)
	if _, err := io.ReadFull(c, header); err != nil {
		return
	}
	request := make([]byte, big.BigEndian.Uint32(header[7:]))
	if _, err := io.ReadFull(c, request); err != nil || len(request) < payload.Size {
		return
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return
	}
	var peer *unix.Ucred
	if raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return
	}
	text := inventedCredential(peer.Uid, request[len(request)-payload.Size:]) + "\x00"
	body := big.BigEndian.AppendUint32([]byte{0, 0}, uint32(len(text)))
	body = append(body, text...)
	header[5] = 3 // the answer to a request for a credential
	big.BigEndian.PutUint32(header[7:], uint32(len(body)))
	_, _ = c.Write(append(header, body...))
}

func inventedCredential(uid uint32, hash []byte) string {
	return "MUNGE:" + base64.StdEncoding.EncodeToString(append(big.BigEndian.AppendUint32(nil, uid), hash...)) + ":"
}

// stampHandler gets the credential of a message as an intact worker does.
func stampHandler(s work.Setup, tokens *keys.Keys, b *broker.Broker) http.HandlerFunc {
	if s.Credentials.IsZero() {
		return http.NotFound
	}
	tokens.StampWith(b)
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := tokens.Stamp(r.Context(), r.FormValue("token"), "", readNodes, []byte("\x00\x01"))
		if err != nil {
			slog.Info("no credential", "error", err, "hint", errs.HintOf(err))
			fmt.Fprintf(w, "no credential: %v", err)
			return
		}
		fmt.Fprint(w, text)
	}
}

// stamped returns the result of an intact worker's message for a user, in words.
func (b *bound) stamped(name string) string {
	b.t.Helper()
	uid := uidOf(name)
	for deadline := time.Now().Add(patience); ; {
		text, err := get(client("tcp", b.addr, false), "/stamp?token="+b.tokens[name+" reads"])
		switch {
		case time.Now().After(deadline):
			b.t.Fatalf("%v: %s", err, text)
		case err != nil, strings.Contains(text, "has just exited"):
			time.Sleep(200 * time.Millisecond)
		case text == inventedCredential(uid, payload.Of(readNodes, []byte("\x00\x01"))):
			return "good"
		default:
			return text
		}
	}
}

func uidOf(name string) uint32 {
	u, err := nss.LookupUser(name)
	if err != nil {
		panic(err)
	}
	return u.UID
}

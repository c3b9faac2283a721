package worker

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"schedrestd/gateway/worker/clientconn"
	"schedrestd/ipc/work"
)

// TestDrainOfFullConnections checks a drain with clients of TLS connections that
// read nothing. The end of a TLS stream, for which the kernel has no room, must
// delay neither the drain nor, for long, the end of the connection. Neither must
// the answer to a KeyUpdate.
func TestDrainOfFullConnections(t *testing.T) {
	limits := testLimits
	limits.Stall, limits.Idle, limits.Drain = time.Hour, time.Hour, 40*time.Second
	st := newTestServer(t, work.Setup{Limits: limits}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for range 20 { // crypto/tls waits five seconds for each of them
		st.fillIdleTLS()
	}
	st.requestKeys(st.fillIdleTLS())
	st.requestKeys(st.fillIdleTLS())
	st.table.Reclaim(nextID.Load())
	closed := make(chan struct{})
	go func() { st.table.Wait(); close(closed) }()
	go st.shutdown()
	select {
	case <-closed:
	case <-time.After(limits.Drain):
		t.Fatal("the connections are not closed")
	}
	<-st.exit
}

// fillIdleTLS opens a TLS connection whose client receives an answer, and then
// reads nothing. It fills the connection until the kernel accepts no more bytes.
// It returns the client's end, and the secret with which the client encrypts.
func (st *testServer) fillIdleTLS() (conn net.Conn, secret []byte) {
	t := st.t
	t.Helper()
	conn = st.connectTLS(0, "http/1.1")
	var secrets bytes.Buffer
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, KeyLogWriter: &secrets})
	io.WriteString(client, get+host+"\r\n")
	_, err := http.ReadResponse(bufio.NewReader(client), nil)
	must(t, err)
	fill(t, st.newest.Value())
	_, text, _ := strings.Cut(secrets.String(), "CLIENT_TRAFFIC_SECRET_0 ")
	_, err = fmt.Sscanf(text, "%x %x", new([]byte), &secret)
	must(t, err)
	if suite := client.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		t.Skip("the server has chosen another cipher: ", tls.CipherSuiteName(suite))
	}
	return conn, secret
}

// fill fills the connection to a client until the kernel accepts no more bytes.
func fill(t *testing.T, c *clientconn.Conn) {
	t.Helper()
	raw, err := c.Conn.(syscall.Conn).SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		for piece := make([]byte, 64<<10); len(piece) > 0; {
			if _, err := syscall.Write(int(fd), piece); err != nil {
				piece = piece[:len(piece)/2]
			}
		}
	}))
}

// requestKeys sends a KeyUpdate that requests another one (RFC 8446, 4.6.3), as the
// second record of the client, and further ones until the server waits for space
// for its answer. The server answers when it reads.
func (st *testServer) requestKeys(client net.Conn, secret []byte) {
	expand := func(label string, length int) []byte {
		info := append([]byte{0, byte(length), byte(6 + len(label))}, "tls13 "+label+"\x00"...)
		key, err := hkdf.Expand(sha256.New, secret, string(info), length)
		must(st.t, err)
		return key
	}
	c := st.newest.Value()
	for sequence := byte(1); !c.IsWriting(); sequence = 0 {
		block, err := aes.NewCipher(expand("key", 16))
		must(st.t, err)
		aead, err := cipher.NewGCM(block)
		must(st.t, err)
		nonce := expand("iv", 12)
		nonce[11] ^= sequence
		const keyUpdate = "\x18\x00\x00\x01\x01" + "\x16"
		header := []byte{0x17, 3, 3, 0, byte(len(keyUpdate) + aead.Overhead())}
		fill(st.t, c)
		_, err = client.Write(aead.Seal(header, nonce, []byte(keyUpdate), header))
		must(st.t, err)
		secret = expand("traffic upd", len(secret))
		time.Sleep(100 * time.Millisecond) // the server may need longer, and then gets one more
	}
}

package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"schedrestd/auth"
	"schedrestd/gateway/worker"
	"schedrestd/gateway/worker/broker"
	"schedrestd/gateway/worker/keys"
	"schedrestd/ipc/work"
	"schedrestd/rpc/client"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// captured is a worker in its complete sandbox that belongs to an attacker. It asks the
// keeper for the credentials of the messages that the attacker names, and sends them to
// the controller with any message. Other requests are served.
type captured struct {
	worker.Handler
	setup work.Setup
	keys  *keys.Keys
	dial  func(context.Context, client.Address) (net.Conn, error)
}

func capture(setup work.Setup, k *keys.Keys, b *broker.Broker) (worker.Handler, error) {
	h, err := worker.NewHandler(setup, k, b)
	return &captured{h, setup, k, b.Dialer(work.UpstreamController, setup.Controllers, "")}, err
}

func (c *captured) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number := func(name string) int {
		n, _ := strconv.Atoi(r.FormValue(name))
		return n
	}
	body := func(name string) []byte {
		b, _ := hex.DecodeString(r.FormValue(name))
		return b
	}
	token := r.Header.Get("X-SLURM-USER-TOKEN")
	switch r.URL.Path {
	case "/captured/ask":
		_ = json.NewEncoder(w).Encode(c.ask(r.Context(), token, number("first"), number("last"), body("body")))
	case "/captured/send":
		_ = json.NewEncoder(w).Encode(c.send(r.Context(), token, codec.Version(number("version")), number("of"), body("of_body"), number("as"), body("as_body")))
	default:
		c.Handler.ServeHTTP(w, r)
	}
}

// Asked contains the keeper's answers about the messages of a range of numbers.
type Asked struct {
	Got     []int          // numbers of those with a credential
	Refused int            // how many are not in the token's scopes
	Other   map[string]int // other answers
}

func (c *captured) ask(ctx context.Context, token string, first, last int, body []byte) (a Asked) {
	a.Other = map[string]int{}
	numbers := make(chan int)
	var mu sync.Mutex
	var asking sync.WaitGroup
	for range 8 { // more of one user would wait for each other
		asking.Go(func() {
			for n := range numbers {
				text, err := c.keys.Stamp(ctx, token, "", uint16(n), body)
				mu.Lock()
				switch {
				case err == nil && text != "":
					a.Got = append(a.Got, n)
				case errors.Is(err, auth.ErrNotInScope):
					a.Refused++
				default:
					a.Other[err.Error()]++
				}
				mu.Unlock()
			}
		})
	}
	for n := first; n <= last; n++ {
		numbers <- n
	}
	close(numbers)
	asking.Wait()
	return a
}

// Sent is the controller's answer to a message.
type Sent struct {
	Type  message.Type
	Code  uint32 // if Type is ResponseRC
	Error string // of the keeper or the connection
}

// send gets the credential of one message, and sends it with another one.
func (c *captured) send(ctx context.Context, token string, v codec.Version, number int, body []byte, as int, asBody []byte) (s Sent) {
	fail := func(err error) Sent { return Sent{Error: err.Error()} }
	text, err := c.keys.Stamp(ctx, token, "", uint16(number), body)
	if err != nil {
		return fail(err)
	}
	credential := &message.Credential{Plugin: message.PluginMunge, Text: text}
	if c.setup.Credentials.Slurm() {
		credential.Plugin = message.PluginSlurm
	}
	front, err := message.Front(v, 0, message.Type(as), credential, len(asBody))
	if err != nil {
		return fail(err)
	}
	to := c.setup.Controllers[0]
	nc, err := c.dial(ctx, client.Address{Name: to.Name, Network: to.Network, Address: to.Address})
	if err != nil {
		return fail(err)
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
	if _, err := nc.Write(append(front, asBody...)); err != nil {
		return fail(err)
	}
	if as == int(message.RequestPersistInit) {
		_ = nc.SetDeadline(time.Now().Add(200 * time.Millisecond)) // 26.05 refuses it without closing the connection
	}
	var length [4]byte
	if _, err := io.ReadFull(nc, length[:]); err != nil {
		return fail(err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(nc, answer); err != nil {
		return fail(err)
	}
	f, err := message.ParseFrame(answer)
	if err != nil {
		return fail(err)
	}
	s.Type = f.Header.Type
	if s.Type == message.ResponseRC && len(f.Body) >= 4 {
		s.Code = binary.BigEndian.Uint32(f.Body)
	}
	return s
}

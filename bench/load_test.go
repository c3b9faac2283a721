package bench

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"schedrestd/bundled/demo/site"
)

// load is a number of identical requests.
type load struct {
	request      string // with a %s for headers
	keepAlive    bool   // use persistent connections; if false, open a new connection for each request
	count        int
	local        bool          // send no token, because the kernel identifies the user
	singleClient bool          // one client instead of several
	token        func() string // returns the token for the next request; if nil, the lab's token is used

	after func(*testing.B) // called after each round, outside the measurement; may be nil
}

func get(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: bench\r\n%s\r\n"
}

func post(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%%s\r\n", path, len(body)) + body
}

// dialer opens a new connection for the client with the given number.
type dialer func(client int) (net.Conn, error)

// tcpDialer returns a dialer for a TCP address.
func tcpDialer(address string) dialer {
	return func(int) (net.Conn, error) { return net.Dial("tcp", address) }
}

// run sends all requests from several clients, or from one if singleClient is
// set, and reads the answers. Any status other than 200 is an error.
func (l load) run(dial dialer) error {
	var next func() string
	switch {
	case l.token != nil:
		next = func() string { return l.text(l.token()) }
	case l.local:
		text := l.text("")
		next = func() string { return text }
	default:
		text := l.text(theLab.token)
		next = func() string { return text }
	}
	var remaining atomic.Int64
	remaining.Store(int64(l.count))
	n := clients
	if l.singleClient {
		n = 1
	}
	failures := make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { failures[i] = l.client(i, dial, next, &remaining) })
	}
	wait.Wait()
	return errors.Join(failures...)
}

// text returns the text of a request. If token is "", the request contains no
// token.
func (l load) text(token string) string {
	var headers string
	if token != "" {
		headers = "X-SCHED-USER-TOKEN: " + token + "\r\n"
	}
	if !l.keepAlive {
		headers += "Connection: close\r\n"
	}
	return fmt.Sprintf(l.request, headers)
}

func (l load) client(i int, dial dialer, next func() string, remaining *atomic.Int64) error {
	for remaining.Load() > 0 {
		c, err := dial(i)
		if err != nil {
			return err
		}
		err = l.requestLoop(c, next, remaining)
		c.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// requestLoop sends requests on one connection until none are left. If the load
// l does not use persistent connections, requestLoop sends only one request.
func (l load) requestLoop(c net.Conn, next func() string, remaining *atomic.Int64) error {
	in := bufio.NewReader(c)
	for remaining.Add(-1) >= 0 {
		if _, err := io.WriteString(c, next()); err != nil {
			return err
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			method, rest, _ := strings.Cut(l.request, " ")
			path, _, _ := strings.Cut(rest, " ")
			return site.ResponseError(method, path, resp.Status, body)
		}
		if !l.keepAlive {
			return nil
		}
	}
	return nil
}

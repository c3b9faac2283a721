package privsep

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// client returns a client that sends requests to one address. If keep is false,
// it opens a new connection for each request.
func client(network, addr string, keep bool) *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: !keep,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		},
	}}
}

// get sends a request over a new connection.
func (g *gateway) get(path string) (string, error) { return get(client("tcp", g.addr, false), path) }

func get(c *http.Client, path string) (string, error) {
	return do(c, http.MethodGet, path)
}

// sendAttack makes a worker carry out an attack. It sends a POST, which the
// client sends only once. If sendAttack sent a GET and the attack killed the
// worker, the client would send the GET again over another connection, and
// another worker would repeat the attack.
func sendAttack(c *http.Client, path string) (string, error) {
	return do(c, http.MethodPost, path)
}

func do(c *http.Client, method, path string) (string, error) {
	request, err := http.NewRequest(method, "http://gateway"+path, nil)
	if err != nil {
		return "", err
	}
	r, err := c.Do(request)
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", r.StatusCode, body)
	}
	return string(body), err
}

// mustGet repeats a request until it is answered. If a worker exits during the
// request, the connection may break. Tests that call mustGet do not test that.
func (g *gateway) mustGet(path string) string {
	g.t.Helper()
	var last error
	for end := time.Now().Add(patience); time.Now().Before(end); {
		body, err := g.get(path)
		if err == nil {
			return body
		}
		last = err
	}
	g.t.Fatalf("GET %s: %v", path, last)
	return ""
}

package integration

import (
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHalfClosedClients: a client that shuts down its sending side after a
// request, as nc -N and socat do, gets the answer.
func TestHalfClosedClients(t *testing.T) {
	s := newSecure(t)
	socket := filepath.Join(servedDir(t, s.lab), "half")
	local := s.restd
	local.Args = append(slices.Clone(local.Args[:len(local.Args)-2]), "unix:"+socket) // the others are taken
	s.gateOf(t, local, nil)
	secured := func() (net.Conn, error) { return tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true}) }
	token, job := "X-SCHED-USER-TOKEN: "+s.userToken+"\r\n", s.jobRequest("true", nil)
	list := "/sched/" + version + "/nodes"
	requests := map[string]string{
		"GET":         "GET " + list + " HTTP/1.1\r\nHost: lab\r\n" + token + "\r\n",
		"HTTP/1.0":    "GET " + list + " HTTP/1.0\r\n" + token + "\r\n",
		"submission":  "POST /sched/" + version + "/job/submit HTTP/1.1\r\nHost: lab\r\n" + token + sized(job) + "\r\n" + job,
		"two of them": strings.Repeat("GET "+list+" HTTP/1.1\r\nHost: lab\r\n"+token+"\r\n", 2),
	}
	for name, dial := range map[string]func() (net.Conn, error){
		"TCP": dials("tcp", strings.TrimPrefix(s.url, "http://")), "UNIX": dials("unix", socket), "TLS": secured,
	} {
		for what, text := range requests {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				for range 20 {
					c, err := dial()
					must(t, err)
					must(t, c.SetDeadline(time.Now().Add(patient)))
					_, err = io.WriteString(c, text)
					must(t, err)
					must(t, c.(interface{ CloseWrite() error }).CloseWrite())
					said, err := io.ReadAll(c)
					must(t, err)
					c.Close()
					for _, a := range answersIn(t, string(said)) {
						a.want(t, 200)
					}
					if n := strings.Count(text, "HTTP/1."); strings.Count(string(said), "HTTP/1.") != n {
						t.Fatalf("want %d answers, got %s", n, said)
					}
				}
			})
		}
	}
}

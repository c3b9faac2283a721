package abuse

import (
	"crypto/tls"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"schedrestd/integration/harness"
)

// TestHalfClosedClients checks that a client that shuts down its sending side
// after a request, as nc -N and socat do, gets the answer.
func TestHalfClosedClients(t *testing.T) {
	s := harness.NewTLSLab(t)
	socket := filepath.Join(harness.SocketDir(t, s.Lab), "half")
	localPart := s.Restd
	localPart.Args = append(slices.Clone(localPart.Args[:len(localPart.Args)-2]), "unix:"+socket) // the lab's own listeners are in use
	s.StartGatewayPart(t, localPart, nil)
	dialTLS := func() (net.Conn, error) { return tls.Dial("tcp", s.Addr, &tls.Config{InsecureSkipVerify: true}) }
	token, job := "X-SCHED-USER-TOKEN: "+s.OwnToken+"\r\n", s.JobRequest("true", nil)
	nodesPath := "/sched/" + harness.Version + "/nodes"
	requests := map[string]string{
		"GET":         "GET " + nodesPath + " HTTP/1.1\r\nHost: lab\r\n" + token + "\r\n",
		"HTTP/1.0":    "GET " + nodesPath + " HTTP/1.0\r\n" + token + "\r\n",
		"submission":  "POST /sched/" + harness.Version + "/job/submit HTTP/1.1\r\nHost: lab\r\n" + token + contentLength(job) + "\r\n" + job,
		"two of them": strings.Repeat("GET "+nodesPath+" HTTP/1.1\r\nHost: lab\r\n"+token+"\r\n", 2),
	}
	for name, dial := range map[string]func() (net.Conn, error){
		"TCP": harness.DialFunc("tcp", strings.TrimPrefix(s.URL, "http://")), "UNIX": harness.DialFunc("unix", socket), "TLS": dialTLS,
	} {
		for kind, text := range requests {
			t.Run(name+"/"+kind, func(t *testing.T) {
				t.Parallel()
				for range 20 {
					c, err := dial()
					harness.Must(t, err)
					harness.Must(t, c.SetDeadline(time.Now().Add(clientTimeout)))
					_, err = io.WriteString(c, text)
					harness.Must(t, err)
					harness.Must(t, c.(interface{ CloseWrite() error }).CloseWrite())
					output, err := io.ReadAll(c)
					harness.Must(t, err)
					c.Close()
					for _, a := range harness.ParseAnswers(t, string(output)) {
						a.Want(t, 200)
					}
					if n := strings.Count(text, "HTTP/1."); strings.Count(string(output), "HTTP/1.") != n {
						t.Fatalf("want %d answers, got %s", n, output)
					}
				}
			})
		}
	}
}

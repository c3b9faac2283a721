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
	s := harness.NewSecure(t)
	socket := filepath.Join(harness.ServedDir(t, s.Lab), "half")
	local := s.Restd
	local.Args = append(slices.Clone(local.Args[:len(local.Args)-2]), "unix:"+socket) // the lab's own listeners are in use
	s.GateOf(t, local, nil)
	secured := func() (net.Conn, error) { return tls.Dial("tcp", s.Addr, &tls.Config{InsecureSkipVerify: true}) }
	token, job := "X-SCHED-USER-TOKEN: "+s.OwnToken+"\r\n", s.JobRequest("true", nil)
	list := "/sched/" + harness.Version + "/nodes"
	requests := map[string]string{
		"GET":         "GET " + list + " HTTP/1.1\r\nHost: lab\r\n" + token + "\r\n",
		"HTTP/1.0":    "GET " + list + " HTTP/1.0\r\n" + token + "\r\n",
		"submission":  "POST /sched/" + harness.Version + "/job/submit HTTP/1.1\r\nHost: lab\r\n" + token + sized(job) + "\r\n" + job,
		"two of them": strings.Repeat("GET "+list+" HTTP/1.1\r\nHost: lab\r\n"+token+"\r\n", 2),
	}
	for name, dial := range map[string]func() (net.Conn, error){
		"TCP": harness.Dials("tcp", strings.TrimPrefix(s.URL, "http://")), "UNIX": harness.Dials("unix", socket), "TLS": secured,
	} {
		for what, text := range requests {
			t.Run(name+"/"+what, func(t *testing.T) {
				t.Parallel()
				for range 20 {
					c, err := dial()
					harness.Must(t, err)
					harness.Must(t, c.SetDeadline(time.Now().Add(patient)))
					_, err = io.WriteString(c, text)
					harness.Must(t, err)
					harness.Must(t, c.(interface{ CloseWrite() error }).CloseWrite())
					said, err := io.ReadAll(c)
					harness.Must(t, err)
					c.Close()
					for _, a := range harness.AnswersIn(t, string(said)) {
						a.Want(t, 200)
					}
					if n := strings.Count(text, "HTTP/1."); strings.Count(string(said), "HTTP/1.") != n {
						t.Fatalf("want %d answers, got %s", n, said)
					}
				}
			})
		}
	}
}

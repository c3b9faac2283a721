package http1server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"schedrestd/internal/errs"
)

// TestEndWithNext checks that a connection that is ended while a request is
// being answered, or just after, refuses a request that its client has sent
// behind that one. Otherwise the client would not learn that this request was
// not carried out.
func TestEndWithNext(t *testing.T) {
	for _, tt := range []struct {
		name, next          string
		duringAnswer, after func(*Conn)
		want                string
	}{
		{"stopped in an answer", get + host + "\r\n", (*Conn).StopReading, nil, "200 OK, 503 Service Unavailable"},
		{"stopped in an answer, a part of a head", "GET /", (*Conn).StopReading, nil, "200 OK, 503 Service Unavailable"},
		{"stopped in an answer, nothing behind", "", (*Conn).StopReading, nil, "200 OK"},
		{"stopped after an answer", get + host + "\r\n", nil, (*Conn).StopReading, "200 OK, 503 Service Unavailable"},
		{"reclaimed after an answer", get + host + "\r\n", nil, func(c *Conn) { c.Reclaim() }, "200 OK, 503 Service Unavailable"},
		{"reclaimed after an answer, nothing behind", "", nil, func(c *Conn) { c.Reclaim() }, "200 OK"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c *Conn
			s := newServer(func(http.ResponseWriter, *http.Request) {
				if tt.duringAnswer != nil {
					tt.duringAnswer(c)
				}
			})
			s.Refuse = func(w http.ResponseWriter, _ *http.Request, err error) {
				if errs.KindOf(err) != errs.Unavailable {
					t.Errorf("refused with %v", err)
				}
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			out := &script{in: io.MultiReader(strings.NewReader(get+host+"\r\n"+tt.next), strings.NewReader(get+host+"\r\n"))}
			c = s.NewConn(context.Background(), out, &ender{end: func() {
				if tt.after != nil {
					tt.after(c)
				}
			}})
			c.Serve()
			var list []string
			for line := range strings.SplitSeq(out.out.String(), "\r\n") {
				if status, ok := strings.CutPrefix(line, "HTTP/1.1 "); ok {
					list = append(list, status)
				}
			}
			if got := strings.Join(list, ", "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// An ender is a Client that ends the connection after the first answer.
type ender struct {
	watcher
	end func()
}

func (e *ender) Answered() { e.end() }

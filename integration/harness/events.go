package harness

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Event is a server-sent event.
type Event struct{ Name, ID, Data string }

// Events is a stream of events.
type Events struct {
	Header http.Header // of the answer
	t      *testing.T
	events chan Event // closed when the stream has ended
	stop   context.CancelFunc
}

// Follow requests a stream of events. Each element of headers is "Name: value".
// It returns when the header of the answer has arrived.
func Follow(t *testing.T, url string, headers ...string) *Events {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	req, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	Must(t, err)
	req.Header.Set("Accept", "text/event-stream")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	slow := time.AfterFunc(time.Minute, stop)
	resp, err := http.DefaultTransport.RoundTrip(req)
	Must(t, err)
	if slow.Stop(); resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("GET %s: status %d, %v", url, resp.StatusCode, resp.Header)
	}
	s := &Events{Header: resp.Header, t: t, events: make(chan Event), stop: stop}
	go func() {
		defer resp.Body.Close()
		defer close(s.events)
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for e := (Event{}); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.Name = value
			case "id":
				e.ID = value
			case "data":
				e.Data = value
			case "":
				if e.Name == "" {
					continue // after a comment, or the time of "retry"
				}
				select {
				case s.events <- e:
				case <-ctx.Done():
					return
				}
				e = Event{}
			}
		}
	}()
	return s
}

// Next returns the next event. The test fails if none arrives.
func (s *Events) Next() Event {
	s.t.Helper()
	select {
	case e, ok := <-s.events:
		if !ok {
			s.t.Fatal("the stream has ended")
		}
		return e
	case <-time.After(time.Minute):
		s.t.Fatal("no event arrives")
	}
	return Event{}
}

// Await returns the next event with the given name and text in its data, and
// skips others. The name "" stands for any.
func (s *Events) Await(name, text string) Event {
	s.t.Helper()
	var others []string
	for range 100 {
		e := s.Next()
		if (name == "" || e.Name == name) && strings.Contains(e.Data, text) {
			return e
		}
		others = append(others, fmt.Sprintf("%.200v", e))
	}
	s.t.Fatalf("no event %s with %s among\n%s", name, text, strings.Join(others, "\n"))
	return Event{}
}

// Close leaves the stream.
func (s *Events) Close() { s.stop() }

package bench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"schedrestd/demo/site"
)

// volley is a number of identical requests to a gateway of a real Slurm. The
// field path is appended to slurmVersion, an API version that both gateways
// serve.
type volley struct {
	path, body string
	kept       bool // persistent connections; otherwise each request has its own
	count      int
	record     string // a text that occurs once in each record of the answer

	// A client sends one request per interval. If interval is 0, it sends the
	// next request as soon as the last one is answered. If a request is late
	// because it waited for the previous answer, its latency counts from the
	// time at which it was due.
	interval time.Duration
}

// answered holds the latencies of one answer. On a new connection they count
// from before the connection was made, and on an existing connection from
// before the request was sent.
type answered struct {
	first time.Duration // to the first byte of the body
	took  time.Duration // to the last byte

	size, records int
}

func firstByte(a answered) float64 { return a.first.Seconds() }
func whole(a answered) float64     { return a.took.Seconds() }

func percentileOf(list []answered, part float64, of func(answered) float64) float64 {
	var values []float64
	for _, a := range list {
		values = append(values, of(a))
	}
	return percentile(values, part)
}

// metric returns name in the form of a benchmark's metric.
func metric(name string) string { return strings.ReplaceAll(name, " ", "-") }

func (v volley) manner() string {
	manner := "a connection each"
	if v.kept {
		manner = "kept alive"
	}
	if v.interval > 0 {
		manner += fmt.Sprintf(", %.0f a second", clients/v.interval.Seconds())
	}
	return manner
}

// ask sends all requests from several clients and reads the answers. Any status
// other than 200 ends the benchmark.
func (v volley) ask(b *testing.B, l *slurmLab, s server) []answered {
	b.Helper()
	text := v.text(l.token)
	var left atomic.Int64
	left.Store(int64(v.count))
	lists := make([][]answered, min(clients, v.count))
	failures := make([]error, len(lists))
	var wait sync.WaitGroup
	for i := range lists {
		due := time.Now().Add(v.interval * time.Duration(i) / time.Duration(len(lists)))
		wait.Go(func() { lists[i], failures[i] = v.client(s.dial, text, due, &left) })
	}
	wait.Wait()
	if err := errors.Join(failures...); err != nil {
		s.fail(b, err)
	}
	var all []answered
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

func (v volley) text(token string) string {
	headers := "X-SLURM-USER-TOKEN: " + token + "\r\n"
	if !v.kept {
		headers += "Connection: close\r\n"
	}
	request := get(slurmVersion + v.path)
	if v.body != "" {
		request = post(slurmVersion+v.path, v.body)
	}
	return fmt.Sprintf(request, headers)
}

// client sends requests one after the other until none are left. due is the
// time of the first request if requests are sent at an interval.
func (v volley) client(dial dialer, text string, due time.Time, left *atomic.Int64) (list []answered, err error) {
	var c net.Conn
	var in *bufio.Reader
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for ; left.Add(-1) >= 0; due = due.Add(v.interval) {
		begun := time.Now()
		if v.interval > 0 {
			time.Sleep(time.Until(due))
			begun = due
		}
		if c == nil {
			if c, err = dial(0); err != nil {
				return nil, err
			}
			in = bufio.NewReaderSize(c, 256<<10)
		}
		a, err := v.converse(c, in, text, begun)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
		if !v.kept {
			c.Close()
			c = nil
		}
	}
	return list, nil
}

// converse sends one request and discards the answer.
func (v volley) converse(c net.Conn, in *bufio.Reader, text string, begun time.Time) (a answered, err error) {
	if _, err := io.WriteString(c, text); err != nil {
		return a, err
	}
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return a, err
	}
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		return a, site.ResponseError("ask", v.path, resp.Status, body)
	}
	body := recordCounter{what: []byte(v.record)}
	if _, err := io.CopyN(&body, resp.Body, 1); err != nil {
		return a, err
	}
	a.first = time.Since(begun)
	_, err = io.Copy(&body, resp.Body)
	a.took, a.size, a.records = time.Since(begun), body.size, body.count
	return a, err
}

// recordCounter counts how often a text occurs in the data written to it, even
// if an occurrence is split between two writes.
type recordCounter struct {
	what, rest  []byte
	size, count int
}

func (t *recordCounter) Write(p []byte) (int, error) {
	t.size += len(p)
	if len(t.what) == 0 {
		return len(p), nil
	}
	edge := append(t.rest, p[:min(len(p), len(t.what)-1)]...)
	t.count += bytes.Count(edge, t.what) + bytes.Count(p, t.what)
	tail := append(t.rest, p...)
	if len(p) >= len(t.what)-1 {
		tail = p
	}
	t.rest = append([]byte(nil), tail[max(0, len(tail)-len(t.what)+1):]...)
	return len(p), nil
}

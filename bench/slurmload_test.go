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

	"schedrestd/bundled/demo/site"
)

// slurmLoad describes a number of identical requests to a gateway of a real
// Slurm cluster. The path field is appended to slurmVersion, an API version
// that both gateways serve.
type slurmLoad struct {
	path, body string
	keepAlive  bool // use persistent connections; if false, open a new connection for each request
	count      int
	recordMark string // text that occurs exactly once in each record of the answer

	// The interval between two requests from the same client. If it is 0, the
	// client sends each request as soon as the previous one is answered. If a
	// request is late because the client waited for the previous answer, its
	// latency is measured from the time at which it should have been sent.
	interval time.Duration
}

// response contains the latencies of one answer. They are measured from just
// before the request is sent or, on a new connection, from just before that
// connection is opened. If requests are sent at an interval, the latencies are
// measured from the time at which the request should have been sent.
type response struct {
	firstByte time.Duration // to the first byte of the body
	total     time.Duration // to the last byte

	size, records int
}

func firstByteSeconds(a response) float64 { return a.firstByte.Seconds() }
func totalSeconds(a response) float64     { return a.total.Seconds() }

func percentileOf(list []response, quantile float64, value func(response) float64) float64 {
	var values []float64
	for _, a := range list {
		values = append(values, value(a))
	}
	return percentile(values, quantile)
}

// metric returns name with hyphens instead of spaces, for use as the name of a
// benchmark's metric.
func metric(name string) string { return strings.ReplaceAll(name, " ", "-") }

func (v slurmLoad) describe() string {
	text := "a new connection per request"
	if v.keepAlive {
		text = "kept alive"
	}
	if v.interval > 0 {
		text += fmt.Sprintf(", %.0f a second", clients/v.interval.Seconds())
	}
	return text
}

// run sends all requests from several clients and reads the answers. Any status
// other than 200 ends the benchmark.
func (v slurmLoad) run(b *testing.B, l *slurmLab, s server) []response {
	b.Helper()
	text := v.text(l.token)
	var remaining atomic.Int64
	remaining.Store(int64(v.count))
	lists := make([][]response, min(clients, v.count))
	failures := make([]error, len(lists))
	var wait sync.WaitGroup
	for i := range lists {
		due := time.Now().Add(v.interval * time.Duration(i) / time.Duration(len(lists)))
		wait.Go(func() { lists[i], failures[i] = v.client(s.dial, text, due, &remaining) })
	}
	wait.Wait()
	if err := errors.Join(failures...); err != nil {
		s.fail(b, err)
	}
	var responses []response
	for _, list := range lists {
		responses = append(responses, list...)
	}
	return responses
}

func (v slurmLoad) text(token string) string {
	headers := "X-SLURM-USER-TOKEN: " + token + "\r\n"
	if !v.keepAlive {
		headers += "Connection: close\r\n"
	}
	request := get(slurmVersion + v.path)
	if v.body != "" {
		request = post(slurmVersion+v.path, v.body)
	}
	return fmt.Sprintf(request, headers)
}

// client sends requests one after the other until none are left. If requests
// are sent at an interval, due is the time of the first request.
func (v slurmLoad) client(dial dialer, text string, due time.Time, remaining *atomic.Int64) (list []response, err error) {
	var c net.Conn
	var in *bufio.Reader
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	for ; remaining.Add(-1) >= 0; due = due.Add(v.interval) {
		start := time.Now()
		if v.interval > 0 {
			time.Sleep(time.Until(due))
			start = due
		}
		if c == nil {
			if c, err = dial(0); err != nil {
				return nil, err
			}
			in = bufio.NewReaderSize(c, 256<<10)
		}
		a, err := v.roundTrip(c, in, text, start)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
		if !v.keepAlive {
			c.Close()
			c = nil
		}
	}
	return list, nil
}

// roundTrip sends one request and discards the answer.
func (v slurmLoad) roundTrip(c net.Conn, in *bufio.Reader, text string, start time.Time) (a response, err error) {
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
	body := recordCounter{pattern: []byte(v.recordMark)}
	if _, err := io.CopyN(&body, resp.Body, 1); err != nil {
		return a, err
	}
	a.firstByte = time.Since(start)
	_, err = io.Copy(&body, resp.Body)
	a.total, a.size, a.records = time.Since(start), body.size, body.count
	return a, err
}

// recordCounter counts how often a text occurs in the data written to it, even
// if an occurrence is split between two writes.
type recordCounter struct {
	pattern, carry []byte
	size, count    int
}

func (t *recordCounter) Write(p []byte) (int, error) {
	t.size += len(p)
	if len(t.pattern) == 0 {
		return len(p), nil
	}
	edge := append(t.carry, p[:min(len(p), len(t.pattern)-1)]...)
	t.count += bytes.Count(edge, t.pattern) + bytes.Count(p, t.pattern)
	tail := append(t.carry, p...)
	if len(p) >= len(t.pattern)-1 {
		tail = p
	}
	t.carry = append([]byte(nil), tail[max(0, len(tail)-len(t.pattern)+1):]...)
	return len(p), nil
}

package rest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"schedrestd/internal/errs"
)

// A server that can wait can also send the changes of a list, as events in the
// format of the HTML standard (server-sent events): first pieces of the whole
// list, then each record that has changed.

const mediaEvents = "text/event-stream"

// maxIdle is how long a stream may be silent. The server sends a comment every 15
// seconds.
var maxIdle = time.Minute

// ErrNoEvents is the error of Follow if the server sends no events.
var ErrNoEvents = errors.New("the server sends no events")

// A JobFollower follows the changes of a list of jobs. Its functions get what the
// server sends.
type JobFollower struct {
	List   *List
	Job    func(*Job)            // a job of the list, or one that was added or has changed
	Gone   func(id uint32)       // a job that is no longer in the list
	Listed func(map[uint32]bool) // the ids of all jobs, at the end of a whole list

	lastID string          // identifies the last state that is known; the server can continue with it
	listed map[uint32]bool // ids of the jobs in the pieces of a list
	known  int             // jobs in the list
}

// Follow passes events on until ctx ends, the connection breaks or the server
// ends the stream. In the last case it returns nil. After that, Follow can be
// called again.
func (f *JobFollower) Follow(ctx context.Context, c *Client) error {
	header := http.Header{"Accept": {mediaEvents}}
	if f.lastID != "" {
		header.Set("Last-Event-ID", f.lastID)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	list := List{Filters: f.List.Filters, Fields: f.List.Fields}
	resp, err := c.do(ctx, http.MethodGet, c.path(c.spelling, "jobs/"), list.query(false), nil, header)
	if isRefusal(err) {
		return ErrNoEvents
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != mediaEvents {
		return ErrNoEvents
	}
	idle := time.AfterFunc(maxIdle, func() { cancel(errTooSlow) })
	defer idle.Stop()
	f.listed = nil
	err = readEvents(resp.Body, func() { idle.Reset(maxIdle) }, func(e *event) error {
		if e.name == "end" {
			c.log("note: the server has ended the stream of events: %s", shorten(string(e.data)))
		}
		return f.event(e)
	})
	switch {
	case errors.Is(context.Cause(ctx), errTooSlow):
		return errs.New(errs.Timeout, "%s has sent nothing for %s", c.addr, maxIdle)
	case ctx.Err() != nil:
		return ctx.Err()
	case err == io.EOF:
		return nil
	}
	return c.unreadable(err, "events")
}

// event handles an event. It returns io.EOF if this is the last one.
func (f *JobFollower) event(e *event) error {
	switch e.name {
	case "snapshot":
		var piece struct {
			Jobs []*Job `json:"jobs"`
			More bool   `json:"more"`
		}
		if err := json.Unmarshal(e.data, &piece); err != nil {
			return err
		}
		if f.listed == nil {
			f.listed = map[uint32]bool{}
		}
		for _, j := range piece.Jobs {
			f.listed[j.ID] = true
			f.Job(j)
		}
		f.known = len(f.listed)
		if !piece.More {
			f.Listed(f.listed)
			f.listed = nil
		}
	case "added", "changed", "removed":
		j := new(Job)
		if err := json.Unmarshal(e.data, j); err != nil {
			return err
		}
		switch e.name {
		case "removed":
			f.known--
			f.Gone(j.ID)
		case "added":
			f.known++
			fallthrough
		default:
			f.Job(j)
		}
	case "end":
		return io.EOF
	}
	if f.known > maxRecords {
		return errTooLong
	}
	if e.id != "" {
		f.lastID = e.id
	}
	return nil
}

// An event is an event of a stream.
type event struct {
	name, id string
	data     []byte // valid until the next event
}

// readEvents calls each for every event in r. It calls alive for every line,
// because comments show that the server is alive. It returns the first error of
// each, or of r.
func readEvents(r io.Reader, alive func(), each func(*event) error) error {
	var e event
	lines := bufio.NewReader(r)
	for {
		line, err := readLine(lines, maxValue-len(e.data))
		if err != nil {
			return err
		}
		alive()
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "":
			if len(line) > 0 { // a comment
				continue
			}
			if len(e.data) > 0 {
				if err := each(&e); err != nil {
					return err
				}
			}
			e = event{data: e.data[:0]}
		case "event":
			e.name = string(value)
		case "id":
			e.id = string(value)
		case "data":
			if len(e.data) > 0 {
				e.data = append(e.data, '\n')
			}
			e.data = append(e.data, value...)
		}
	}
}

// readLine returns the next line without its end. The line is valid until the
// next call.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err == bufio.ErrBufferFull { // a long line
		line = bytes.Clone(line)
		for err == bufio.ErrBufferFull && len(line) < limit {
			var more []byte
			more, err = r.ReadSlice('\n')
			line = append(line, more...)
		}
	}
	switch {
	case err == bufio.ErrBufferFull || len(line) > limit:
		return nil, errTooLong
	case err == io.EOF: // without the event that ends the stream
		return nil, io.ErrUnexpectedEOF
	case err != nil:
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

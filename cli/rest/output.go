package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"schedrestd/api"
	"schedrestd/internal/errs"
	"schedrestd/internal/errs/errcode"
)

// A server that reads the output of jobs can send a file as it is, or follow it with
// events. Events are texts, in which bytes that are no UTF-8 are lost.

const mediaText = "text/plain"

// An Output is a file with the output of a job.
type Output struct {
	Job    string // id
	Errors bool   // the error output, instead of the standard output
	Tail   uint32 // begin with this many lines before the end; 0 for the whole file
	Script bool   // the batch script, instead of any output
	Step   string // number of a step; "" for the batch script
}

// request requests the file. Only schedrestd has this operation, and only below its
// own paths. If the server does not read output, the error is Unsupported.
func (o *Output) request(ctx context.Context, c *Client, header http.Header) (*http.Response, error) {
	name, what := "stdout", "read the output"
	switch {
	case o.Script:
		name, what = "script", "show the scripts"
	case o.Errors:
		name = "stderr"
	}
	query := url.Values{}
	if o.Tail > 0 && header.Get("Range") == "" {
		query.Set("tail", strconv.FormatUint(uint64(o.Tail), 10))
	}
	if o.Step != "" {
		query.Set("step", o.Step)
	}
	resp, err := c.do(ctx, http.MethodGet, c.path("sched", jobPath(o.Job)+"/"+name), query, nil, header)
	if e, ok := errors.AsType[*errs.Error](err); ok && isNoOutput(e) {
		return nil, errs.New(errs.Unsupported, "%s does not %s of jobs", c.addr, what)
	}
	return resp, err
}

// isNoOutput reports whether e is the answer of a server that does not read the
// output of jobs, or has no such operation.
func isNoOutput(e *errs.Error) bool {
	switch e.Kind {
	case errs.Unsupported:
		return true
	case errs.NotFound: // slurmrestd sends no code
		return e.Number == 0 && (e.Code == "" || strings.Contains(e.Message, "no such path"))
	}
	return false
}

// Output writes the file, as it is now, to w.
func (c *Client) Output(ctx context.Context, o *Output, w io.Writer) error {
	resp, err := o.request(ctx, c, http.Header{"Accept": {mediaText}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != mediaText {
		return errs.New(errs.BadAnswer, "the answer is not text: %s", shorten(resp.Header.Get("Content-Type")))
	}
	out := &noteWriter{w: w}
	if _, err = io.Copy(out, resp.Body); err == nil || out.err != nil {
		return out.err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.unreadable(err, "output")
}

// A noteWriter notes why writing has failed.
type noteWriter struct {
	w   io.Writer
	err error
}

func (n *noteWriter) Write(p []byte) (written int, err error) {
	written, err = n.w.Write(p)
	n.err = err
	return written, err
}

// An OutputFollower follows the output of a job. Write gets the bytes of the file.
// Reset is called when the file has become shorter or was replaced: what follows
// is from its beginning.
type OutputFollower struct {
	Output Output
	Write  func([]byte) error
	Reset  func()

	lastID string // of the last event
	at     uint64 // up to where Write has the file
	known  bool   // at is known
	failed error  // of Write
}

// Follow passes the output on until ctx ends, the connection breaks, the server
// ends the stream, or the job has ended. Only in the last case it returns true.
// After the second and the third, Follow can be called again. It is an error if the
// server ends the stream before it has sent anything.
func (f *OutputFollower) Follow(ctx context.Context, c *Client) (ended bool, err error) {
	header := http.Header{"Accept": {mediaEvents}}
	if f.lastID != "" {
		header.Set("Last-Event-ID", f.lastID)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, err := f.Output.request(ctx, c, header)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != mediaEvents {
		return false, errs.New(errs.BadAnswer, "the answer has no events: %s", shorten(resp.Header.Get("Content-Type")))
	}
	idle := time.AfterFunc(maxIdle, func() { cancel(errTooSlow) })
	defer idle.Stop()
	var progress bool
	var stopped error // why the server has ended the stream at once
	err = readEvents(resp.Body, func() { idle.Reset(maxIdle) }, func(e *event) error {
		if e.name == "end" {
			if ended = isOutputEnd(e.data); !ended && !progress {
				stopped = errs.New(errs.Unavailable, "%s does not go on: %s", c.addr, shorten(string(e.data)))
			}
			c.log("note: the server has ended the stream of events: %s", shorten(string(e.data)))
			return io.EOF
		}
		progress = true
		idle.Stop() // standard output may be a pager
		defer idle.Reset(maxIdle)
		return f.event(ctx, c, e)
	})
	switch {
	case f.failed != nil:
		return false, f.failed
	case errors.Is(context.Cause(ctx), errTooSlow):
		return false, errs.New(errs.Timeout, "%s has sent nothing for %s", c.addr, maxIdle)
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == io.EOF:
		return ended, stopped
	}
	return false, c.unreadable(err, "events")
}

// isOutputEnd reports whether the data of the last event say that the job has
// ended, and not that the server ends the stream.
func isOutputEnd(data []byte) bool {
	var end struct{ Reason string }
	return json.Unmarshal(data, &end) == nil && end.Reason == api.OutputEnded
}

// event handles an event.
func (f *OutputFollower) event(ctx context.Context, c *Client, e *event) error {
	switch e.name {
	case "reset":
		if f.known {
			f.Reset()
		}
		f.at, f.known = 0, true
	case "output":
		var part struct {
			Offset uint64
			Text   string
		}
		if err := json.Unmarshal(e.data, &part); err != nil {
			return err
		}
		if !f.known {
			f.at, f.known = part.Offset, true
		}
		if err := f.part(ctx, c, part.Offset, part.Text); err != nil {
			return err
		}
	}
	if e.id != "" {
		f.lastID = e.id
	}
	return nil
}

// part writes a text that begins at offset, without what was written before. If
// bytes of the text were lost, it requests the file from there on.
func (f *OutputFollower) part(ctx context.Context, c *Client, offset uint64, text string) error {
	if strings.ContainsRune(text, utf8.RuneError) {
		return f.bytes(ctx, c)
	}
	if end := offset + uint64(len(text)); offset > f.at || end <= f.at {
		if offset > f.at { // a stream has no gaps
			return errs.New(errs.BadAnswer, "%s left out a part of the output", c.addr)
		}
		return nil
	}
	return f.write([]byte(text[f.at-offset:]))
}

func (f *OutputFollower) write(text []byte) error {
	f.at += uint64(len(text))
	f.failed = f.Write(text)
	return f.failed
}

// bytes writes the file from f.at on, as it is.
func (f *OutputFollower) bytes(ctx context.Context, c *Client) error {
	resp, err := f.Output.request(ctx, c, http.Header{"Accept": {mediaText}, "Range": {"bytes=" + strconv.FormatUint(f.at, 10) + "-"}})
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Code == errcode.Of(errs.RangeNotSatisfiable) {
		return nil // what the event is about was written together with an earlier one
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Range"), "bytes "+strconv.FormatUint(f.at, 10)+"-") {
		return errs.New(errs.BadAnswer, "%s did not send the part of the output that was requested", c.addr)
	}
	part := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(part)
		if n > 0 {
			if err := f.write(bytes.Clone(part[:n])); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return c.unreadable(err, "output")
		}
	}
}

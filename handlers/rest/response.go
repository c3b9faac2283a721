package rest

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
)

// Send answers with body, in the negotiated format. The table describes body. If
// nothing could be sent, Send returns an error, and the caller may answer with
// it. If a part was sent, Send aborts the connection, because a truncated answer
// must not look complete.
func Send[T any](c *Call, status int, table *api.AnswerType[T], body *T) error {
	view := c.view
	view.Only = c.only
	tagged := status == http.StatusOK && c.route != nil && c.route.Method == http.MethodGet && !c.route.Changing()
	if c.table && status == http.StatusOK {
		return c.sendTable(table.Shape(view), view, func(e schema.Encoder) { table.Renderer(view)(e, body) })
	}
	return c.render(status, tagged, func(e schema.Encoder) { table.Renderer(view)(e, body) })
}

// render answers with the output of the function write, in the negotiated
// format, and with an entity tag if tagged is set. If write fails before anything
// was sent, render returns the error, and the caller may send another answer. If
// write fails later, render aborts the connection, because a truncated answer
// must not look complete.
func (c *Call) render(status int, tagged bool, write func(schema.Encoder)) error {
	to := &sink{c: c, status: status, tagged: tagged}
	out := c.server.formats.get(c.media, to)
	defer c.server.formats.put(c.media, out)
	return to.render(out, write)
}

// render does the work of Call.render, with a writer of the format.
func (s *sink) render(out bodyWriter, write func(schema.Encoder)) error {
	c := s.c
	defer s.release()
	c.out = s
	write(out)
	if err := out.Err(); err != nil {
		if c.w.status == 0 {
			return err
		}
		c.abort(err)
	}
	s.whole = c.w.status == 0 && s.spool == nil
	if s.shared == nil && s.whole && s.tagged && c.setTag(out.Marked()) {
		return c.sendUnchanged()
	}
	err := out.Flush()
	if err == nil {
		err = s.finish()
	}
	if err == errHeld {
		return err
	}
	if err != nil {
		c.abort(err)
	}
	return nil
}

// sendTable answers with the records in the output of the function write, as CSV.
// The shape argument describes the answer. If write fails before anything was
// sent, sendTable returns the error, like render.
func (c *Call) sendTable(answer *schema.Shape, view schema.View, write func(schema.Encoder)) error {
	records := answer.Fields[0]
	failed := c.media
	c.media = MediaCSV
	to := &sink{c: c, status: http.StatusOK}
	err := to.render(schema.NewCSVWriter(to, records.Shape.Items, view.In(records.Name)), write)
	if err != nil {
		c.media = failed
	}
	return err
}

// sendUnchanged answers a client that has the current answer already, unless the
// request waits for a change.
func (c *Call) sendUnchanged() error {
	if c.waiting.holds {
		return errHeld
	}
	c.setAge()
	c.w.WriteHeader(http.StatusNotModified)
	return nil
}

func (c *Call) abort(err error) {
	c.logFailure(err)
	panic(http.ErrAbortHandler)
}

// SendString answers with body, in small pieces. The caller has called
// SetContentType.
func (c *Call) SendString(body string) error {
	c.Header().Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(http.StatusOK)
	if c.r.Method == http.MethodHead {
		return nil
	}
	reader := struct{ io.Reader }{strings.NewReader(body)} // hides WriteTo, which would copy the whole body
	if _, err := io.CopyBuffer(struct{ io.Writer }{c.w}, reader, make([]byte, 16<<10)); err != nil {
		c.abort(err)
	}
	return nil
}

// SendStream answers with the output of the function write, which has the given
// media type. If write fails, SendStream aborts the connection, because a
// truncated answer must not look complete.
func (c *Call) SendStream(media string, write func(io.Writer) error) error {
	c.media = media
	to := &sink{c: c, status: http.StatusOK}
	defer to.release()
	err := write(to)
	if err == nil {
		err = to.finish()
	}
	if err != nil {
		c.abort(err)
	}
	return nil
}

// sink writes an answer: first the status and header, then the body in the
// negotiated coding.
type sink struct {
	c      *Call
	status int
	tagged bool   // the answer has an entity tag, unless it is too long
	whole  bool   // the next Write is the whole body
	coder  coder  // nil without compression
	spool  *spool // stores the body until its length is known; nil if the body is sent immediately

	shared *rendering // the records of the answer; nil if they are not shared
	build  *builder   // creates shared; nil if it existed already
	marked bool       // all records have been written
	own    []byte     // what follows the shared records
}

// Write sends a part of the body.
func (s *sink) Write(b []byte) (int, error) {
	switch {
	case s.marked:
		s.own = append(s.own, b...)
		return len(b), nil
	case s.build != nil:
		return s.build.Write(b)
	case s.shared != nil: // the beginning of the records, which are in shared
		return len(b), nil
	}
	if s.c.w.status == 0 && s.spool == nil {
		s.start(len(b))
	}
	switch {
	case s.spool != nil:
		return s.store(b)
	case s.coder != nil:
		return s.coder.Write(b)
	}
	return s.c.w.Write(b)
}

// needsLength reports whether the answer must announce its length. Without the
// length, some clients can't recognize a truncated answer.
func (q *request) needsLength() bool { return q.server.SendLength || !q.r.ProtoAtLeast(1, 1) }

// store stores a part of the body. If there is not enough memory, it sends the
// whole body without a length instead. The end of the connection then marks the
// end of the body.
func (s *sink) store(b []byte) (int, error) {
	n, err := s.spool.Write(b)
	if err != nil || !s.spool.full || s.spool.out != nil {
		return n, err
	}
	if s.spool.compressed {
		s.sendHeader(-1, true)
		s.spool.out = s.c.w
		return n, s.spool.send(s.c.w)
	}
	stored := s.spool
	defer stored.release()
	s.spool = nil
	if err := stored.coder.Close(); err != nil {
		return n, err
	}
	s.sendHeader(-1, false)
	return n, stored.send(s.c.w)
}

// start sends the header. If the answer must announce its length, and the
// length is not known yet, start prepares to store the body instead. The
// argument size is the length of the first part of the body.
//
// Errors are not compressed, because they are short and people often read them
// with simple tools. The only exception is a client that accepts no
// uncompressed answers.
func (s *sink) start(size int) {
	coding := s.c.coding
	compressible := (!s.whole || size >= minCodedSize) && s.status < http.StatusBadRequest
	compressed := coding.name != "" && (compressible || coding.always)
	switch {
	case s.c.needsLength() && (compressed || !s.whole):
		spoolCoding := ""
		if compressed {
			spoolCoding = coding.name
		}
		s.spool = newSpool(spoolCoding, s.c.Reserve())
	case compressed:
		s.sendHeader(-1, true)
		s.coder = getCoder(coding.name, s.c.w)
	case s.whole:
		s.sendHeader(size, false)
	default:
		s.sendHeader(-1, false)
	}
}

// sendHeader sends the header. The size argument is the length of the encoded
// body. It is negative if the length is unknown.
func (s *sink) sendHeader(size int, compressed bool) {
	s.c.SetContentType(s.c.media)
	h := s.c.Header()
	if compressed {
		h.Set("Content-Encoding", s.c.coding.name)
	}
	if size >= 0 {
		h.Set("Content-Length", strconv.Itoa(size))
	}
	s.c.w.WriteHeader(s.status)
}

func (s *sink) finish() error {
	switch {
	case s.build != nil && s.build.over:
		return s.build.end()
	case s.shared != nil:
		return s.finishShared()
	case s.spool != nil:
		return s.finishStored()
	case s.coder != nil:
		return s.coder.Close()
	}
	return nil
}

// finishStored sends the stored body with its length.
func (s *sink) finishStored() error {
	if err := s.spool.coder.Close(); err != nil || s.spool.out != nil {
		return err
	}
	size := s.spool.plainSize
	if s.spool.compressed {
		size = s.spool.size
	}
	s.sendHeader(size, s.spool.compressed)
	return s.spool.send(s.c.w)
}

// release returns the borrowed coder and memory.
func (s *sink) release() {
	s.releaseShared()
	if s.coder != nil {
		putCoder(s.c.coding.name, s.coder)
		s.coder = nil
	}
	if s.spool != nil {
		s.spool.release()
		s.spool = nil
	}
}

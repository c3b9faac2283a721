package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"unicode/utf8"

	"schedrestd/api"
)

// MediaText is the media type of text.
const MediaText = "text/plain"

// mediaUTF8 is MediaText with the charset, so that no browser guesses one.
const mediaUTF8 = MediaText + "; charset=utf-8"

// SendPlain answers with text as the function write writes it, which is size bytes
// long. If write fails, SendPlain aborts the connection, because a truncated answer
// must not look complete.
func (c *Call) SendPlain(status int, size uint64, write func(io.Writer) error) error {
	h := c.Header()
	h.Set("Content-Type", mediaUTF8)
	h.Set("Content-Length", strconv.FormatUint(size, 10))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	c.w.WriteHeader(status)
	if c.r.Method == http.MethodHead {
		return nil
	}
	if err := write(c.w); err != nil {
		c.abort(err)
	}
	return nil
}

// A TextPart is a part of a text that a client follows.
type TextPart struct {
	Offset uint64 // of Text in the file, in bytes
	Text   []byte
	Reset  bool                    // Text is from the beginning of another file, or of one that has become shorter
	ID     func(end uint64) string // returns the id of the event after which the client has the text up to end
}

// FollowsEvents reports whether the client wants a stream of events.
func (q *request) FollowsEvents() bool { return q.follows }

// FollowText answers with the parts that the function next returns, as events if
// the client wants them. The function next returns io.EOF at the end of the text,
// and neither a part nor an error if the context ends before there is a part.
func (c *Call) FollowText(next func(context.Context) (*TextPart, error)) error {
	if c.follows {
		return c.stream(MediaEvents, func(ctx context.Context, out *eventWriter) { out.followText(ctx, next) })
	}
	return c.stream(mediaUTF8, func(ctx context.Context, out *eventWriter) {
		out.err = out.flush() // a job that writes nothing must not look like a gateway that does not answer
		for out.err == nil && c.r.Context().Err() == nil {
			part, err := next(ctx)
			switch {
			case err == io.EOF:
				return
			case err != nil:
				c.abort(err)
			case part != nil:
				out.buf = append(out.buf, part.Text...)
				out.send()
			}
			if err := cmp.Or(c.tokenEnd(), ctx.Err()); err != nil { // the text is not complete
				c.abort(err)
			}
		}
	})
}

func (w *eventWriter) followText(ctx context.Context, next func(context.Context) (*TextPart, error)) {
	w.text(retryEvents)
	for {
		w.send()
		limited, cancel := context.WithTimeoutCause(ctx, heartbeat, errIdle)
		part, err := next(limited)
		cancel()
		switch {
		case w.over():
			return
		case ctx.Err() != nil:
			w.end(context.Cause(ctx), context.Cause(ctx))
			return
		case err == io.EOF:
			w.end(err, stopReason{errors.New(api.OutputEnded)})
			return
		case err != nil:
			w.end(err, nil)
			return
		case part == nil:
			w.comment()
		default:
			w.part(part)
		}
	}
}

// eventOutput is the name of an event with a part of a text.
const eventOutput = "output"

// part adds events with a part of a text.
func (w *eventWriter) part(p *TextPart) {
	if p.Reset {
		w.event(eventReset, "", nil)
	}
	for text, at := p.Text, p.Offset; len(text) > 0; {
		n := min(len(text), maxTextEvent)
		for n < len(text) && n > maxTextEvent-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		data, _ := json.Marshal(struct {
			Offset uint64 `json:"offset"`
			Text   string `json:"text"`
		}{at, string(text[:n])})
		at += uint64(n)
		w.event(eventOutput, p.ID(at), data)
		text = text[n:]
	}
}

// maxTextEvent is the maximum number of bytes of a text in an event. JSON may need
// six times as many.
const maxTextEvent = 16 << 10

package worker

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync"
)

// logHandler writes records to fd 2 as lines that the parent reads: "<level>" and then
// the text and its attributes. The parent adds time, worker and identity, which are
// not the worker's to say.
type logHandler struct {
	slog.Handler
	to *logLine
}

// logLine is the line being written, shared by the handlers that With makes.
type logLine struct {
	mu  sync.Mutex
	buf bytes.Buffer
	out io.Writer
}

func newLog(out io.Writer, level slog.Level) *logHandler {
	to := &logLine{out: out}
	text := slog.NewTextHandler(&to.buf, &slog.HandlerOptions{Level: level, ReplaceAttr: dropOuter})
	return &logHandler{Handler: text, to: to}
}

// dropOuter leaves out what the parent says better.
func dropOuter(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey) {
		return slog.Attr{}
	}
	return a
}

// Handle writes one line with one system call, so that lines of threads don't mix.
func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	h.to.mu.Lock()
	defer h.to.mu.Unlock()
	h.to.buf.Reset()
	h.to.buf.WriteString("<" + strconv.Itoa(int(r.Level)) + ">")
	if err := h.Handler.Handle(ctx, r); err != nil {
		return err
	}
	_, err := h.to.out.Write(h.to.buf.Bytes())
	return err
}

// WithAttrs is a handler that adds attrs to each line.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &logHandler{h.Handler.WithAttrs(attrs), h.to}
}

// WithGroup is a handler that puts attributes under name.
func (h *logHandler) WithGroup(name string) slog.Handler {
	return &logHandler{h.Handler.WithGroup(name), h.to}
}

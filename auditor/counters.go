package auditor

import (
	"log/slog"
	"sync/atomic"
)

// count is a number of things that happened.
type count struct{ n atomic.Uint64 }

func (c *count) add(n int) { c.n.Add(uint64(n)) }

// LogValue is for slog.
func (c *count) LogValue() slog.Value { return slog.Uint64Value(c.n.Load()) }

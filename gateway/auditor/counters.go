package auditor

import (
	"log/slog"
	"sync/atomic"
)

type count struct{ n atomic.Uint64 }

func (c *count) add(n int) { c.n.Add(uint64(n)) }

func (c *count) LogValue() slog.Value { return slog.Uint64Value(c.n.Load()) }

package server

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"schedrestd/internal/limit"
	"schedrestd/rpc/codec"
	"schedrestd/rpc/message"
)

// FuzzServer sends arbitrary bytes to a connection. The server must not panic,
// and must end the connection after the last byte.
func FuzzServer(f *testing.F) {
	for _, v := range []codec.Version{codec.V2205, codec.V2411, codec.Newest} {
		f.Add(encode(f, v, message.RequestPing, &token, message.Empty{}))
		f.Add(encode(f, v, message.RequestAuthToken, &kernel, &message.TokenRequest{Lifespan: 5}))
		stats, _ := message.EncodePersistent(v, message.AccountingGetStats, message.Empty{})
		f.Add(append(opening(f, v, token, v), stats...))
	}
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	decode := func(_ context.Context, r *Request) (message.Type, message.Body, error) {
		return message.ResponseRC, &message.RC{}, r.Decode(&message.SubmitRequest{})
	}
	s := &Server{Verify: verify, Log: slog.New(slog.DiscardHandler), MaxRequest: 1 << 20,
		Handlers:   map[message.Type]Handler{message.RequestPing: whoami, message.RequestSubmitBatchJob: decode, message.RequestAuthToken: decode},
		Persistent: map[message.Type]Handler{message.AccountingGetStats: whoami, message.AccountingRecordJobs: decode}}
	s.mu.Lock()
	s.startLocked()
	s.mu.Unlock()
	f.Fuzz(func(t *testing.T, b []byte) {
		near, far := net.Pipe()
		go func() {
			near.SetDeadline(time.Now().Add(10 * time.Second))
			near.Write(b)
			near.Close()
		}()
		go io.Copy(io.Discard, near)
		c := &conn{server: s, nc: far, pool: newPool(limit.DaemonConns.WithShare(1))}
		c.countLocked()
		if err := c.exchange(); err == nil && len(b) > 4 && uint64(binary.BigEndian.Uint32(b)) > uint64(s.MaxRequest) {
			t.Error("a message over the limit was served")
		}
		far.Close()
	})
}

package client_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/message"
)

// TestBudgetAfterBrokenAnswers checks a daemon that announces megabytes in
// answer to a short request, and then closes the connection. The announced
// bytes must not reduce the memory for other answers.
func TestBudgetAfterBrokenAnswers(t *testing.T) {
	t.Parallel()
	p := script(t, "daemon", func(nc net.Conn, _ message.Header) {
		io.WriteString(nc, "\x00\x80\x00\x00")
		nc.Write(make([]byte, 100<<10))
	})
	const allowance = 16 << 20
	budget := client.NewBudget(allowance)
	config := client.Config{Controllers: []client.Address{p.Address}, Accounting: []client.Address{p.Address},
		Answers: budget, Timeout: 5 * time.Second}
	c, a := client.New(config), client.NewAccounting(config)
	ctx := context.Background()
	questions := map[string]func() error{
		"verify":            func() error { return c.Verify(ctx, ann) },
		"ping":              func() error { _, err := c.Ping(ctx, ann); return err },
		"submit":            func() error { _, err := c.Submit(ctx, ann, &model.JobDesc{}); return err },
		"accounting verify": func() error { return a.Verify(ctx, ann) },
		"accounting ping":   func() error { _, err := a.Ping(ctx, ann); return err },
		"accounting diag":   func() error { _, _, err := a.Stats(ctx, ann); return err },
		"accounting list": func() error {
			return client.Records(ctx, a, ann, model.TRESFilter{}, func(*model.TRES) error { return nil })
		},
	}
	for name, ask := range questions {
		t.Run(name, func(t *testing.T) {
			_ = ask() // the error does not matter here
			if types, _ := p.requests(); len(types) == 0 {
				t.Error("nothing was asked")
			}
			if budget.Free() != allowance {
				t.Errorf("%d of %d bytes free", budget.Free(), allowance)
			}
		})
	}
}

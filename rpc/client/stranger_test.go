package client_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"schedrestd/internal/errs"
	"schedrestd/internal/socket/sockettest"
	"schedrestd/model"
	"schedrestd/rpc/client"
	"schedrestd/rpc/message"
)

// TestStrangerServes checks a process of another user that serves the
// controller's path or port while the controller is down. The client must send
// nothing to that process, especially no token.
func TestStrangerServes(t *testing.T) {
	t.Parallel()
	for network, address := range map[string]string{"unix": filepath.Join(sockettest.Dir(t), "s"), "tcp": "127.0.0.1:0"} {
		t.Run(network, func(t *testing.T) {
			ln, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			answeredBefore := make(chan int)
			go func() {
				c, err := ln.Accept()
				if err != nil {
					close(answeredBefore)
					return
				}
				defer c.Close()
				_ = c.SetDeadline(time.Now().Add(30 * time.Second))
				n, _ := c.Read(make([]byte, 4096))
				answeredBefore <- n
			}()
			c := client.New(client.Config{
				Controllers: []client.Address{{Name: "ctl", Network: network, Address: ln.Addr().String()}},
				Trusted:     func(uint32) bool { return false },
			})
			_, _, err = c.Node(context.Background(), ann, "n1", model.Query{})
			if errs.KindOf(err) != errs.Unavailable || !strings.Contains(err.Error(), "is served by uid") || errs.HintOf(err) == "" {
				t.Errorf("got %v, hint %q", err, errs.HintOf(err))
			}
			if n := <-answeredBefore; n != 0 {
				t.Errorf("the unknown peer was sent %d bytes", n)
			}
		})
	}
}

// TestStrangeAnswerToAPing checks a server that answers a ping with a wrong
// message in the right version. The client must not treat that server as a
// controller: it must send the job to the next controller instead.
func TestStrangeAnswerToAPing(t *testing.T) {
	t.Parallel()
	strange := script(t, "ctl", func(nc net.Conn, r message.Header) {
		answer(nc, r.Version, message.ResponseNodeInfo, &message.NodeInfo{})
	})
	backup := script(t, "bak", func(nc net.Conn, r message.Header) {
		if r.Type == message.RequestPing {
			rc(nc, r.Version, 0)
			return
		}
		answer(nc, r.Version, message.ResponseSubmitBatchJob, &message.SubmitResponse{})
	})
	c := client.New(client.Config{Controllers: []client.Address{strange.Address, backup.Address}})
	if _, err := c.Submit(context.Background(), ann, &model.JobDesc{Script: "x"}); err != nil {
		t.Error(err)
	}
	if n := strange.count(message.RequestSubmitBatchJob); n != 0 {
		t.Errorf("the unknown peer received the job %d times", n)
	}
}

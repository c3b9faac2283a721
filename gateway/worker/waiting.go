package worker

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
	"schedrestd/internal/errs/errcode"
	"schedrestd/internal/release"
)

// WaitingMode is the first argument that makes a worker's program answer the
// clients that wait at the sockets of the service manager, and exit.
const WaitingMode = "answer-waiting"

// maxWaiting is the maximum number of connections that AnswerWaiting answers.
// The queues of the socket units are shorter.
const maxWaiting = 1024

// WaitingFiles is the number of open descriptors that AnswerWaiting needs.
const WaitingFiles = maxWaiting + 64

// AnswerWaiting answers 503 to the clients that wait at listening sockets. The
// unit schedrestd-waiting@.service calls it after a failed start of the gateway:
// systemd keeps the sockets open, so the clients would otherwise wait until the
// mistake is corrected. At a socket for TLS it only closes the connections.
func AnswerWaiting(sockets []*os.File) error {
	answer, deadline := waitingAnswer(), time.Now().Add(refusedLinger)
	var open sync.WaitGroup
	defer open.Wait()
	n := 0
	for _, socket := range sockets {
		listener := int(socket.Fd())
		// Fd has cleared the flag for all processes that share the socket.
		if err := unix.SetNonblock(listener, true); err != nil {
			return errs.Wrap(err, errs.Internal, "accept the waiting connections")
		}
		for n < maxWaiting {
			fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			if err == unix.EAGAIN {
				break
			}
			if err == unix.EINTR || err == unix.ECONNABORTED {
				continue
			}
			if err != nil {
				return errs.Wrap(err, errs.Internal, "accept a waiting connection")
			}
			n++
			client := os.NewFile(uintptr(fd), "client")
			if socket.Name() == nameTLS {
				client.Close()
				continue
			}
			open.Go(func() {
				defer client.Close()
				_ = client.SetDeadline(deadline)
				awaitRequest(client, deadline)
				if _, err := client.Write(answer); err == nil && unix.Shutdown(fd, unix.SHUT_WR) == nil {
					_, _ = io.Copy(io.Discard, client) // see refusedLinger
				}
			})
		}
	}
	return nil
}

// nameTLS is the name of a passed socket that is for TLS.
const nameTLS = "https"

// waitingAnswer returns the complete answer to a client whose request is not
// read.
func waitingAnswer() []byte {
	view := schema.View{Version: api.Latest}
	envelope := api.Envelope{
		Meta: api.Meta{Version: view.Version.String(), Release: release.Version},
		Errors: []api.Error{{
			Description: "the gateway can't start at the moment; its log has the reason",
			Name:        http.StatusText(http.StatusServiceUnavailable), Code: errcode.Of(errs.Unavailable), Retryable: true,
		}},
	}
	var body bytes.Buffer
	out := schema.NewJSONWriter(&body, schema.Compact)
	api.AnswerTable(api.Empty).Failure(view)(out, &envelope)
	_ = out.Flush() // writing to a bytes.Buffer can't fail
	return fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nRetry-After: 10\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s",
		body.Len(), body.Bytes())
}

package handlers

import (
	"context"
	"net"
	"net/http"
	"time"

	"schedrestd/api"
	"schedrestd/auth"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// allocationWait is how long a client may wait for resources. A waiting client
// occupies a connection, and counts as a concurrent request.
const allocationWait = 5 * time.Minute

// postJobAllocate requests resources without a batch script. It answers when
// the resources have been allocated.
func (h *handler) postJobAllocate(c *rest.Call, _ *api.NoParams) error {
	if len(c.Request().Header.Values(api.HeaderKey)) > 0 {
		return errs.New(errs.Unsupported, "job/allocate does not support an Idempotency-Key; nothing was allocated").
			WithHint("job/submit does")
	}
	request, err := rest.ReadBody(c, api.AllocationBody)
	if err != nil {
		return err
	}
	descs, at, err := request.Descs()
	if err != nil {
		return errs.New(errs.Invalid, "%v", err).WithSource(at)
	}
	if err := h.prepareDescs(c, descs, at); err != nil {
		return err
	}
	for i := range descs {
		d := &descs[i]
		if d.Script != "" {
			return errs.New(errs.Invalid, "an allocation runs no script").WithSource(componentAt(at, i) + "script").
				WithHint("submit a batch job instead")
		}
		d.AllocRespPort, d.OtherPort = 0, 0 // nothing here listens for the controller
		if d.AllocNode == "" {
			d.AllocNode = model.Text(origin(c))
		}
		if !d.MinNodes.Set {
			d.MinNodes = model.Some[uint32](1)
		}
	}
	ctx, cancel := context.WithTimeout(c.Context(), allocationWait)
	defer cancel()
	if h.HalfClosed != nil {
		go cancelWhen(ctx, cancel, h.HalfClosed)
	}
	allocated, err := rest.MakeChange(c, "", func() (*model.Submitted, error) {
		return h.Controller.Allocate(ctx, c.Credential(), descs)
	}, submitResult)
	if err != nil {
		return annotateComponents(c, err, descs, at)
	}
	h.warnOfSubmission(c, allocated, at)
	return rest.Send(c, http.StatusOK, api.Allocated, &api.SubmitAnswer{Submitted: *allocated, Envelope: c.Envelope()})
}

// cancelWhen calls halfClosed once a second, and cancels ctx when halfClosed
// returns true. This is necessary because ctx does not end when a client closes
// its TCP connection. Until the gateway sends something, a closed connection
// looks the same as one whose client has shut down only its sending side.
func cancelWhen(ctx context.Context, cancel func(), halfClosed func(context.Context) bool) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		if halfClosed(ctx) {
			cancel()
			return
		}
	}
}

// origin returns the address of the client. A request for resources must name
// the host that it comes from. The gateway names the client, not itself.
func origin(c *rest.Call) string {
	if peer, ok := auth.PeerFrom(c.Context()); ok {
		if host, _, err := net.SplitHostPort(peer.Addr); err == nil {
			return host
		}
	}
	return "localhost"
}

package ctld

import (
	"context"

	"schedrestd/bundled/daemon"
	"schedrestd/conf"
	"schedrestd/internal/errs"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// Handlers returns a handler for each type of request that the controller
// answers.
func (c *Controller) Handlers() map[message.Type]server.Handler {
	list := func(h server.Handler) server.Handler { return daemon.ListHandler(c.queries, h) }
	handlers := map[message.Type]server.Handler{
		message.RequestPing:            c.handlePing,
		message.RequestConfigFiles:     c.handleConfigFiles,
		message.RequestNodeInfo:        c.requireVisible(conf.PrivateNodes, "nodes", c.handleNodes),
		message.RequestNodeInfoSingle:  c.requireVisible(conf.PrivateNodes, "nodes", c.handleNode),
		message.RequestPartitionInfo:   c.requireVisible(conf.PrivatePartitions, "partitions", c.handlePartitions),
		message.RequestJobInfo:         list(c.handleJobs),
		message.RequestJobInfoSingle:   c.handleJob,
		message.RequestJobUserInfo:     list(c.handleUserJobs),
		message.RequestJobReady:        c.handleReady,
		message.RequestBatchScript:     c.handleScript,
		message.RequestSubmitBatchJob:  c.handleSubmit,
		message.RequestEstimate:        list(c.handleEstimate),
		message.RequestKillJob:         c.handleKill,
		message.RequestKillJobs:        c.handleKillJobs,
		message.RequestUpdateJob:       c.handleUpdate,
		message.RequestJobRequeue:      c.handleRequeue,
		message.RequestAuthToken:       c.handleToken,
		message.RequestJobState:        list(c.handleJobStates),
		message.RequestReservationInfo: c.handleReservations,
		message.RequestLicenseInfo:     c.handleLicenses,
		message.RequestShares:          c.handleShares,
		message.RequestPriorities:      list(c.handlePriorities),
		message.RequestStats:           c.handleStats,
	}
	for t := range unsupported {
		handlers[t] = handleUnsupported
	}
	return handlers
}

// requireVisible returns a handler that calls h. The returned handler refuses
// clients that may not see information of this kind.
func (c *Controller) requireVisible(kind conf.PrivateData, subject string, h server.Handler) server.Handler {
	return func(ctx context.Context, r *server.Request) (message.Type, message.Body, error) {
		if err := c.privacy.CheckVisible(r.Identity.UID, kind, subject); err != nil {
			return 0, nil, err
		}
		return h(ctx, r)
	}
}

// maxSubmit is the maximum length in bytes of a submission: the script, the
// environment, and 2 MiB for the other fields.
const maxSubmit = maxScript + maxEnvironment + 2<<20

// Limit returns the maximum length of a request in bytes.
func (c *Controller) Limit(t message.Type, _ server.Identity) int {
	if t == message.RequestSubmitBatchJob || t == message.RequestEstimate {
		return maxSubmit
	}
	return server.MaxSmall
}

// refuse returns an error of the given kind, with one of Slurm's error numbers
// and a message for the user.
func refuse(kind errs.Kind, number int, format string, args ...any) error {
	return errs.New(kind, format, args...).WithNumber(number)
}

// clientAttrs appends attributes that identify the client of r to the log
// attributes in more, and returns the result. If the client acts for another
// user, the attributes include the names of both users.
func clientAttrs(r *server.Request, more ...any) []any {
	more = append(more, "uid", r.Identity.UID)
	if r.Identity.Name != "" {
		more = append(more, "user", r.Identity.Name)
	}
	if r.Identity.TokenUser != "" {
		more = append(more, "by", r.Identity.TokenUser)
	}
	return append(more, "peer", r.Peer)
}

// success returns the answer to a request that succeeded and has no other
// result.
func success() (message.Type, message.Body, error) {
	return message.ResponseRC, &message.RC{}, nil
}

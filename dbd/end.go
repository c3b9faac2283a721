package dbd

import (
	"context"

	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// end answers AccountingFini (DBD_FINI). Each request here is complete in
// itself, so no state is kept or dropped.
func (d *Daemon) end(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	if err := r.Decode(&message.AccountingEnd{}); err != nil {
		return 0, nil, err
	}
	return done(r)
}

package dbd

import (
	"context"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// unsupported contains the requests that Slurm's commands send but this daemon
// does not support. The daemon answers them with Slurm's error number for "not
// supported" and an error text, which sacctmgr prints.
var unsupported = map[message.Type]string{
	1411: "association usage", 1413: "cluster usage", 1430: "changing clusters",
	1452: "workload keys", 1455: "workload keys", 1456: "workload keys", 1457: "workload key usage",
	1414: "reconfiguration", 1440: "usage roll-up", 1459: "archives", 1460: "archives",
	1476: "changing jobs", 1485: "changing resources",
	1445: "a transaction history", 1464: "reservations", 1466: "showing its configuration",
	1468: "listing problems", 1470: "listing events",
	1477: "site resources", 1478: "site resources", 1480: "site resources", 1481: "site resources",
	1488: "repairing jobs", 1491: "resetting statistics", 1492: "shutdown by request",
	1493: "federations", 1494: "federations", 1496: "federations", 1497: "federations", 1503: "instances",
}

// handleUnsupported refuses a request in the map unsupported. It does not read
// the request's body.
func handleUnsupported(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	return 0, nil, errs.New(errs.Unsupported, "this accounting daemon does not support %s", unsupported[r.Type]).WithNumber(fault.NotSupported)
}

// handleWCKeys answers AccountingGetWCKeys (DBD_GET_WCKEYS) with an empty list,
// because there are no workload keys.
func (d *Daemon) handleWCKeys(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	answer := &message.WCKeys{ListResponse: listResponse([]model.WCKey{})}
	return message.AccountingGotWCKeys, answer, r.Decode(new(message.GetWCKeys))
}

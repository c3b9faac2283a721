package dbd

import (
	"context"

	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
	"schedrestd/rpc/message"
	"schedrestd/rpc/server"
)

// unoffered is what Slurm's commands ask an accounting daemon for and this one has not: refused in words, which
// sacctmgr prints, and by the number that says the same.
var unoffered = map[message.Type]string{
	1402: "accounts", 1403: "accounts", 1428: "accounts", 1435: "accounts", 1436: "accounts", 1501: "accounts",
	1404: "associations", 1429: "associations", 1437: "associations", 1411: "usage of associations",
	1405: "changes of clusters", 1430: "changes of clusters", 1438: "changes of clusters", 1413: "usage of clusters",
	1406: "users", 1431: "users", 1439: "users", 1502: "users",
	1447: "qualities of service", 1450: "qualities of service", 1451: "qualities of service",
	1452: "workload keys", 1455: "workload keys", 1456: "workload keys", 1457: "usage of workload keys",
	1414: "reconfiguration", 1440: "sums over time", 1459: "archives", 1460: "archives", 1476: "changes of jobs", 1485: "changes of resources",
	1445: "a history of changes", 1464: "reservations", 1466: "its configuration", 1468: "a list of problems", 1470: "a list of events",
	1477: "resources of the site", 1478: "resources of the site", 1480: "resources of the site", 1481: "resources of the site",
	1488: "repairs of jobs", 1491: "a reset of its counts", 1492: "an end by request",
	1493: "federations", 1494: "federations", 1496: "federations", 1497: "federations", 1503: "instances",
}

// refuseUnoffered refuses what is known and not offered. Its body is not looked at.
func refuseUnoffered(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	e := errs.New(errs.Unsupported, "this accounting daemon keeps jobs, and does not offer %s", unoffered[r.Type])
	e.Number = fault.NotSupported
	return 0, nil, e
}

// wckeys answers AccountingGetWCKeys (DBD_GET_WCKEYS): nobody has declared one.
func (d *Daemon) wckeys(_ context.Context, r *server.Request) (message.Type, message.Body, error) {
	return message.AccountingGotWCKeys, &message.WCKeys{Listed: listed([]model.WCKey{})}, r.Decode(new(message.GetWCKeys))
}

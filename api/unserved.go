package api

// Unserved lists the operations of slurmrestd that this gateway does not serve
// yet. A client that requests one of them gets an error that says so, not the
// error for an unknown path. Generated from testdata/paths.tsv by go test ./api
// -update.
var Unserved = []Endpoint{}

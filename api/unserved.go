package api

// Unserved lists the operations of slurmrestd that this gateway does not serve
// yet. A client gets an error that says so, instead of one for an unknown path.
// Generated from testdata/paths.tsv by go test ./api -update.
var Unserved = []Endpoint{}

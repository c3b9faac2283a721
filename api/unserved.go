package api

// Unserved lists the operations that Slurm's gateway has and this one does not
// serve yet. A client gets an error that says this, instead of one for an unknown path.
// Generated from testdata/paths.tsv by go test ./api -update.
var Unserved = []Endpoint{}

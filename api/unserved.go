package api

// Unserved lists the operations that Slurm's gateway has and this one does not
// serve yet. Clients are told that instead of that there is no such path.
// Generated from testdata/paths.tsv by go test ./api -update.
var Unserved = []Endpoint{}

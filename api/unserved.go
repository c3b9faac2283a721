package api

// Unserved lists the operations that Slurm's gateway has and this one does not
// serve yet. Clients are told that instead of that there is no such path.
// Generated from testdata/paths.tsv by go test ./api -update.
var Unserved = []Endpoint{
	{Method: "GET", Path: "conf", Since: V45},
	{Method: "POST", Path: "job/allocate", Since: V41},
	{Method: "DELETE", Path: "partition/{partition_name}", Since: V45},
	{Method: "POST", Path: "partitions", Since: V45},
	{Method: "POST", Path: "reservation", Since: V43},
	{Method: "POST", Path: "reservations", Since: V43},
	{Method: "GET", Path: "resources/{job_id}", Since: V44},
}

package api

// Unserved lists the operations that Slurm's gateway has and this one does not
// serve yet. Clients are told that instead of that there is no such path.
// Generated from testdata/paths.tsv by go test ./api -update.
var Unserved = []Endpoint{
	{Method: "GET", Path: "conf", Since: V45},
	{Method: "DELETE", Accounting: true, Path: "account/{account_name}"},
	{Method: "POST", Accounting: true, Path: "accounts"},
	{Method: "POST", Accounting: true, Path: "accounts_association"},
	{Method: "DELETE", Accounting: true, Path: "association"},
	{Method: "DELETE", Accounting: true, Path: "associations"},
	{Method: "POST", Accounting: true, Path: "associations"},
	{Method: "DELETE", Accounting: true, Path: "cluster/{cluster_name}"},
	{Method: "POST", Accounting: true, Path: "clusters"},
	{Method: "GET", Accounting: true, Path: "conf", Since: V45},
	{Method: "GET", Accounting: true, Path: "config"},
	{Method: "POST", Accounting: true, Path: "config"},
	{Method: "GET", Accounting: true, Path: "instance"},
	{Method: "GET", Accounting: true, Path: "instances"},
	{Method: "POST", Accounting: true, Path: "job/{job_id}", Since: V44},
	{Method: "POST", Accounting: true, Path: "jobs", Since: V44},
	{Method: "POST", Accounting: true, Path: "qos"},
	{Method: "DELETE", Accounting: true, Path: "qos/{qos}"},
	{Method: "POST", Accounting: true, Path: "tres"},
	{Method: "DELETE", Accounting: true, Path: "user/{name}"},
	{Method: "POST", Accounting: true, Path: "users"},
	{Method: "POST", Accounting: true, Path: "users_association"},
	{Method: "DELETE", Accounting: true, Path: "wckey/{id}"},
	{Method: "GET", Accounting: true, Path: "wckey/{id}"},
	{Method: "GET", Accounting: true, Path: "wckeys"},
	{Method: "POST", Accounting: true, Path: "wckeys"},
}

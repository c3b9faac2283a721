package api

import "net/http"

// Unserved lists the operations that Slurm's gateway has and this one does not serve yet. Clients are
// told so, instead of that there is no such path. An operation leaves this list when it
// becomes an Endpoint.
var Unserved = []Endpoint{
	{Method: http.MethodPost, Path: "job/allocate", Since: V41},
	{Method: http.MethodPost, Path: "job/{job_id}"},
	{Method: http.MethodDelete, Path: "jobs"},
	{Method: http.MethodDelete, Path: "node/{node_name}"},
	{Method: http.MethodPost, Path: "node/{node_name}"},
	{Method: http.MethodPost, Path: "nodes"},
	{Method: http.MethodGet, Path: "reconfigure"},
	{Method: http.MethodPost, Path: "reservation", Since: V43},
	{Method: http.MethodDelete, Path: "reservation/{reservation_name}", Since: V43},
	{Method: http.MethodPost, Path: "reservations", Since: V43},
	{Method: http.MethodDelete, Accounting: true, Path: "account/{account_name}"},
	{Method: http.MethodPost, Accounting: true, Path: "accounts"},
	{Method: http.MethodPost, Accounting: true, Path: "accounts_association"},
	{Method: http.MethodDelete, Accounting: true, Path: "association"},
	{Method: http.MethodDelete, Accounting: true, Path: "associations"},
	{Method: http.MethodPost, Accounting: true, Path: "associations"},
	{Method: http.MethodDelete, Accounting: true, Path: "cluster/{cluster_name}"},
	{Method: http.MethodPost, Accounting: true, Path: "clusters"},
	{Method: http.MethodGet, Accounting: true, Path: "config"},
	{Method: http.MethodPost, Accounting: true, Path: "config"},
	{Method: http.MethodGet, Accounting: true, Path: "instance"},
	{Method: http.MethodGet, Accounting: true, Path: "instances"},
	{Method: http.MethodPost, Accounting: true, Path: "qos"},
	{Method: http.MethodDelete, Accounting: true, Path: "qos/{qos}"},
	{Method: http.MethodPost, Accounting: true, Path: "tres"},
	{Method: http.MethodDelete, Accounting: true, Path: "user/{name}"},
	{Method: http.MethodPost, Accounting: true, Path: "users"},
	{Method: http.MethodPost, Accounting: true, Path: "users_association"},
	{Method: http.MethodDelete, Accounting: true, Path: "wckey/{id}"},
	{Method: http.MethodGet, Accounting: true, Path: "wckey/{id}"},
	{Method: http.MethodGet, Accounting: true, Path: "wckeys"},
	{Method: http.MethodPost, Accounting: true, Path: "wckeys"},
}

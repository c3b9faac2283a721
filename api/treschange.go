package api

import (
	"net/http"

	"schedrestd/api/scope"
)

var TRESBody = changes("openapi_tres_resp", "TRES", "tres_list", TRES.Type, "Trackable resources")

// PostTRES always fails, as in slurmrestd.
var PostTRES = declare(scope.SlurmdbWrite, noParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "tres/", ID: "post_tres",
	Doc: "Not possible: trackable resources are set in slurm.conf", Request: TRESBody, Answer: Empty,
	Description: "Always answers 501: clients can't add trackable resources. To add one, set AccountingStorageTRES in slurm.conf.",
	RequestDoc:  "Trackable resources",
	AnswerDoc:   "Always refused",
})

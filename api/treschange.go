package api

import "net/http"

// TRESBody declares the body of PostTRES.
var TRESBody = changes("openapi_tres_resp", "TRES", "tres_list", TRES.Type, "Trackable resources")

// PostTRES is refused.
var PostTRES = declare(noParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "tres/", ID: "post_tres",
	Doc: "Refused: trackable resources are configured", Request: TRESBody, Answer: Empty,
	About:   "Is always answered with 501: the accounting daemon takes no trackable resources from clients. They are added by AccountingStorageTRES in slurm.conf.",
	Takes:   "Trackable resources",
	Returns: "Always refused",
})

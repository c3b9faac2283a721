package api

import (
	"net/http"

	"schedrestd/api/scope"
)

// AssociationsBody declares the associations that a request creates or changes.
var AssociationsBody = changes("openapi_assocs_resp", "associations", "assoc_list",
	withInitial(Association.Type, blankAssociation), "The associations")

// PostAssociations creates and changes associations.
var PostAssociations = declare(scope.SlurmdbWrite, noParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "associations/", ID: "post_associations",
	Doc: "Create or change associations", Request: AssociationsBody, Answer: Empty,
	Example:     `{"associations": [{"account": "lab", "cluster": "demo", "user": "alice", "max": {"jobs": {"total": {"set": true, "number": 100}}}}]}`,
	Description: "Creates the associations that do not exist. In existing associations, changes the fields that the body contains. An association is identified by account, cluster, user and partition; account and cluster are required. An existing association can also be identified by id alone, or by id and cluster. A list of limits changes the limits of the resources that it names, and the count -1 removes a limit; an empty list removes all limits. A value that an existing association inherits stays inherited if the body has the same value. Either all changes are made or none.",
	RequestDoc:  "The associations",
	AnswerDoc:   "Only `meta`, `errors` and `warnings`: the associations now match the request. A warning names each association that already did",
})

// AssociationsRemoved declares the answer of DeleteAssociations and
// DeleteAssociation.
var AssociationsRemoved = removed("openapi_assocs_removed_resp", "removed_associations", "The associations that were removed")

var DeleteAssociations = declare(scope.SlurmdbWrite, associationParams, Endpoint{
	Method: http.MethodDelete, Accounting: true, Path: "associations/", ID: "delete_associations",
	Doc: "Remove associations", Answer: AssociationsRemoved,
	Description: "Removes the associations that match every given parameter, and all associations below a matching account. A request without a parameter that selects associations is refused with 422, because it would remove all of them.",
	AnswerDoc:   "The associations",
})

var DeleteAssociation = declare(scope.SlurmdbWrite, associationParams, Endpoint{
	Method: http.MethodDelete, Accounting: true, Path: "association/", ID: "delete_association",
	Doc: "Remove one association", Answer: AssociationsRemoved,
	Description: "Removes the association that the parameters select. If they select more than one, the request is refused and removes nothing.",
	AnswerDoc:   "The association",
})

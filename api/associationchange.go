package api

import "net/http"

// AssociationsBody declares the associations that a request makes or changes.
var AssociationsBody = changes("openapi_assocs_resp", "associations", "assoc_list", fresh(Association.Type, blankAssociation), "The associations")

// PostAssociations makes and changes associations.
var PostAssociations = declare(noParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "associations/", ID: "post_associations",
	Doc: "Make or change associations", Request: AssociationsBody, Answer: Empty,
	About:   "Makes the associations that do not exist and changes those that do: what a record names. An association is named by account, cluster, user and partition; account and cluster must be given. A list of limits replaces the limits that there are; a list that is missing leaves them. All changes are made, or none.",
	Takes:   "The associations",
	Returns: "Nothing but the envelope: the associations are as the request has them. A warning names each that was so before",
})

// AssociationsRemoved declares the answer of DeleteAssociations and DeleteAssociation.
var AssociationsRemoved = removed("openapi_assocs_removed_resp", "removed_associations", "The associations that were removed")

// DeleteAssociations removes associations.
var DeleteAssociations = declare(associationParams, Endpoint{
	Method: http.MethodDelete, Accounting: true, Path: "associations/", ID: "delete_associations",
	Doc: "Remove associations", Answer: AssociationsRemoved,
	About:   "Removes the associations that match every parameter that is given, and what is below an account that matches. A request without a parameter that selects associations is refused: it would mean all of them. None that match are answered with 404.",
	Returns: "The associations",
})

// DeleteAssociation removes one association.
var DeleteAssociation = declare(associationParams, Endpoint{
	Method: http.MethodDelete, Accounting: true, Path: "association/", ID: "delete_association",
	Doc: "Remove one association", Answer: AssociationsRemoved,
	About:   "Removes the association that the parameters select. When more than one would be removed, the request is refused and none is.",
	Returns: "The association",
})

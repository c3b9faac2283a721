package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// QOSBody declares the body of a request that creates or changes qualities of
// service.
var QOSBody = changes("openapi_slurmdbd_qos_resp", "qos", "qos_list", withInitial(QOS.Type, blankQOS), "The qualities of service")

func blankQOS() QOSRow {
	q := model.BlankQOS()
	return QOSRow{QOS: &q}
}

// PostQOSParams are the parameters of PostQOS. They have no effect.
type PostQOSParams struct{}

var postQOSParams = schema.Object("", func() schema.Fields[PostQOSParams] {
	return schema.Fields[PostQOSParams]{
		unused[PostQOSParams]("description"),
		unused[PostQOSParams]("Include deleted QOS", schema.Since(V42)),
		unused[PostQOSParams]("id"),
		unused[PostQOSParams]("format", schema.Until(V45)),
		unused[PostQOSParams]("name"),
		schema.Ignore[PostQOSParams]("preempt_mode", joined(qosPreemptModes), "Ignored: the body has the changes"),
		unused[PostQOSParams]("with_deleted", schema.Until(V42)),
	}
})

// unused returns a parameter that has no effect, as in slurmrestd.
func unused[P any](name string, opts ...schema.Option) schema.Field[P] {
	return schema.Ignore[P](name, csvList, "Ignored: the body has the changes", opts...)
}

// PostQOS creates and changes qualities of service.
var PostQOS = declare(scope.SlurmdbWrite, postQOSParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "qos/", ID: "post_qos",
	Doc: "Create or change qualities of service", Request: QOSBody, Answer: Empty,
	Example:     `{"qos": [{"name": "fast", "priority": {"set": true, "number": 5}}]}`,
	Description: "Creates the QOS that do not exist, and changes the given fields of those that exist. A record names its QOS by name or, if the QOS exists, by id. Flags and the list of preempt replace the existing ones. If a record lacks one of them, the existing one stays. A list of limits changes the limits of the resources that it names, and the count -1 removes a limit; an empty list removes all limits. The daemon makes all changes or none.",
	RequestDoc:  "The qualities of service",
	AnswerDoc:   "Only `meta`, `errors` and `warnings`: the QOS now match the request. A warning names each QOS that already did",
})

type NamedQOSParams struct{ Name string }

var namedQOSParams = nameParams("qos", "quality of service", "Name of the quality of service, or its number",
	func(p *NamedQOSParams) *string { return &p.Name })

var QOSRemoved = removed("openapi_slurmdbd_qos_removed_resp", "removed_qos", "Names of the removed QOS")

var DeleteQOS = declare(scope.SlurmdbWrite, namedQOSParams, Endpoint{
	Method: http.MethodDelete, Accounting: true, Path: "qos/{qos}", ID: "delete_single_qos",
	Doc: "Remove a quality of service", Answer: QOSRemoved,
	Description: "Removes the quality of service with this name or number.",
	AnswerDoc:   "The quality of service",
})

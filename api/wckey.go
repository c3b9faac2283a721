package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// WCKeysAnswer is an answer with workload keys.
type WCKeysAnswer struct {
	WCKeys schema.Stream[model.WCKey]
	Envelope
}

// WCKeys declares the fields of a WCKeysAnswer.
var WCKeys = enveloped("openapi_wckey_resp", func(a *WCKeysAnswer) *Envelope { return &a.Envelope },
	schema.F("wckeys", schema.Named("wckey_list", schema.StreamOf(wckey.Type)), func(a *WCKeysAnswer) *schema.Stream[model.WCKey] { return &a.WCKeys }, "The workload keys", schema.Required(0)),
)

type WCKeysParams struct{ model.WCKeyFilter }

var wckeysParams = schema.Object("", func() schema.Fields[WCKeysParams] {
	return schema.Fields[WCKeysParams]{
		clusterTexts("cluster", "Clusters", func(p *WCKeysParams) *[]string { return &p.Clusters }),
		ignoredParam[WCKeysParams]("format", schema.Until(V45)),
		numberTexts("id", "Numbers of workload keys", func(p *WCKeysParams) *[]string { return &p.IDs }),
		texts("name", "Names of workload keys", func(p *WCKeysParams) *[]string { return &p.Names }),
		schema.F("only_defaults", boolText, func(p *WCKeysParams) *bool { return &p.OnlyDefaults }, "Show only the default workload key of each user"),
		schema.F("usage_end", instant, func(p *WCKeysParams) *model.Time { return &p.UsageEnd }, "End of the requested period of usage", schema.Unit(TimeText)),
		schema.F("usage_start", instant, func(p *WCKeysParams) *model.Time { return &p.UsageStart }, "Start of the requested period of usage", schema.Unit(TimeText)),
		texts("user", "Users", func(p *WCKeysParams) *[]string { return &p.Users }),
		schema.F("with_usage", boolText, func(p *WCKeysParams) *bool { return &p.WithUsage }, "Include usage"),
		schema.F("with_deleted", boolText, func(p *WCKeysParams) *bool { return &p.WithDeleted }, "Include deleted records"),
	}
})

var GetWCKeys = declare(scope.SlurmdbRead, wckeysParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "wckeys/", ID: "get_wckeys", Paged: true,
	Doc: "List the workload keys", Answer: WCKeys,
	Description: "Returns the workload keys, with which users mark their work: one record for each user and cluster. Each parameter selects fewer records.",
	AnswerDoc:   "The workload keys",
})

type WCKeyParams struct{ Name string }

var wckeyParams = nameParams("id", "workload key", "Name of the workload key, or its number",
	func(p *WCKeyParams) *string { return &p.Name })

var GetWCKey = declare(scope.SlurmdbRead, wckeyParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "wckey/{id}", ID: "get_wckey",
	Doc: "Show one workload key", Answer: WCKeys,
	Description: "Returns the workload key with this number, or the keys with this name, one for each user and cluster.",
	AnswerDoc:   "The workload key, in a list",
})

// WCKeysBody declares the workload keys that a request creates.
var WCKeysBody = changes("openapi_wckey_resp", "wckeys", "wckey_list",
	withInitial(wckey.Type, model.BlankWCKey), "The workload keys")

// PostWCKeysParams are the parameters of PostWCKeys. They have no effect.
type PostWCKeysParams struct{}

var postWCKeysParams = schema.Object("", func() schema.Fields[PostWCKeysParams] {
	return schema.Fields[PostWCKeysParams]{
		unused[PostWCKeysParams]("cluster"), unused[PostWCKeysParams]("format", schema.Until(V45)), unused[PostWCKeysParams]("id"),
		unused[PostWCKeysParams]("name"), unused[PostWCKeysParams]("only_defaults"), unused[PostWCKeysParams]("usage_end"),
		unused[PostWCKeysParams]("usage_start"), unused[PostWCKeysParams]("user"), unused[PostWCKeysParams]("with_usage"),
		unused[PostWCKeysParams]("with_deleted"),
	}
})

var PostWCKeys = declare(scope.SlurmdbWrite, postWCKeysParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "wckeys/", ID: "post_wckeys",
	Doc: "Create workload keys", Request: WCKeysBody, Answer: Empty,
	Example:     `{"wckeys": [{"name": "w", "cluster": "demo", "user": "alice"}]}`,
	Description: "Creates the workload keys that do not exist. name, cluster and user are required. The daemon creates all of them or none.",
	RequestDoc:  "The workload keys",
	AnswerDoc:   "Only `meta`, `errors` and `warnings`: all requested workload keys exist. A warning names each key that existed before",
})

var WCKeysRemoved = removed("openapi_wckey_removed_resp", "deleted_wckeys", "The workload keys that were removed")

var DeleteWCKey = declare(scope.SlurmdbWrite, wckeyParams, Endpoint{
	Method: http.MethodDelete, Accounting: true, Path: "wckey/{id}", ID: "delete_wckey",
	Doc: "Remove a workload key", Answer: WCKeysRemoved,
	Description: "Removes the workload key with this number or name.",
	AnswerDoc:   "The workload key",
})

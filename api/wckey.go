package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// WCKeysAnswer is the body of an answer with workload keys.
type WCKeysAnswer struct {
	WCKeys schema.Stream[model.WCKey]
	Envelope
}

// WCKeys declares the fields of a WCKeysAnswer.
var WCKeys = enveloped("openapi_wckey_resp", func(a *WCKeysAnswer) *Envelope { return &a.Envelope },
	schema.F("wckeys", schema.Named("wckey_list", schema.StreamOf(wckey.Type)), func(a *WCKeysAnswer) *schema.Stream[model.WCKey] { return &a.WCKeys }, "The workload keys", schema.Required(0)),
)

// WCKeysParams are the parameters of GetWCKeys.
type WCKeysParams struct{ model.WCKeyFilter }

var wckeysParams = schema.Object("",
	clusterTexts("cluster", "Clusters", func(p *WCKeysParams) *[]string { return &p.Clusters }),
	passedOver[WCKeysParams]("format", schema.Until(V45)),
	numberTexts("id", "Numbers of workload keys", func(p *WCKeysParams) *[]string { return &p.IDs }),
	texts("name", "Names", func(p *WCKeysParams) *[]string { return &p.Names }),
	schema.F("only_defaults", yes, func(p *WCKeysParams) *bool { return &p.OnlyDefaults }, "Show only the default workload key of each user"),
	schema.F("usage_end", instant, func(p *WCKeysParams) *model.Time { return &p.UsageEnd }, "Until when usage is shown", schema.Unit(TimeText)),
	schema.F("usage_start", instant, func(p *WCKeysParams) *model.Time { return &p.UsageStart }, "Since when usage is shown", schema.Unit(TimeText)),
	texts("user", "Users", func(p *WCKeysParams) *[]string { return &p.Users }),
	schema.F("with_usage", yes, func(p *WCKeysParams) *bool { return &p.WithUsage }, "Show what was used, too"),
	schema.F("with_deleted", yes, func(p *WCKeysParams) *bool { return &p.WithDeleted }, "Show deleted ones too"),
)

// GetWCKeys lists the workload keys.
var GetWCKeys = declare(wckeysParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "wckeys/", ID: "get_wckeys",
	Doc: "List the workload keys", Answer: WCKeys,
	About:   "The keys by which users tell their work apart, one record for each user and cluster. Every parameter that is given narrows the list.",
	Returns: "The workload keys",
})

// WCKeyParams name a workload key.
type WCKeyParams struct{ Name string }

var wckeyParams = schema.Object("",
	schema.F("id", someName("workload key"), func(p *WCKeyParams) *string { return &p.Name }, "Name of the workload key, or its number", schema.Required(0)),
)

// GetWCKey shows one workload key.
var GetWCKey = declare(wckeyParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "wckey/{id}", ID: "get_wckey",
	Doc: "Show one workload key", Answer: WCKeys, Missing: MissingIsWarning,
	About:   "The workload key of that name, of each user and cluster that has it, or of that number. One that does not exist is answered with 404 under /scheddb/; under /slurmdb/ with 200, an empty list and a warning, as slurmrestd does.",
	Returns: "The workload key, in a list",
})

// WCKeysBody declares the workload keys that a request makes.
var WCKeysBody = changes("openapi_wckey_resp", "wckeys", "wckey_list", fresh(wckey.Type, model.BlankWCKey), "The workload keys")

// PostWCKeysParams are the parameters of PostWCKeys, which have no effect.
type PostWCKeysParams struct{}

var postWCKeysParams = schema.Object("",
	unused[PostWCKeysParams]("cluster"), unused[PostWCKeysParams]("format", schema.Until(V45)), unused[PostWCKeysParams]("id"),
	unused[PostWCKeysParams]("name"), unused[PostWCKeysParams]("only_defaults"), unused[PostWCKeysParams]("usage_end"),
	unused[PostWCKeysParams]("usage_start"), unused[PostWCKeysParams]("user"), unused[PostWCKeysParams]("with_usage"),
	unused[PostWCKeysParams]("with_deleted"),
)

// PostWCKeys makes workload keys.
var PostWCKeys = declare(postWCKeysParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "wckeys/", ID: "post_wckeys",
	Doc: "Make workload keys", Request: WCKeysBody, Answer: Empty,
	About:   "Creates the workload keys that do not exist. name, cluster and user are required. Either all are created or none.",
	Takes:   "The workload keys",
	Returns: "Only `meta`, `errors` and `warnings`: all requested workload keys exist. A warning names each that existed before",
})

// WCKeysRemoved declares the answer of DeleteWCKey.
var WCKeysRemoved = removed("openapi_wckey_removed_resp", "deleted_wckeys", "The workload keys that were removed")

// DeleteWCKey removes a workload key.
var DeleteWCKey = declare(wckeyParams, Endpoint{
	Method: http.MethodDelete, Accounting: true, Path: "wckey/{id}", ID: "delete_wckey",
	Doc: "Remove a workload key", Answer: WCKeysRemoved,
	About:   "Removes the workload key of that number or name. When several users or clusters have one of that name, the request is refused and none is removed: give the number of one. One that does not exist is answered with 404.",
	Returns: "The workload key",
})

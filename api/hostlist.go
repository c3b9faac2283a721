package api

import (
	"fmt"
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// HostlistAnswer is the answer to PostHostlist: a host list.
type HostlistAnswer struct {
	Hostlist string
	Envelope
}

// Hostlist declares the fields of a HostlistAnswer.
var Hostlist = enveloped("openapi_hostlist_req_resp", func(a *HostlistAnswer) *Envelope { return &a.Envelope },
	schema.F("hostlist", schema.String, func(a *HostlistAnswer) *string { return &a.Hostlist }, "Nodes, as a host list", schema.Required(0)),
)

// HostnamesAnswer is the answer to PostHostnames: the names of nodes.
type HostnamesAnswer struct {
	Hostnames []string
	Envelope
}

// Hostnames declares the fields of a HostnamesAnswer.
var Hostnames = enveloped("openapi_hostnames_req_resp", func(a *HostnamesAnswer) *Envelope { return &a.Envelope },
	schema.F("hostnames", schema.Named("hostlist_string", schema.List(schema.String)), func(a *HostnamesAnswer) *[]string { return &a.Hostnames }, "Names of nodes", schema.Required(0)),
)

// HostsRequest is a request to fold names of nodes into a host list, or to
// expand a host list into names. The parser has already expanded all host lists
// in it.
type HostsRequest struct{ Names []string }

// HostlistBody declares the fields of a request to expand a host list.
var HostlistBody = schema.Object("openapi_hostlist_req_resp", func() schema.Fields[HostsRequest] {
	return append(schema.Fields[HostsRequest]{
		hostsField("hostlist", func(r *schema.Report, doc *schema.Value) {
			if doc.Kind == schema.Array {
				r.WarnKind(doc, schema.Text)
			}
		}),
	}, ignoredEnvelope[HostsRequest]()...)
})

// HostnamesBody declares the fields of a request to fold names.
var HostnamesBody = schema.Object("openapi_hostnames_req_resp", func() schema.Fields[HostsRequest] {
	return append(schema.Fields[HostsRequest]{
		hostsField("hostnames", func(r *schema.Report, doc *schema.Value) {
			if doc.Kind == schema.Text {
				r.WarnKind(doc, schema.Array)
			}
		}),
	}, ignoredEnvelope[HostsRequest]()...)
})

// The names in a request after its host lists have been expanded are limited.
// Otherwise a few bytes could expand to gigabytes.
const (
	maxHosts     = 1 << 16 // names
	maxHostsText = 2 << 20 // bytes of all names
)

// expansion counts the names that the host lists of a request stand for, and
// their bytes.
type expansion struct{ names, text int }

// add expands another host list, and calls each for every name.
func (e *expansion) add(expr string, each func(name string)) error {
	for name := range model.Hosts(expr) {
		e.names++ // a name that is repeated also takes time
		e.text += len(name)
		switch {
		case e.names > maxHosts:
			return fmt.Errorf("more than %d names", maxHosts)
		case e.text > maxHostsText:
			return fmt.Errorf("the names are longer than %d bytes together", maxHostsText)
		}
		each(name)
	}
	return nil
}

// hostsField returns a field whose parser expands host lists. A client sends
// them in an array, or as one string.
func hostsField(name string, warn func(*schema.Report, *schema.Value)) schema.Field[HostsRequest] {
	parse := func(r *schema.Report, doc *schema.Value, into *[]string) bool {
		warn(r, doc)
		var sum expansion
		if doc.Kind == schema.Array {
			for i := range doc.Items {
				ok := true
				r.InElement(i, func() { ok = expandHosts(r, &doc.Items[i], false, &sum, into) })
				if !ok {
					return false
				}
			}
			return true
		}
		return expandHosts(r, doc, true, &sum, into)
	}
	hosts := func() schema.Type[[]string] { return schema.Simple(&schema.Shape{Kind: "string"}, nil, parse) }
	return schema.F(name, hosts, func(h *HostsRequest) *[]string { return &h.Names }, "Nodes, as host lists", schema.Required(0))
}

func expandHosts(r *schema.Report, doc *schema.Value, allowEmpty bool, sum *expansion, into *[]string) bool {
	var expr string
	if !schema.ParseText(r, doc, &expr) {
		return false
	}
	if expr == "" && allowEmpty {
		return true
	}
	if expr == "" || !model.HostsWellFormed(expr) {
		return r.Error(doc, "expected nodes such as node1,n[01-03], got %q", schema.Shorten(expr))
	}
	if err := sum.add(expr, func(name string) { *into = append(*into, name) }); err != nil {
		return r.Error(doc, "%v", err)
	}
	return true
}

// PostHostnames expands a host list.
var PostHostnames = declare(scope.None, noParams, Endpoint{
	Method: http.MethodPost, Util: true, Path: "hostnames", ID: "post_hostnames",
	Doc: "Expand a host list", Request: Hostlist, Answer: Hostnames, Since: V44,
	Example:     `{"hostlist": "n[01-03],login"}`,
	Description: "Returns the names that a host list stands for, in the same order. A host list of more than 65536 names is refused. The nodes need not exist.",
	RequestDoc:  "The host list, such as \"node1,n[01-03]\"",
	AnswerDoc:   "The names",
})

// PostHostlist folds names into a host list.
var PostHostlist = declare(scope.None, noParams, Endpoint{
	Method: http.MethodPost, Util: true, Path: "hostlist", ID: "post_hostlist",
	Doc: "Create a host list from names", Request: Hostnames, Answer: Hostlist, Since: V44,
	Example:     `{"hostnames": ["n01", "n02", "login"]}`,
	Description: "Combines names into a host list, in their order. Adjacent names that differ only in the number at their end are combined in brackets. A name may itself be a host list. At most 65536 names are accepted.",
	RequestDoc:  "The names",
	AnswerDoc:   "The host list, such as \"node1,n[01-03]\"",
})

package openapi

import (
	"cmp"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/internal/feature"
)

// The functions below write parts of the document, in the order of the OpenAPI
// specification. Most of them write one complete value.

func (d *writer) write() {
	d.BeginObject()
	d.pair("openapi", documentVersion)
	d.Key("info")
	d.info()
	d.Key("servers")
	d.BeginArray()
	d.BeginObject()
	d.pair("url", "/")
	d.pair("description", "The gateway that serves this document")
	d.EndObject()
	d.EndArray()
	d.Key("tags")
	d.tags()
	d.Key("paths")
	d.paths()
	d.Key("components")
	d.BeginObject()
	d.Key("schemas")
	d.namedSchemas()
	if d.Auth.Has(feature.JWT) {
		d.Key("securitySchemes")
		d.securitySchemes()
	}
	d.EndObject()
	d.EndObject()
}

// pair writes a member whose value is a string.
func (d *writer) pair(name, text string) {
	d.Key(name)
	d.String(text)
}

// mark writes a member whose value is true.
func (d *writer) mark(name string) {
	d.Key(name)
	d.Bool(true)
}

func (d *writer) info() {
	d.BeginObject()
	d.pair("title", "schedrestd")
	d.pair("description", d.apiDescription())
	d.pair("version", d.Release)
	d.Key("contact")
	d.BeginObject()
	d.pair("name", "The administrators of this cluster")
	d.EndObject()
	d.Key("license")
	d.BeginObject()
	d.pair("name", "Apache 2.0")
	d.pair("url", "https://www.apache.org/licenses/LICENSE-2.0.html")
	d.EndObject()
	d.EndObject()
}

func (d *writer) tags() {
	d.BeginArray()
	written := map[string]bool{}
	for _, op := range d.operations {
		tag := op.Segment(op.view.Spelling)
		if written[tag] {
			continue
		}
		written[tag] = true
		d.BeginObject()
		d.pair("name", tag)
		d.pair("description", tagDoc(op.Endpoint))
		d.EndObject()
	}
	d.EndArray()
}

// paths writes the operations, grouped by path.
func (d *writer) paths() {
	byPath := map[string][]operation{}
	var order []string
	for _, op := range d.operations {
		path := op.URL(op.view)
		if byPath[path] == nil {
			order = append(order, path)
		}
		byPath[path] = append(byPath[path], op)
	}
	d.BeginObject()
	for _, path := range order {
		d.Key(path)
		d.BeginObject()
		for _, op := range byPath[path] {
			d.Key(strings.ToLower(op.Method))
			d.operation(op)
		}
		d.EndObject()
	}
	d.EndObject()
}

func (d *writer) operation(op operation) {
	d.BeginObject()
	d.pair("operationId", op.OperationID(op.view))
	d.pair("summary", op.Doc)
	d.pair("description", strings.TrimSpace(op.DescriptionIn(op.view.Spelling)+" "+eventsDescription(op.Endpoint)))
	if op.preview {
		d.mark("x-preview")
	}
	d.Key("tags")
	d.BeginArray()
	d.String(op.Segment(op.view.Spelling))
	d.EndArray()
	if d.Deprecated != nil && d.Deprecated(op.view.Version) {
		d.mark("deprecated")
	}
	d.Key("security")
	d.security(op.view.Spelling)
	if op.Scope != scope.None {
		d.pair("x-scope", op.Scope.String())
	}
	if headers := headers(op.Endpoint); len(op.params)+len(headers) > 0 {
		d.Key("parameters")
		d.BeginArray()
		for _, p := range op.params {
			d.parameter(op, p)
		}
		for _, h := range headers {
			d.header(h)
		}
		d.EndArray()
	}
	if op.request != nil {
		d.Key("requestBody")
		d.BeginObject()
		d.pair("description", op.RequestDoc)
		d.mark("required")
		d.content(op.view, op.Example, "", op.request)
		d.EndObject()
	}
	d.Key("responses")
	d.responses(op)
	d.EndObject()
}

func (d *writer) parameter(op operation, p schema.Property) {
	d.BeginObject()
	d.pair("name", p.Name)
	if op.InPath(p.Name) {
		d.pair("in", "path")
	} else {
		d.pair("in", "query")
	}
	d.pair("description", describe(p))
	if p.Required {
		d.mark("required")
	}
	if p.Deprecated {
		d.mark("deprecated")
	}
	d.Key("schema")
	d.shape(op.view, p.Shape)
	d.EndObject()
}

// content writes the media types of a body. Each media type has the body's
// schema, and its example unless that is "". If the body is a list that can be a
// stream of events, collection is the name of the list.
func (d *writer) content(v schema.View, example, collection string, shapes ...*schema.Shape) {
	d.contentWith(v, example, collection, false, shapes...)
}

// contentWith is like content. If csv is set, the body can also be a table.
func (d *writer) contentWith(v schema.View, example, collection string, csv bool, shapes ...*schema.Shape) {
	kinds := []string{"application/json"}
	if d.Served {
		// Its older names are served, too. But from two types of YAML, oapi-codegen would
		// make a client that does not compile.
		kinds = append(kinds, "application/yaml")
	}
	d.Key("content")
	d.BeginObject()
	for _, kind := range kinds {
		d.Key(kind)
		d.BeginObject()
		d.Key("schema")
		if len(shapes) == 1 {
			d.use(v, shapes[0])
		} else {
			d.BeginObject()
			d.Key("anyOf")
			d.BeginArray()
			for _, s := range shapes {
				d.use(v, s)
			}
			d.EndArray()
			d.EndObject()
		}
		if example != "" {
			d.Key("example")
			d.example(example)
		}
		d.EndObject()
	}
	if collection != "" && d.Served && v.Spelling == schema.Sched {
		d.events(collection)
	}
	if csv && d.Served {
		d.textMedia("text/csv", "")
	}
	d.EndObject()
}

// security writes the list of authentication methods. A request needs only one
// of them. The empty entry is for clients on a UNIX socket: they send no
// credential, because the kernel identifies them.
func (d *writer) security(spelling schema.Spelling) {
	user, token := d.schemeNames(spelling)
	methods := [][]string{}
	if d.Auth.Has(feature.JWT) {
		methods = append(methods, []string{token}, []string{user, token}, []string{"bearerAuth"})
	}
	if d.Auth.Has(feature.Local) {
		methods = append(methods, nil)
	}
	d.BeginArray()
	for _, schemes := range methods {
		d.BeginObject()
		for _, scheme := range schemes {
			d.Key(scheme)
			d.BeginArray()
			d.EndArray()
		}
		d.EndObject()
	}
	d.EndArray()
}

// schemeNames returns the names of the security schemes for the headers with
// the user and the token. If the document has both spellings, the names for
// this project's spelling have a prefix, like the names of its schemas.
func (d *writer) schemeNames(spelling schema.Spelling) (user, token string) {
	if spelling == schema.Sched && d.Names == api.NamesBoth {
		return "sched_user", "sched_token"
	}
	return "user", "token"
}

func (d *writer) securitySchemes() {
	d.BeginObject()
	for _, spelling := range d.Names.Spellings() {
		user, token := d.schemeNames(spelling)
		d.apiKey(user, api.HeaderUser(spelling),
			"User to act as; defaults to the user of the token, except with the token of a portal, which needs it. Other users are possible only with a token that allows it")
		d.apiKey(token, api.HeaderToken(spelling), "JSON Web Token")
	}
	d.Key("bearerAuth")
	d.BeginObject()
	d.pair("type", "http")
	d.pair("scheme", "bearer")
	d.pair("bearerFormat", "JWT")
	d.pair("description", "The same token, in the Authorization header")
	d.EndObject()
	d.EndObject()
}

func (d *writer) apiKey(scheme, header, doc string) {
	d.Key(scheme)
	d.BeginObject()
	d.pair("type", "apiKey")
	d.pair("in", "header")
	d.pair("name", header)
	d.pair("description", doc)
	d.EndObject()
}

// namedSchemas writes the schemas that have names.
func (d *writer) namedSchemas() {
	d.BeginObject()
	for _, u := range d.schemas.order {
		if u.refName != "" && u.isFirst {
			d.Key(u.refName)
			d.BeginObject()
			d.members(u.view, u.shape)
			if u.shape.Kind == "array" {
				d.pair("description", cmp.Or(u.doc, listDoc(u.shape.Items)))
			}
			d.EndObject()
		}
	}
	d.EndObject()
}

// listDoc returns a general description of an array. The document contains it
// if the fields that refer to the array have different descriptions.
func listDoc(items *schema.Shape) string {
	if items == nil {
		return "List of any values"
	}
	return "List of " + strings.ReplaceAll(cmp.Or(items.Name, items.Kind), "_", " ")
}

// use writes a reference to a schema, or the schema itself if it has no name in
// the document.
func (d *writer) use(v schema.View, s *schema.Shape) {
	if d.schemas.reference(v, s) == "" {
		d.shape(v, s)
		return
	}
	d.BeginObject()
	d.refer(v, s)
	d.EndObject()
}

func (d *writer) refer(v schema.View, s *schema.Shape) {
	d.pair("$ref", "#/components/schemas/"+d.schemas.reference(v, s))
}

func (d *writer) shape(v schema.View, s *schema.Shape) {
	d.BeginObject()
	d.members(v, s)
	d.EndObject()
}

func (d *writer) members(v schema.View, s *schema.Shape) {
	d.pair("type", s.Kind)
	switch {
	case s.Format == "int32" && s.Wide:
		// Slurm's documents declare unsigned 32-bit numbers, such as a priority
		// or a user id, as int32. Clients generated from such a document fail
		// on numbers of 2^31 or more.
		d.pair("format", "int64")
	case s.Format != "":
		d.pair("format", s.Format)
	}
	if s.Nullable {
		d.mark("nullable")
	}
	if s.Enum != nil {
		d.Key("enum")
		d.texts(s.Enum)
	}
	if s.Kind == "array" {
		d.Key("items")
		if s.Items == nil { // anything
			d.BeginObject()
			d.EndObject()
		} else {
			d.use(v, s.Items)
		}
	}
	if len(s.Fields) > 0 {
		d.properties(v, s)
	}
}

func (d *writer) texts(list []string) {
	d.BeginArray()
	for _, text := range list {
		d.String(text)
	}
	d.EndArray()
}

func (d *writer) properties(v schema.View, s *schema.Shape) {
	var required []string
	d.Key("properties")
	d.BeginObject()
	for _, p := range s.Fields {
		d.Key(p.Name)
		d.property(v, p)
		if p.Required {
			required = append(required, p.Name)
		}
	}
	d.EndObject()
	if required != nil {
		d.Key("required")
		d.texts(required)
	}
}

// property writes a field.
//
// OpenAPI 3.0 ignores members beside a reference, such as a description. So for
// a field whose value is an object, the reference is inside an allOf, and the
// description is beside the allOf.
//
// This does not work for an array: generators expect an object in an allOf, so
// the array would lose its type. The field is therefore only a reference,
// without a description. If all fields that refer to the array have the same
// description, the array's schema contains it.
func (d *writer) property(v schema.View, p schema.Property) {
	named := !inPlace(p) && d.schemas.reference(v, p.Shape) != ""
	if named && p.Shape.Kind == "array" {
		d.use(v, p.Shape)
		return
	}
	d.BeginObject()
	if !named {
		d.members(v, p.Shape)
	} else {
		if p.Shape.Nullable {
			d.pair("type", p.Shape.Kind)
			d.mark("nullable")
		}
		d.Key("allOf")
		d.BeginArray()
		d.BeginObject()
		d.refer(v, p.Shape)
		d.EndObject()
		d.EndArray()
	}
	d.pair("description", describe(p))
	if p.Deprecated {
		d.mark("deprecated")
	}
	if strings.Contains(p.Name, " ") {
		// Without x-go-name, generators for Go give this field the same name as
		// the field whose name has underscores instead of spaces.
		d.pair("x-go-name", "Documented"+strings.ReplaceAll(p.Name, " ", ""))
	}
	d.EndObject()
}

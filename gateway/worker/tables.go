package worker

import (
	"io"
	"strings"

	"schedrestd/api"
	"schedrestd/api/openapi"
	"schedrestd/api/schema"
	"schedrestd/internal/errs"
	"schedrestd/internal/feature"
	"schedrestd/internal/release"
)

// Tables writes the OpenAPI document to out, as JSON. The document describes
// only JSON bodies. schedrestd calls Tables for the option
// --generate-openapi-spec. Tables opens no files and no connections. args holds
// the arguments after feature.TablesMode. Each may occur once, and all but the
// last two are required:
//
//	parsers=v0.0.42+inline_enums,v0.0.43   as for -d
//	content=schedctld,scheddb              as for -s
//	auth=local,jwt                         as for -a
//	names=sched                            sched, slurm or both
//	statuses=200,default                   as for SCHEDRESTD_RESPONSE_STATUS_CODES
//	json=compact                           compact or pretty
func Tables(args []string, out io.Writer) error {
	o := openapi.Options{Release: release.Version}
	layout := schema.Compact
	seen := map[string]bool{}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		if seen[key] {
			return errs.New(errs.Invalid, "%s is given twice", key)
		}
		seen[key] = true
		if err := tablesOption(&o, &layout, key, value); err != nil {
			return err
		}
	}
	for _, key := range []string{"parsers", "content", "auth", "names"} {
		if !seen[key] {
			return errs.New(errs.Invalid, "%s is not given", key)
		}
	}
	doc, err := openapi.New(o)
	if err != nil {
		return err
	}
	w := schema.NewJSONWriter(out, layout)
	doc.Write(w)
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = io.WriteString(out, "\n")
	return err
}

func tablesOption(o *openapi.Options, layout *schema.Layout, key, value string) (err error) {
	switch key {
	case "parsers":
		o.Parsers, err = feature.ParseParsers(key, value)
	case "content":
		o.Content, err = feature.ParseContent(key, value)
	case "auth":
		o.Auth, err = feature.ParseAuth(key, value)
	case "names":
		names, known := map[string]api.Names{"sched": api.NamesSched, "slurm": api.NamesSlurm, "both": api.NamesBoth}[value]
		if !known {
			return errs.New(errs.Invalid, "names: there is no %q", value)
		}
		o.Names = names
	case "statuses":
		o.Statuses, err = feature.ParseStatuses(key, value)
	case "json":
		known := false
		if *layout, known = map[string]schema.Layout{"compact": schema.Compact, "pretty": schema.Pretty}[value]; !known {
			return errs.New(errs.Invalid, "json: there is no layout %q", value)
		}
	default:
		return errs.New(errs.Invalid, "there is no option %q", key)
	}
	return err
}

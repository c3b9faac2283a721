package api

import "schedrestd/api/schema"

// Lists of strings whose schemas have names.
var (
	csvString   = schema.Named("csv_string", schema.List(schema.String))
	stringArray = schema.Named("string_array", schema.List(schema.String))
)

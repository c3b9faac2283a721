package api

import (
	"strings"

	"schedrestd/api/schema"
)

// Names that differ between this project's spelling and Slurm's. Clients may
// use either spelling, so clients written for slurmrestd work without changes.
var (
	// First segments of paths.
	pathController = name{"sched", "slurm"}
	pathAccounting = name{"scheddb", "slurmdb"}

	// Headers.
	headerUser  = name{"X-SCHED-USER-NAME", "X-SLURM-USER-NAME"}
	headerToken = name{"X-SCHED-USER-TOKEN", "X-SLURM-USER-TOKEN"}

	// Members of bodies.
	fieldDaemonStart = name{"schedd_start_time", "slurmd_start_time"}
	fieldMetaProduct = name{"sched", "slurm"}

	// Values of meta.plugin.
	pluginController = name{"openapi/schedctld", "openapi/slurmctld"}
	pluginAccounting = name{"openapi/scheddb", "openapi/slurmdbd"}
	pluginStorage    = name{"accounting_storage/scheddbd", "accounting_storage/slurmdbd"}
)

// pathUtil is the first segment of the paths of operations that need no daemon.
// It is the same in both spellings.
const pathUtil = "util"

// HeaderUser returns the header that names the user of a request.
func HeaderUser(s schema.Spelling) string { return headerUser.in(s) }

// HeaderToken returns the header that contains the token of a request.
func HeaderToken(s schema.Spelling) string { return headerToken.in(s) }

// HeaderKey is the header in which a client sends a key of its own choice with
// a submission. If the client retries the submission with the same key, the
// gateway does not submit the job again. slurmrestd has no such header.
const HeaderKey = "Idempotency-Key"

// MaxKey is the maximum length of an Idempotency-Key.
const MaxKey = 255

// HeaderReplayed is the header that marks an answer as a replay: the gateway
// repeats its answer to an earlier request with the same key.
const HeaderReplayed = "Idempotency-Replayed"

// SchemaName returns the name that a schema has in an OpenAPI document, such as
// "v0.0.42_node". The shape argument is its name in the tables of this package,
// which use Slurm's names.
func SchemaName(shape string, v schema.View) string {
	if v.Spelling == schema.Sched {
		shape = strings.ReplaceAll(shape, "slurm", "sched")
	}
	return v.Version.String() + "_" + shape
}

// name is a name in both spellings.
type name struct{ sched, slurm string }

// in returns n in the spelling s.
func (n name) in(s schema.Spelling) string {
	if s == schema.Slurm {
		return n.slurm
	}
	return n.sched
}

// spelled returns the type of a string that has two spellings.
func spelled() schema.Type[name] { return spelledType{} }

type spelledType struct{}

func (spelledType) Shape(schema.View) *schema.Shape { return &schema.Shape{Kind: "string"} }

func (spelledType) Renderer(v schema.View) func(schema.Encoder, *name) {
	return func(e schema.Encoder, n *name) { e.String(n.in(v.Spelling)) }
}

func (spelledType) Parser(schema.View) func(*schema.Report, *schema.Value, *name) bool {
	return schema.Refuse[name]
}

// Names is the set of spellings that a gateway serves. The zero value is empty.
type Names struct{ sched, slurm bool }

var (
	NamesSched = Names{sched: true}
	NamesSlurm = Names{slurm: true}
	NamesBoth  = Names{sched: true, slurm: true}
)

// NamesOf returns the set with only the spelling s.
func NamesOf(s schema.Spelling) Names {
	return Names{sched: s == schema.Sched, slurm: s == schema.Slurm}
}

// Serves reports whether the gateway serves the spelling s.
func (n Names) Serves(s schema.Spelling) bool {
	if s == schema.Slurm {
		return n.slurm
	}
	return n.sched
}

// Spellings lists the served spellings, ours first.
func (n Names) Spellings() []schema.Spelling {
	var list []schema.Spelling
	for _, s := range []schema.Spelling{schema.Sched, schema.Slurm} {
		if n.Serves(s) {
			list = append(list, s)
		}
	}
	return list
}

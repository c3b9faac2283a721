package api

import (
	"errors"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// stepIDType declares the parts of a job's or step's id. In a job description,
// only the job's number has an effect.
var stepIDType = schema.Object("slurm_step_id", func() schema.Fields[model.StepID] {
	return schema.Fields[model.StepID]{
		schema.F("sluid", showOnly(sluid), func(s *model.StepID) *uint64 { return &s.SLUID }, "Id that is unique among all jobs of all clusters; empty if unknown"),
		schema.F("job_id", jobNumber, func(s *model.StepID) *uint32 { return &s.JobID }, "Number of the job", schema.Bare),
		schema.F("step_het_component", showOnly(number[uint32]), func(s *model.StepID) *model.Opt[uint32] { return &s.HetComponent }, "Component of a heterogeneous step", schema.Bare),
		schema.F("step_id", showOnly(stepText), func(s *model.StepID) *model.Opt[uint32] { return &s.Step }, "Number of the step, or its kind; entire means the whole job"),
	}
})

func setStepID(d *model.JobDesc, s model.StepID) error {
	switch {
	case s.JobID == 0:
		return nil
	case d.JobID.Set && d.JobID.Number != s.JobID:
		return errors.New("differs from job_id")
	}
	d.JobID = model.Some(s.JobID)
	return nil
}

// showOnly returns a variant of typ whose values can only be shown. In a
// request, a value of this type has no effect and causes a warning.
func showOnly[T any](typ func() schema.Type[T]) func() schema.Type[T] {
	return func() schema.Type[T] { return showOnlyType[T]{typ()} }
}

type showOnlyType[T any] struct{ schema.Type[T] }

func (showOnlyType[T]) Parser(schema.View) func(*schema.Report, *schema.Value, *T) bool {
	return func(r *schema.Report, v *schema.Value, _ *T) bool {
		r.Warn(v, "has no effect")
		return true
	}
}

// jobNumber returns the type of a wrapped job id. In a request, 0 stands for no
// job.
func jobNumber() schema.Type[uint32] { return jobNumberType{} }

type jobNumberType struct{ rawWrapper[uint32] }

func (jobNumberType) Parser(v schema.View) func(*schema.Report, *schema.Value, *uint32) bool {
	parse := number[uint32]().Parser(v)
	return func(r *schema.Report, doc *schema.Value, into *uint32) bool {
		var n model.Opt[uint32]
		if !parse(r, doc, &n) {
			return false
		}
		if *into = n.Or(0); *into == 0 {
			r.Warn(doc, "names no job, so it has no effect")
		}
		return true
	}
}

const sluidDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// sluid returns the type of a 64-bit number that is shown as "s" and 13 digits
// of Crockford's base 32. These texts sort in the same order as the numbers.
// The number 0 is shown as an empty text.
func sluid() schema.Type[uint64] {
	return schema.Simple(&schema.Shape{Kind: "string"}, func(e schema.Encoder, n *uint64) { e.String(sluidText(*n)) }, nil)
}

func sluidText(n uint64) string {
	if n == 0 {
		return ""
	}
	text := []byte("s0000000000000")
	for rest, i := n, len(text)-1; rest != 0; rest, i = rest>>5, i-1 {
		text[i] = sluidDigits[rest&0x1f]
	}
	return string(text)
}

// stepText returns the type of a step's number. The numbers of special steps
// are shown as words, such as batch.
func stepText() schema.Type[model.Opt[uint32]] {
	return schema.Simple(&schema.Shape{Kind: "string"}, func(e schema.Encoder, o *model.Opt[uint32]) {
		if !o.Set {
			e.String("entire")
			return
		}
		e.String(stepName(*o))
	}, nil)
}

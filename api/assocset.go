package api

import (
	"schedrestd/api/schema"
	"schedrestd/model"
)

// AssocSet names associations to be made, and what they have in common.
type AssocSet struct {
	Accounts, Clusters, Partitions, Users, WCKeys []string

	Common *AssociationRow // nil: nothing
}

// row returns what the associations have in common, for a parser to write to.
func (s *AssocSet) row() *AssociationRow {
	if s.Common == nil {
		row := blankAssociation()
		s.Common = &row
	}
	return s.Common
}

// blankAssociation returns a row in which nothing is set.
func blankAssociation() AssociationRow {
	a := model.BlankAssociation()
	return AssociationRow{Association: &a}
}

// commonAssoc declares what associations have in common. Its names are those of
// Slurm's commands.
var commonAssoc = schema.Object("assoc_rec_set",
	schema.F("comment", schema.String, func(a *AssociationRow) *string { return &a.Comment }, "Any text"),
	schema.F("defaultqos", schema.String, func(a *AssociationRow) *string { return &a.DefaultQOS }, "Default quality of service"),
	schema.F("grpjobs", number, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpJobs }, "Number of jobs that run, of all below together", schema.Count),
	schema.F("grpjobsaccrue", number, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpJobsAccrue }, "Number of jobs that gain priority with age, of all below together", schema.Count),
	schema.F("grpsubmitjobs", number, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpSubmitJobs }, "Number of jobs that wait or run, of all below together", schema.Count),
	limit("grptres", func(a *model.Association) *string { return &a.GrpTRES }, "Resources of all below together, at once"),
	limit("grptresmins", func(a *model.Association) *string { return &a.GrpTRESMins }, "Resources times minutes of all below together, ever"),
	limit("grptresrunmins", func(a *model.Association) *string { return &a.GrpTRESRunMins }, "Resources times minutes that running jobs of all below may still take"),
	schema.F("grpwall", number, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpWall }, "Time of all jobs together", schema.Unit("min")),
	schema.F("maxjobs", number, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxJobs }, "Number of jobs that run", schema.Count),
	schema.F("maxjobsaccrue", number, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxJobsAccrue }, "Number of jobs that gain priority with age", schema.Count),
	schema.F("maxsubmitjobs", number, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxSubmitJobs }, "Number of jobs that wait or run", schema.Count),
	limit("maxtresminsperjob", func(a *model.Association) *string { return &a.MaxTRESMinsPJ }, "Resources times minutes of one job"),
	limit("maxtresrunmins", func(a *model.Association) *string { return &a.MaxTRESRunMins }, "Resources times minutes that running jobs may still take"),
	limit("maxtresperjob", func(a *model.Association) *string { return &a.MaxTRESPJ }, "Resources of one job"),
	limit("maxtrespernode", func(a *model.Association) *string { return &a.MaxTRESPN }, "Resources of one node of a job"),
	schema.F("maxwalldurationperjob", number, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxWallPJ }, "Time of one job", schema.Unit("min")),
	schema.F("minpriothresh", number, func(a *AssociationRow) *model.Opt[uint32] { return &a.MinPrioThreshold }, "Priority of a job that resources are kept for", schema.Bare),
	schema.F("parent", schema.String, func(a *AssociationRow) *string { return &a.ParentAccount }, "Account above; when missing, root"),
	schema.F("priority", number, func(a *AssociationRow) *model.Opt[uint32] { return &a.Priority }, "Its part in the priority of jobs", schema.Bare),
	schema.Both("qoslevel", schema.Named("qos_string_id_list", schema.List(schema.String)), func(*AssociationRow) []string { return nil }, func(a *AssociationRow, names []string) error { a.QOS = &names; return nil }, "Qualities of service"),
	schema.F("fairshare", schema.Int32, func(a *AssociationRow) *uint32 { return &a.Shares }, "Shares; 2147483647: the parent's", schema.Bare),
)

package api

import (
	"schedrestd/api/schema"
	"schedrestd/model"
)

// AssocSet describes associations to create: one for each combination of the
// names in its lists. All of them get the values in Common.
type AssocSet struct {
	Accounts, Clusters, Partitions, Users, WCKeys []string

	Common *AssociationRow // values that all associations get; nil for none
}

// row returns s.Common, so that a parser can write to it. If s.Common is nil,
// row allocates it first.
func (s *AssocSet) row() *AssociationRow {
	if s.Common == nil {
		row := blankAssociation()
		s.Common = &row
	}
	return s.Common
}

// blankAssociation returns an AssociationRow in which no field is set.
func blankAssociation() AssociationRow {
	a := model.BlankAssociation()
	return AssociationRow{Association: &a}
}

// commonAssoc declares the fields whose values apply to all new associations of
// a request. The fields have the same names as in Slurm's commands.
var commonAssoc = schema.Object("assoc_rec_set", func() schema.Fields[AssociationRow] {
	return schema.Fields[AssociationRow]{
		schema.F("comment", text, func(a *AssociationRow) *model.Text { return &a.Comment }, "Any text"),
		schema.F("defaultqos", text, func(a *AssociationRow) *model.Text { return &a.DefaultQOS }, "Default quality of service"),
		schema.F("grpjobs", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpJobs }, "Maximum number of running jobs, for the association and those below it together", schema.Count),
		schema.F("grpjobsaccrue", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpJobsAccrue }, "Maximum number of jobs that gain priority with age, for the association and those below it together", schema.Count),
		schema.F("grpsubmitjobs", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpSubmitJobs }, "Maximum number of pending and running jobs, for the association and those below it together", schema.Count),
		limit("grptres", func(a *model.Association) *string { return &a.GrpTRES }, "Limit on resources in use at the same time, for the association and those below it together"),
		limit("grptresmins", func(a *model.Association) *string { return &a.GrpTRESMins }, "Limit of resource minutes, for the association and those below it together"),
		limit("grptresrunmins", func(a *model.Association) *string { return &a.GrpTRESRunMins }, "Limit of the resource minutes that running jobs of the association and those below it may still use"),
		schema.F("grpwall", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpWall }, "Time limit of all jobs together", schema.Unit("min")),
		schema.F("maxjobs", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxJobs }, "Maximum number of running jobs", schema.Count),
		schema.F("maxjobsaccrue", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxJobsAccrue }, "Maximum number of jobs that gain priority with age", schema.Count),
		schema.F("maxsubmitjobs", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxSubmitJobs }, "Maximum number of pending and running jobs", schema.Count),
		limit("maxtresminsperjob", func(a *model.Association) *string { return &a.MaxTRESMinsPJ }, "Limit of resource minutes of one job"),
		limit("maxtresrunmins", func(a *model.Association) *string { return &a.MaxTRESRunMins }, "Limit of the resource minutes that running jobs may still use"),
		limit("maxtresperjob", func(a *model.Association) *string { return &a.MaxTRESPJ }, "Limit of resources of one job"),
		limit("maxtrespernode", func(a *model.Association) *string { return &a.MaxTRESPN }, "Limit on the resources of each node of a job"),
		schema.F("maxwalldurationperjob", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxWallPJ }, "Time limit of one job", schema.Unit("min")),
		schema.F("minpriothresh", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.MinPrioThreshold }, "Minimum priority of a job for which resources are kept free", schema.Bare),
		schema.F("parent", schema.String, func(a *AssociationRow) *string { return &a.ParentAccount }, "Parent account; default: root"),
		schema.F("priority", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.Priority }, "Factor in the priority of the jobs", schema.Bare),
		schema.GetSet("qoslevel", names(schema.Named("qos_string_id_list", schema.List(schema.String))), func(*AssociationRow) []string { return nil }, func(a *AssociationRow, names []string) error { a.QOS = &names; return nil }, "Qualities of service"),
		schema.F("fairshare", plainLimit, func(a *AssociationRow) *uint32 { return &a.Shares }, "Number of shares; 2147483647 means the shares of the parent", schema.Bare),
	}
})

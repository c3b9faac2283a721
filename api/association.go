package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// AssociationRow is an association, with a Records value, which translates the
// association's ids to names.
type AssociationRow struct {
	*model.Association
	*Records
	Limits     []Limit[model.Association] // limits that the client sent
	Number     uint32                     // number that the client sent; 0 for none
	DefaultQOS model.Text                 // name that the client sent
	QOS        *[]string                  // names that the client sent; nil if it sent no list
}

// limit returns a field for limits on trackable resources.
func limit(name string, at func(*model.Association) *string, doc string, opts ...schema.Option) schema.Field[AssociationRow] {
	return schema.GetSet(name, amounts, func(a *AssociationRow) []model.TRES { return a.Amounts(*at(a.Association)) },
		func(a *AssociationRow, list []model.TRES) error {
			a.Limits = append(a.Limits, Limit[model.Association]{at, list})
			return nil
		}, doc, opts...)
}

// assocShort declares the fields that identify an association.
var assocShort = schema.Object("assoc_short", func() schema.Fields[model.Association] {
	return schema.Fields[model.Association]{
		schema.F("account", schema.String, func(a *model.Association) *string { return &a.Account }, "Account"),
		schema.F("cluster", schema.String, func(a *model.Association) *string { return &a.Cluster }, "Cluster"),
		schema.F("partition", schema.String, func(a *model.Association) *string { return &a.Partition }, "Partition, if the association is limited to one"),
		schema.F("user", schema.String, func(a *model.Association) *string { return &a.User }, "User; empty for the association of the account itself", schema.Required(0)),
		schema.F("id", schema.Int32, func(a *model.Association) *uint32 { return &a.ID }, "Number of the association", schema.Bare),
	}
})

var assocShorts = schema.Named("assoc_short_list", schema.List(assocShort.Type))

// assocFlags are the names of an association's flags.
var assocFlags = schema.Words("assoc_flags",
	schema.Bit("DELETED", uint32(1)<<0),
	schema.Bit("NoUpdate", uint32(1)<<1, schema.Since(V41)),
	schema.Bit("Exact", uint32(1)<<2, schema.Since(V41)),
	schema.Bit("NoUsersAreCoords", uint32(1)<<3, schema.Since(V41)),
	schema.Bit("UsersAreCoords", uint32(1)<<16, schema.Since(V41)),
)

// usage declares the fields of a Usage: how much of a resource was used in a
// period.
var usage = schema.Object("accounting", func() schema.Fields[model.Usage] {
	return schema.Fields[model.Usage]{
		schema.Group("allocated", "Allocated resources", schema.Fields[model.Usage]{
			schema.F("seconds", schema.Int64, func(u *model.Usage) *uint64 { return &u.AllocSecs }, "Amount of the resource, multiplied by the time of its allocation", schema.Unit("s")),
		}),
		schema.F("id", schema.Int32, func(u *model.Usage) *uint32 { return &u.ID }, "Id of the record that used the resource", schema.Bare),
		schema.F("id_alt", schema.Int32, func(u *model.Usage) *uint32 { return &u.IDAlt }, "Alternative id; not used", schema.Bare, schema.Since(V42)),
		schema.F("start", seconds, func(u *model.Usage) *model.Time { return &u.PeriodStart }, "Start of the period", schema.Unit(UnixTime)),
		schema.F("TRES", TRES.Type, func(u *model.Usage) *model.TRES { return &u.TRES }, "The resource"),
	}
})

var usages = schema.Named("accounting_list", schema.List(usage.Type))

// Association declares the fields of an association.
var Association = schema.Object("assoc", func() schema.Fields[AssociationRow] {
	return schema.Fields[AssociationRow]{
		schema.Show("accounting", usages, func(a *AssociationRow) []model.Usage { return a.Usage }, "Usage, if requested"),
		schema.F("account", schema.String, func(a *AssociationRow) *string { return &a.Account }, "Account"),
		schema.F("cluster", schema.String, func(a *AssociationRow) *string { return &a.Cluster }, "Cluster"),
		schema.F("comment", text, func(a *AssociationRow) *model.Text { return &a.Comment }, "Any text"),
		schema.Group("default", "Defaults for jobs", schema.Fields[AssociationRow]{
			schema.GetSet("qos", schema.String, func(a *AssociationRow) string { return a.qos(a.DefaultQOSID) }, func(a *AssociationRow, name string) error { a.DefaultQOS = model.SetText(name); return nil }, "Quality of service"),
		}),
		schema.F("flags", assocFlags.Type, func(a *AssociationRow) *uint32 { return &a.Flags }, "Flags of the record"),
		schema.Group("max", "Limits", schema.Fields[AssociationRow]{
			schema.Group("jobs", "Limits of jobs", schema.Fields[AssociationRow]{
				schema.Group("per", "Limits for the association and those below it together", schema.Fields[AssociationRow]{
					schema.F("count", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpJobs }, "Number of running jobs", schema.Count),
					schema.F("accruing", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpJobsAccrue }, "Number of jobs that gain priority with age", schema.Count),
					schema.F("submitted", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpSubmitJobs }, "Number of pending and running jobs", schema.Count),
					schema.F("wall_clock", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxWallPJ }, "Time limit of one job", schema.Unit("min")),
				}),
				schema.F("active", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxJobs }, "Number of running jobs", schema.Count),
				schema.F("accruing", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxJobsAccrue }, "Number of jobs that gain priority with age", schema.Count),
				schema.F("total", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.MaxSubmitJobs }, "Number of pending and running jobs", schema.Count),
			}),
			schema.Group("tres", "Limits of trackable resources", schema.Fields[AssociationRow]{
				limit("total", func(a *model.Association) *string { return &a.GrpTRES }, "Limit on resources in use at the same time, for the association and those below it together"),
				schema.Group("group", "Limits for the association and those below it together, in resource minutes", schema.Fields[AssociationRow]{
					limit("minutes", func(a *model.Association) *string { return &a.GrpTRESMins }, "Total that may be used"),
					limit("active", func(a *model.Association) *string { return &a.GrpTRESRunMins }, "Limit of the minutes that running jobs may still use"),
				}),
				schema.Group("minutes", "Limits in resource minutes", schema.Fields[AssociationRow]{
					limit("total", func(a *model.Association) *string { return &a.MaxTRESRunMins }, "Limit of the minutes that running jobs may still use"),
					schema.Group("per", "Limits for one object", schema.Fields[AssociationRow]{
						limit("job", func(a *model.Association) *string { return &a.MaxTRESMinsPJ }, "Limit for one job"),
					}),
				}),
				schema.Group("per", "Limits for one object", schema.Fields[AssociationRow]{
					limit("job", func(a *model.Association) *string { return &a.MaxTRESPJ }, "Limit for one job"),
					limit("node", func(a *model.Association) *string { return &a.MaxTRESPN }, "Limit for one node of a job"),
				}),
			}),
			schema.Group("per", "Limits for one object", schema.Fields[AssociationRow]{
				schema.Group("account", "Limits for the account", schema.Fields[AssociationRow]{
					schema.F("wall_clock", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.GrpWall }, "Time limit of all jobs together", schema.Unit("min")),
				}),
			}),
		}),
		schema.Show("id", assocShort.Type, func(a *AssociationRow) model.Association { return *a.Association }, "Fields that identify the association", schema.Until(V41)),
		schema.GetSet("id", schema.Int32, func(a *AssociationRow) uint32 { return a.ID }, func(a *AssociationRow, n uint32) error { a.Number = n; return nil }, "Number of the association. In a change it identifies the association if the account is missing", schema.Bare, schema.Since(V41)),
		schema.GetSet("is_default", schema.Boolean, isDefault, setDefault, "Whether this is the user's default association"),
		schema.Show("lineage", schema.String, func(a *AssociationRow) string { return a.Lineage }, "Path from the root of the tree to the association"),
		schema.Group("min", "Minimum values", schema.Fields[AssociationRow]{
			schema.F("priority_threshold", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.MinPrioThreshold }, "Minimum priority of a job for which resources are kept free", schema.Bare),
		}),
		schema.F("parent_account", schema.String, func(a *AssociationRow) *string { return &a.ParentAccount }, "Parent account"),
		schema.F("partition", schema.String, func(a *AssociationRow) *string { return &a.Partition }, "Partition, if the association is limited to one"),
		schema.F("priority", limitNumber, func(a *AssociationRow) *model.Opt[uint32] { return &a.Priority }, "Factor in the priority of the jobs", schema.Bare),
		schema.GetSet("qos", names(schema.Named("qos_string_id_list", schema.List(schema.String))), func(a *AssociationRow) []string { return a.qosList(a.QOSIDs) }, func(a *AssociationRow, names []string) error { a.QOS = &names; return nil }, "Qualities of service that its jobs may have"),
		schema.F("shares_raw", plainLimit, func(a *AssociationRow) *uint32 { return &a.Shares }, "Number of shares; 2147483647 means the shares of the parent", schema.Bare),
		schema.F("user", schema.String, func(a *AssociationRow) *string { return &a.User }, "User; empty for the association of the account itself", schema.Required(0)),
	}
})

// isDefault reports whether an association is the default of its user. The
// daemon leaves IsDefault unset for the association of an account.
func isDefault(a *AssociationRow) bool { return a.IsDefault.Or(0) != 0 }

// setDefault makes an association its user's default. It ignores the value
// false, because a user always has a default. The default changes only when
// another association becomes the default.
func setDefault(a *AssociationRow, is bool) error {
	if is {
		a.IsDefault = model.Some[uint16](1)
	}
	return nil
}

type AssociationsAnswer struct {
	Associations schema.Stream[AssociationRow]
	Envelope
}

// Associations declares the fields of an AssociationsAnswer.
var Associations = enveloped("openapi_assocs_resp", func(a *AssociationsAnswer) *Envelope { return &a.Envelope },
	schema.F("associations", schema.Named("assoc_list", schema.StreamOf(Association.Type)), func(a *AssociationsAnswer) *schema.Stream[AssociationRow] { return &a.Associations }, "The associations", schema.Required(0)),
)

// AssociationParams are the parameters of GetAssociations and GetAssociation.
// Clients may specify QOS by name.
type AssociationParams struct{ model.AssocFilter }

var associationParams = schema.Object("", func() schema.Fields[AssociationParams] {
	return schema.Fields[AssociationParams]{
		texts("account", "Accounts", func(p *AssociationParams) *[]string { return &p.Accounts }),
		clusterTexts("cluster", "Clusters", func(p *AssociationParams) *[]string { return &p.Clusters }),
		texts("default_qos", "Default qualities of service, by name or number", func(p *AssociationParams) *[]string { return &p.DefaultQOSIDs }),
		flagText("Include deleted associations", "Include deleted records", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocWithDeleted, schema.Since(V42)),
		flagText("Include usage", "Include usage", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocWithUsage, schema.Since(V42)),
		flagText("Filter to only defaults", "Show only the default associations of users", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocOnlyDefaults, schema.Since(V42)),
		flagText("Include the raw QOS or delta_qos", "Show the QOS set on each association, without those inherited from the parent", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocRawQOS, schema.Since(V42)),
		flagText("Include sub acct information", "Include sub-accounts", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocSubAccounts, schema.Since(V42)),
		flagText("Exclude parent id/name", "Omit the parent account", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocWithoutParentInfo, schema.Since(V42)),
		flagText("Exclude limits from parents", "Show the limits set on each association, without those inherited from the parent", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocWithoutParentLimits, schema.Since(V42)),
		ignoredParam[AssociationParams]("format", schema.Until(V45)),
		numberTexts("id", "Numbers of associations", func(p *AssociationParams) *[]string { return &p.IDs }),
		flagText("only_defaults", "Show only the default associations of users", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocOnlyDefaults, schema.Until(V42)),
		texts("parent_account", "Parent accounts", func(p *AssociationParams) *[]string { return &p.ParentAccounts }),
		texts("partition", "Partitions", func(p *AssociationParams) *[]string { return &p.Partitions }),
		texts("qos", "Qualities of service, by name or number", func(p *AssociationParams) *[]string { return &p.QOSIDs }),
		schema.F("usage_end", instant, func(p *AssociationParams) *model.Time { return &p.UsageEnd }, "End of the period of usage to show", schema.Unit(TimeText)),
		schema.F("usage_start", instant, func(p *AssociationParams) *model.Time { return &p.UsageStart }, "Start of the period of usage to show", schema.Unit(TimeText)),
		texts("user", "Users", func(p *AssociationParams) *[]string { return &p.Users }),
		flagText("with_usage", "Include usage", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocWithUsage, schema.Until(V42)),
		flagText("with_deleted", "Include deleted records", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocWithDeleted, schema.Until(V42)),
		flagText("with_raw_qos", "Show the QOS set on each association, without those inherited from the parent", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocRawQOS, schema.Until(V42)),
		flagText("with_sub_accts", "Include sub-accounts", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocSubAccounts, schema.Until(V42)),
		flagText("without_parent_info", "Omit the parent account", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocWithoutParentInfo, schema.Until(V42)),
		flagText("without_parent_limits", "Show the limits set on each association, without those inherited from the parent", func(p *AssociationParams) *model.AssocFilterFlags { return &p.Flags }, model.AssocWithoutParentLimits, schema.Until(V42)),
	}
})

var GetAssociations = declare(scope.SlurmdbRead, associationParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "associations/", ID: "get_associations", Paged: true,
	Doc: "List the associations", Answer: Associations,
	Description: "Returns the associations: the settings and limits of each user in each account and cluster, and those of the accounts themselves. Each parameter narrows the list or changes what it includes.",
	AnswerDoc:   "The associations",
})

// GetAssociation returns all associations that match the parameters, not only
// one. It differs from GetAssociations only in its path.
var GetAssociation = declare(scope.SlurmdbRead, associationParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "association/", ID: "get_association",
	Doc: "Show associations", Answer: Associations,
	Description: "Returns all associations that match the parameters, like GET associations/.",
	AnswerDoc:   "The associations",
})

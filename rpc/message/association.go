package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// GetAssociations requests associations (table db_assoc_cond).
type GetAssociations struct{ model.AssocFilter }

// Walk encodes or decodes the fields in wire order.
func (m *GetAssociations) Walk(c *codec.Codec) { assocFilter(c, &m.AssocFilter) }

// assocFilter encodes or decodes a filter for associations (table
// db_assoc_cond). The filter is a message of its own, and also part of other
// messages.
func assocFilter(c *codec.Codec, f *model.AssocFilter) {
	if c.Since(codec.V2411) && absent(c) {
		return
	}
	texts(c, "acct_list", &f.Accounts)
	clusters(c, "cluster_list", &f.Clusters)
	ids(c, "def_qos_id_list", &f.DefaultQOSIDs)
	if c.Since(codec.V2411) {
		c.Uint32("flags", (*uint32)(&f.Flags))
	}
	texts(c, "format_list", &f.Format)
	ids(c, "id_list", &f.IDs)
	if c.Until(codec.V2411) {
		bit16(c, "only_defs", &f.Flags, model.AssocOnlyDefaults)
	}
	texts(c, "partition_list", &f.Partitions)
	texts(c, "parent_acct_list", &f.ParentAccounts)
	ids(c, "qos_list", &f.QOSIDs)
	c.Time("usage_end", &f.UsageEnd)
	c.Time("usage_start", &f.UsageStart)
	texts(c, "user_list", &f.Users)
	if c.Until(codec.V2411) {
		bit16(c, "with_usage", &f.Flags, model.AssocWithUsage)
		bit16(c, "with_deleted", &f.Flags, model.AssocWithDeleted)
		bit16(c, "with_raw_qos", &f.Flags, model.AssocRawQOS)
		bit16(c, "with_sub_accts", &f.Flags, model.AssocSubAccounts)
		bit16(c, "without_parent_info", &f.Flags, model.AssocWithoutParentInfo)
		bit16(c, "without_parent_limits", &f.Flags, model.AssocWithoutParentLimits)
	}
}

var _ = recordList(RecordList{Get: AccountingGetAssocs, Got: AccountingGotAssocs},
	func(f model.AssocFilter) Body { return &GetAssociations{f} }, func() *Associations { return new(Associations) })

// Associations is the answer to GetAssociations.
type Associations struct {
	ListResponse[model.Association]
}

// Walk encodes or decodes the fields in wire order.
func (m *Associations) Walk(c *codec.Codec) { m.walk(c, "db_assoc_rec", association) }

// association encodes or decodes an association (table db_assoc_rec).
func association(c *codec.Codec, a *model.Association) {
	codec.List(c, "accounting_list", "db_accounting_rec", &a.Usage, usage)
	c.String("acct", &a.Account)
	c.StringOf(codec.ClusterChars, "cluster", &a.Cluster)
	if c.Since(codec.V2302) {
		c.Text("comment", &a.Comment)
	}
	c.Uint32("def_qos_id", &a.DefaultQOSID)
	if c.Until(codec.V2405) {
		c.Uint16In32("flags", &a.Flags)
	} else {
		c.Uint32("flags", &a.Flags)
	}
	c.Uint32("shares_raw", &a.Shares)
	c.String("grp_tres_mins", &a.GrpTRESMins)
	c.String("grp_tres_run_mins", &a.GrpTRESRunMins)
	c.String("grp_tres", &a.GrpTRES)
	c.OptUint32("grp_jobs", &a.GrpJobs)
	c.OptUint32("grp_jobs_accrue", &a.GrpJobsAccrue)
	c.OptUint32("grp_submit_jobs", &a.GrpSubmitJobs)
	c.OptUint32("grp_wall", &a.GrpWall)
	c.Uint32("id", &a.ID)
	c.OptUint16("is_def", &a.IsDefault)
	if c.Until(codec.V2311) {
		c.Uint32("lft", &a.Left)
	} else {
		c.String("lineage", &a.Lineage)
	}
	c.String("max_tres_mins_pj", &a.MaxTRESMinsPJ)
	c.String("max_tres_run_mins", &a.MaxTRESRunMins)
	c.String("max_tres_pj", &a.MaxTRESPJ)
	c.String("max_tres_pn", &a.MaxTRESPN)
	c.OptUint32("max_jobs", &a.MaxJobs)
	c.OptUint32("max_jobs_accrue", &a.MaxJobsAccrue)
	c.OptUint32("min_prio_thresh", &a.MinPrioThreshold)
	c.OptUint32("max_submit_jobs", &a.MaxSubmitJobs)
	c.OptUint32("max_wall_pj", &a.MaxWallPJ)
	c.String("parent_acct", &a.ParentAccount)
	c.Uint32("parent_id", &a.ParentID)
	c.String("partition", &a.Partition)
	c.OptUint32("priority", &a.Priority)
	texts(c, "qos_list", &a.QOSIDs)
	if c.Until(codec.V2311) {
		c.Uint32("rgt", &a.Right)
	}
	c.Uint32("uid", &a.UserID)
	c.String("user", &a.User)
}

// usage encodes or decodes the resources that were used in a period (table
// db_accounting_rec).
func usage(c *codec.Codec, u *model.Usage) {
	c.Uint64("alloc_secs", &u.AllocSecs)
	codec.Record(c, "tres_rec", "db_tres_rec", &u.TRES, tres)
	c.Uint32("id", &u.ID)
	if c.Since(codec.V2411) {
		c.Uint32("id_alt", &u.IDAlt)
	}
	c.Time("period_start", &u.PeriodStart)
}

package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// GetQOS requests qualities of service (table db_qos_cond).
type GetQOS struct{ model.QOSFilter }

// Walk encodes or decodes the fields in wire order.
func (m *GetQOS) Walk(c *codec.Codec) {
	if c.Since(codec.V2411) && absent(c) {
		return
	}
	texts(c, "description_list", &m.Descriptions)
	if c.Since(codec.V2411) {
		c.Uint16("flags", (*uint16)(&m.Flags))
	}
	texts(c, "format_list", &m.Format)
	ids(c, "id_list", &m.IDs)
	texts(c, "name_list", &m.Names)
	c.Uint16("preempt_mode", &m.PreemptMode)
	if c.Until(codec.V2411) {
		bit16(c, "with_deleted", &m.Flags, model.QOSWithDeleted)
	}
}

var _ = recordList(RecordList{Get: AccountingGetQOS, Got: AccountingGotQOS},
	func(f model.QOSFilter) Body { return &GetQOS{f} }, func() *QOSList { return new(QOSList) })

// QOSList is the answer to GetQOS.
type QOSList struct{ ListResponse[model.QOS] }

// Walk encodes or decodes the fields in wire order.
func (m *QOSList) Walk(c *codec.Codec) { m.walk(c, "db_qos_rec", qos) }

// qos encodes or decodes a quality of service (table db_qos_rec).
func qos(c *codec.Codec, q *model.QOS) {
	c.Text("description", &q.Description)
	c.Uint32("id", &q.ID)
	c.Uint32("flags", &q.Flags)
	c.Uint32("grace_time", &q.GraceTime)
	c.String("grp_tres_mins", &q.GrpTRESMins)
	c.String("grp_tres_run_mins", &q.GrpTRESRunMins)
	c.String("grp_tres", &q.GrpTRES)
	c.OptUint32("grp_jobs", &q.GrpJobs)
	c.OptUint32("grp_jobs_accrue", &q.GrpJobsAccrue)
	c.OptUint32("grp_submit_jobs", &q.GrpSubmitJobs)
	c.OptUint32("grp_wall", &q.GrpWall)
	c.String("max_tres_mins_pj", &q.MaxTRESMinsPJ)
	c.String("max_tres_run_mins_pa", &q.MaxTRESRunMinsPA)
	c.String("max_tres_run_mins_pu", &q.MaxTRESRunMinsPU)
	c.String("max_tres_pa", &q.MaxTRESPA)
	c.String("max_tres_pj", &q.MaxTRESPJ)
	c.String("max_tres_pn", &q.MaxTRESPN)
	c.String("max_tres_pu", &q.MaxTRESPU)
	c.OptUint32("max_jobs_pa", &q.MaxJobsPA)
	c.OptUint32("max_jobs_pu", &q.MaxJobsPU)
	c.OptUint32("max_jobs_accrue_pa", &q.MaxJobsAccruePA)
	c.OptUint32("max_jobs_accrue_pu", &q.MaxJobsAccruePU)
	c.OptUint32("min_prio_thresh", &q.MinPrioThreshold)
	c.OptUint32("max_submit_jobs_pa", &q.MaxSubmitJobsPA)
	c.OptUint32("max_submit_jobs_pu", &q.MaxSubmitJobsPU)
	c.OptUint32("max_wall_pj", &q.MaxWallPJ)
	c.String("min_tres_pj", &q.MinTRESPJ)
	c.String("name", &q.Name)
	c.Bitmap("preempt_bitstr", &q.PreemptIDs)
	texts(c, "preempt_list", &q.PreemptNames)
	c.Uint16("preempt_mode", &q.PreemptMode)
	c.OptUint32("preempt_exempt_time", &q.PreemptExemptTime)
	c.OptUint32("priority", &q.Priority)
	c.Float("usage_factor", &q.UsageFactor)
	c.Float("usage_thres", &q.UsageThreshold)
	c.Float("limit_factor", &q.LimitFactor)
}

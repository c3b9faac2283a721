package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// LimitsRequest requests limits and how much of them is used (table
// assoc_mgr_info_request). A nil list selects all.
type LimitsRequest struct {
	Accounts []string
	Flags    uint32 // LimitsAssociations, LimitsQOS
	QOS      []string
	Users    []string
}

// The bits of LimitsRequest.Flags.
const (
	LimitsAssociations = 1
	LimitsQOS          = 4
)

// Walk encodes or decodes the fields in wire order.
func (m *LimitsRequest) Walk(c *codec.Codec) {
	texts(c, "acct_list", &m.Accounts)
	c.Uint32("flags", &m.Flags)
	texts(c, "qos_list", &m.QOS)
	texts(c, "user_list", &m.Users)
}

// Limits answers LimitsRequest (table assoc_mgr_info_response). TRESNames is
// decoded before the first element of the streams. The project never requests
// users.
type Limits struct {
	TRESNames    []string
	Associations codec.Stream[model.AssocLimits]
	QOS          codec.Stream[model.QOSLimits]
	Users        codec.Stream[model.User]
}

// Walk encodes or decodes the fields in wire order.
func (m *Limits) Walk(c *codec.Codec) {
	c.Strings("tres_names", &m.TRESNames)
	n := c.Count("assoc_count", m.Associations.Size())
	c.Loop("assoc_count", n, func(int) {
		codec.Next(c, "assoc_list", "db_assoc_rec_with_usage", &m.Associations, assocLimits)
	})
	n = c.Count("qos_count", m.QOS.Size())
	c.Loop("qos_count", n, func(int) {
		codec.Next(c, "qos_list", "db_qos_rec_with_usage", &m.QOS, qosLimits)
	})
	n = c.Count("user_count", m.Users.Size())
	c.Loop("user_count", n, func(int) {
		codec.Next(c, "user_list", "db_user_rec", &m.Users, user)
	})
}

// assocLimits encodes or decodes an association with its usage (table
// db_assoc_rec_with_usage).
func assocLimits(c *codec.Codec, a *model.AssocLimits) {
	codec.Record(c, "assoc", "db_assoc_rec", &a.Association, association)
	codec.Record(c, "usage", "db_assoc_usage", &a.Usage, assocUsage)
	limits(c, "grp_tres_mins_ctld", &a.TRESMinutes)
	limits(c, "grp_tres_run_mins_ctld", &a.TRESRunMinutes)
	limits(c, "grp_tres_ctld", &a.TRES)
	limits(c, "max_tres_mins_ctld", &a.MaxTRESMinutes)
	limits(c, "max_tres_run_mins_ctld", &a.MaxTRESRunMins)
	limits(c, "max_tres_ctld", &a.MaxTRES)
	limits(c, "max_tres_pn_ctld", &a.MaxTRESPerNode)
}

// limits encodes or decodes a limit for each trackable resource.
func limits(c *codec.Codec, name string, v *[]model.Opt[uint64]) {
	codec.Array(c, name, "u64", v, optUint64)
}

// decimals encodes or decodes numbers that are sent as text.
func decimals(c *codec.Codec, name string, v *[]float64) {
	codec.Array(c, name, "f128str", v, func(c *codec.Codec, v *float64) { c.Decimal(name, v) })
}

// floats encodes or decodes a number for each trackable resource.
func floats(c *codec.Codec, name string, v *[]float64) {
	codec.Array(c, name, "f64", v, func(c *codec.Codec, v *float64) { c.Float(name, v) })
}

// assocUsage encodes or decodes the usage of an association (table
// db_assoc_usage).
func assocUsage(c *codec.Codec, u *model.AssocUsage) {
	c.Uint32("accrue_cnt", &u.AccrueCount)
	c.Uint64s("grp_used_tres", &u.TRES)
	c.Uint64s("grp_used_tres_run_secs", &u.TRESRunSeconds)
	c.Float("grp_used_wall", &u.Wall)
	c.Float("fs_factor", &u.Factor)
	c.Uint32("level_shares", &u.LevelShares)
	c.Float("shares_norm", &u.SharesNorm)
	c.Decimal("usage_efctv", &u.EffectiveUsage)
	c.Decimal("usage_norm", &u.UsageNormalized)
	c.Decimal("usage_raw", &u.Usage)
	decimals(c, "usage_tres_raw", &u.TRESSeconds)
	c.Uint32("used_jobs", &u.Jobs)
	c.Uint32("used_submit_jobs", &u.SubmitJobs)
	c.Decimal("level_fs", &u.Level)
	c.Bitmap("valid_qos", &u.ValidQOS)
}

// qosLimits encodes or decodes a QOS with its usage (table
// db_qos_rec_with_usage).
func qosLimits(c *codec.Codec, q *model.QOSLimits) {
	codec.Record(c, "qos", "db_qos_rec", &q.QOS, qos)
	limits(c, "grp_tres_mins_ctld", &q.TRESMinutes)
	limits(c, "grp_tres_run_mins_ctld", &q.TRESRunMinutes)
	limits(c, "grp_tres_ctld", &q.TRES)
	limits(c, "max_tres_mins_pj_ctld", &q.MaxTRESMinutes)
	limits(c, "max_tres_run_mins_pa_ctld", &q.RunMinsPerAcct)
	limits(c, "max_tres_run_mins_pu_ctld", &q.RunMinsPerUser)
	limits(c, "max_tres_pa_ctld", &q.MaxTRESPerAcct)
	limits(c, "max_tres_pj_ctld", &q.MaxTRES)
	limits(c, "max_tres_pn_ctld", &q.MaxTRESPerNode)
	limits(c, "max_tres_pu_ctld", &q.MaxTRESPerUser)
	limits(c, "min_tres_pj_ctld", &q.MinTRES)
	codec.Record(c, "usage", "db_qos_usage", &q.Usage, qosUsage)
}

// qosUsage encodes or decodes the usage of a QOS (table db_qos_usage).
func qosUsage(c *codec.Codec, u *model.QOSUsage) {
	c.Uint32("accrue_cnt", &u.AccrueCount)
	c.Uint32("grp_used_jobs", &u.Jobs)
	c.Uint32("grp_used_submit_jobs", &u.SubmitJobs)
	c.Uint64s("grp_used_tres", &u.TRES)
	c.Uint64s("grp_used_tres_run_secs", &u.TRESRunSeconds)
	c.Float("grp_used_wall", &u.Wall)
	c.Float("norm_priority", &u.NormPriority)
	c.Decimal("usage_raw", &u.Usage)
	decimals(c, "usage_tres_raw", &u.TRESSeconds)
	codec.List(c, "user_limit_list", "db_used_limits", &u.Users, usedLimits)
	codec.List(c, "acct_limit_list", "db_used_limits", &u.Accounts, usedLimits)
}

// usedLimits encodes or decodes what a user or an account uses of a QOS (table
// db_used_limits).
func usedLimits(c *codec.Codec, u *model.UsedLimits) {
	c.Uint32("accrue_cnt", &u.AccrueCount)
	c.String("acct", &u.Account)
	c.Uint32("jobs", &u.Jobs)
	c.Uint32("submit_jobs", &u.SubmitJobs)
	c.Uint64s("tres", &u.TRES)
	if c.Until(codec.V2405) {
		c.Uint64s("tres_run_mins", &u.TRESRunMinutes)
	} else {
		c.Uint64s("tres_run_secs", &u.TRESRunSeconds)
	}
	c.Uint32("uid", &u.UserID)
}

package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// AccountingStats answers AccountingGetStats (table db_stats_msg).
type AccountingStats struct{ model.AccountingStats }

// Walk encodes or decodes the fields in wire order.
func (m *AccountingStats) Walk(c *codec.Codec) {
	codec.Record(c, "dbd_rollup_stats", "db_rollup_stats", &m.Rollup, rollup)
	codec.List(c, "rollup_stats", "db_rollup_stats", &m.Rollups, rollup)
	codec.List(c, "rpc_list", "db_rpc_obj", &m.RPCs, callCount)
	c.Time("time_start", &m.TimeStart)
	codec.List(c, "user_list", "db_rpc_obj", &m.Users, callCount)
}

// rollup encodes or decodes the statistics of roll-ups (table db_rollup_stats).
func rollup(c *codec.Codec, r *model.Rollup) {
	c.String("cluster_name", &r.Cluster)
	n := c.Count16("rollup_count", len(r.Periods))
	loop(c, "rollup_count", n, &r.Periods, rollupPeriod)
}

func rollupPeriod(c *codec.Codec, p *model.RollupPeriod) {
	c.Uint16("count", &p.Count)
	c.Time("timestamp", &p.LastRun)
	c.Uint64("time_last", &p.TimeLast)
	c.Uint64("time_max", &p.TimeMax)
	c.Uint64("time_total", &p.TimeTotal)
}

// callCount encodes or decodes the number and the duration of calls (table
// db_rpc_obj).
func callCount(c *codec.Codec, n *model.CallCount) {
	c.Uint32("cnt", &n.Count)
	c.Uint32("id", &n.ID)
	c.Uint64("time", &n.Time)
}

// RecordJobs sends jobs to the bundled accounting daemon, which answers with a
// PersistRC. The daemon stores only the latest record of each job, so it is
// harmless to send a job twice. RecordJobs is not a message of Slurm's: its
// number is outside the range of Slurm's numbers. Only the newest protocol has
// this message. A schedctld sends it only to a scheddbd of an older release.
type RecordJobs struct{ Jobs []model.Job }

// Walk encodes or decodes the fields in wire order.
func (m *RecordJobs) Walk(c *codec.Codec) {
	codec.List(c, "jobs", "job_info_record", &m.Jobs, job)
}

// RecordRuns is like RecordJobs, but contains the run of each job, too.
type RecordRuns struct{ Jobs []model.Job }

// Walk encodes or decodes the fields in wire order.
func (m *RecordRuns) Walk(c *codec.Codec) {
	codec.List(c, "jobs", "job_run_record", &m.Jobs, func(c *codec.Codec, j *model.Job) {
		job(c, j)
		c.OptUint32("cancelled_by", &j.Run.CancelledBy)
		c.Bool("has_usage", &j.Run.HasUsage)
		c.Uint32("status", &j.Run.Status)
		c.Uint64("user_usec", &j.Run.UserTime)
		c.Uint64("system_usec", &j.Run.SystemTime)
		c.Uint64("max_rss", &j.Run.MaxRSS)
	})
}

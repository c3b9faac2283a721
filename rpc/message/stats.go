package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// StatsRequest requests the controller's statistics (table stats_request).
type StatsRequest struct{ Command uint16 }

// Commands of a StatsRequest.
const (
	StatsReset uint16 = 0 // reset the counters; answered by an RC
	StatsGet   uint16 = 1
)

// Walk encodes or decodes the fields in wire order.
func (m *StatsRequest) Walk(c *codec.Codec) { c.Uint16("command_id", &m.Command) }

// ControllerStats answers StatsGet (table stats_response).
type ControllerStats struct{ model.ControllerStats }

// Walk encodes or decodes the fields in wire order. Up to protocol 43, the
// first part of the statistics is optional, but no daemon omits it.
func (m *ControllerStats) Walk(c *codec.Codec) {
	if c.Until(codec.V2511) {
		parts := true
		flag32(c, "parts_packed", &parts)
		m.Parts = parts
		if c.If("parts_packed", parts) {
			m.walkCounts(c)
		}
		c.EndIf()
	} else {
		m.walkCounts(c)
	}
	m.walkTypes(c)
	m.walkUsers(c)
	m.walkPending(c)
}

func (m *ControllerStats) walkCounts(c *codec.Codec) {
	c.Time("req_time", &m.RequestTime)
	c.Time("req_time_start", &m.StatsStart)
	c.Uint32("server_thread_count", &m.ServerThreads)
	c.Uint32("agent_queue_size", &m.AgentQueueSize)
	c.Uint32("agent_count", &m.Agents)
	c.Uint32("agent_thread_count", &m.AgentThreads)
	c.Uint32("dbd_agent_queue_size", &m.AccountingQueueSize)
	c.Uint32("gettimeofday_latency", &m.GetTimeLatency)
	c.Uint32("jobs_submitted", &m.JobsSubmitted)
	c.Uint32("jobs_started", &m.JobsStarted)
	c.Uint32("jobs_completed", &m.JobsCompleted)
	c.Uint32("jobs_canceled", &m.JobsCanceled)
	c.Uint32("jobs_failed", &m.JobsFailed)
	c.Uint32("jobs_pending", &m.JobsPending)
	c.Uint32("jobs_running", &m.JobsRunning)
	c.Time("job_states_ts", &m.JobStatesTime)
	schedulerStats(c, &m.Schedule)
	backfillStats(c, &m.Backfill)
}

func schedulerStats(c *codec.Codec, s *model.SchedulerStats) {
	c.Uint32("schedule_cycle_max", &s.CycleMax)
	c.Uint32("schedule_cycle_last", &s.CycleLast)
	if c.Until(codec.V2511) {
		c.Uint32In64("schedule_cycle_sum", &s.CycleSum)
	} else {
		c.Uint64("schedule_cycle_sum", &s.CycleSum)
	}
	c.Uint32("schedule_cycle_counter", &s.CycleCounter)
	c.Uint32("schedule_cycle_depth", &s.CycleDepth)
	if c.Since(codec.V2311) {
		c.Uint32s("schedule_exit", &s.Exits)
	}
	c.Uint32("schedule_queue_len", &s.QueueLen)
}

func backfillStats(c *codec.Codec, b *model.BackfillStats) {
	c.Uint32("bf_backfilled_jobs", &b.Jobs)
	c.Uint32("bf_last_backfilled_jobs", &b.LastJobs)
	c.Uint32("bf_cycle_counter", &b.CycleCounter)
	c.Uint64("bf_cycle_sum", &b.CycleSum)
	c.Uint32("bf_cycle_last", &b.CycleLast)
	c.Uint32("bf_last_depth", &b.LastDepth)
	c.Uint32("bf_last_depth_try", &b.LastDepthTry)
	c.Uint32("bf_queue_len", &b.QueueLen)
	c.Uint32("bf_cycle_max", &b.CycleMax)
	c.Time("bf_when_last_cycle", &b.WhenLastCycle)
	c.Uint32("bf_depth_sum", &b.DepthSum)
	c.Uint32("bf_depth_try_sum", &b.DepthTrySum)
	c.Uint32("bf_queue_len_sum", &b.QueueLenSum)
	c.Uint32("bf_table_size", &b.TableSize)
	c.Uint32("bf_table_size_sum", &b.TableSizeSum)
	flag32(c, "bf_active", &b.Active)
	c.Uint32("bf_backfilled_het_jobs", &b.HetJobs)
	if c.Since(codec.V2311) {
		c.Uint32s("bf_exit", &b.Exits)
	}
}

func (m *ControllerStats) walkTypes(c *codec.Codec) {
	n := c.Count("rpc_type_size", len(m.RPCTypes))
	codec.Array(c, "rpc_type_id", "u16", &m.RPCTypes, func(c *codec.Codec, t *model.RPCTypeStats) {
		c.Uint16("rpc_type_id", &t.Type)
	})
	checkCount(c, "rpc_type_size", n, len(m.RPCTypes))
	codec.Column(c, "rpc_type_cnt", "u32", m.RPCTypes, func(c *codec.Codec, t *model.RPCTypeStats) {
		c.Uint32("rpc_type_cnt", &t.Count)
	})
	codec.Column(c, "rpc_type_time", "u64", m.RPCTypes, func(c *codec.Codec, t *model.RPCTypeStats) {
		c.Uint64("rpc_type_time", &t.Time)
	})
	if c.Until(codec.V2405) {
		return
	}
	flag8(c, "rpc_queue_enabled", &m.QueueEnabled)
	if c.If("rpc_queue_enabled", m.QueueEnabled) {
		codec.Column(c, "rpc_type_queued", "u16", m.RPCTypes, func(c *codec.Codec, t *model.RPCTypeStats) {
			c.Uint16("rpc_type_queued", &t.Queued)
		})
		codec.Column(c, "rpc_type_dropped", "u64", m.RPCTypes, func(c *codec.Codec, t *model.RPCTypeStats) {
			c.Uint64("rpc_type_dropped", &t.Dropped)
		})
		codec.Column(c, "rpc_type_cycle_last", "u16", m.RPCTypes, func(c *codec.Codec, t *model.RPCTypeStats) {
			c.Uint16("rpc_type_cycle_last", &t.CycleLast)
		})
		codec.Column(c, "rpc_type_cycle_max", "u16", m.RPCTypes, func(c *codec.Codec, t *model.RPCTypeStats) {
			c.Uint16("rpc_type_cycle_max", &t.CycleMax)
		})
	}
	c.EndIf()
}

func (m *ControllerStats) walkUsers(c *codec.Codec) {
	n := c.Count("rpc_user_size", len(m.RPCUsers))
	codec.Array(c, "rpc_user_id", "u32", &m.RPCUsers, func(c *codec.Codec, u *model.RPCUserStats) {
		c.Uint32("rpc_user_id", &u.UserID)
	})
	checkCount(c, "rpc_user_size", n, len(m.RPCUsers))
	codec.Column(c, "rpc_user_cnt", "u32", m.RPCUsers, func(c *codec.Codec, u *model.RPCUserStats) {
		c.Uint32("rpc_user_cnt", &u.Count)
	})
	codec.Column(c, "rpc_user_time", "u64", m.RPCUsers, func(c *codec.Codec, u *model.RPCUserStats) {
		c.Uint64("rpc_user_time", &u.Time)
	})
}

func (m *ControllerStats) walkPending(c *codec.Codec) {
	codec.Array(c, "rpc_queue_type_id", "u32", &m.PendingRPCs, func(c *codec.Codec, p *model.PendingRPCs) {
		c.Uint32("rpc_queue_type_id", &p.Type)
	})
	codec.Column(c, "rpc_queue_count", "u32", m.PendingRPCs, func(c *codec.Codec, p *model.PendingRPCs) {
		c.Uint32("rpc_queue_count", &p.Count)
	})
	codec.Array(c, "rpc_dump_types", "u32", &m.PendingHosts, func(c *codec.Codec, p *model.PendingHosts) {
		c.Uint32("rpc_dump_types", &p.Type)
	})
	codec.Column(c, "rpc_dump_hostlist", "str", m.PendingHosts, func(c *codec.Codec, p *model.PendingHosts) {
		c.String("rpc_dump_hostlist", &p.Hosts)
	})
}

// checkCount sets an error if a count differs from the number of records.
func checkCount(c *codec.Codec, name string, want, got int) {
	if c.Decoding() && want != got {
		c.Fail(name, codec.ErrColumn)
	}
}

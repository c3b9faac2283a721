package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// NodeInfoRequest requests all nodes (table node_info_request).
type NodeInfoRequest struct {
	LastUpdate model.Time // nodes are returned only if something changed after this time; if 0, always
	ShowFlags  uint16     // a model.Show
}

// Walk encodes or decodes the fields in wire order.
func (m *NodeInfoRequest) Walk(c *codec.Codec) {
	c.Time("last_update", &m.LastUpdate)
	c.Uint16("show_flags", &m.ShowFlags)
}

// NodeInfoSingleRequest requests one node by name (table
// node_info_single_request).
type NodeInfoSingleRequest struct {
	NodeName  string
	ShowFlags uint16 // a model.Show
}

// Walk encodes or decodes the fields in wire order.
func (m *NodeInfoSingleRequest) Walk(c *codec.Codec) {
	c.String("node_name", &m.NodeName)
	c.Uint16("show_flags", &m.ShowFlags)
}

// NodeInfo answers NodeInfoRequest and NodeInfoSingleRequest (table
// node_info_response). From protocol 42 on, nodes that are hidden from the
// client are counted and marked in Hidden, but their records are not sent.
type NodeInfo struct {
	RecordCount int // number of all nodes, including hidden ones; an encoder sends at least Nodes.Size()
	LastUpdate  model.Time
	Hidden      model.Bitmap
	Nodes       codec.Stream[model.Node]
}

// Walk encodes or decodes the fields in wire order.
func (m *NodeInfo) Walk(c *codec.Codec) {
	m.RecordCount = c.Count("record_count", max(m.RecordCount, m.Nodes.Size()))
	c.Time("last_update", &m.LastUpdate)
	if c.Since(codec.V2411) {
		c.Bitmap("hidden_nodes", &m.Hidden)
	}
	c.Loop("record_count", m.RecordCount, func(i int) {
		if c.Until(codec.V2411) {
			codec.Next(c, "nodes", "node_info_record", &m.Nodes, node)
			return
		}
		if c.If("bit i of hidden_nodes is clear", !m.Hidden.Has(i)) {
			codec.Next(c, "nodes", "node_info_record", &m.Nodes, node)
		}
		c.EndIf()
	})
}

// node encodes or decodes one element of a NodeInfo (table node_info_record).
func node(c *codec.Codec, n *model.Node) {
	c.String("name", &n.Name)
	c.String("node_hostname", &n.Hostname)
	c.String("node_addr", &n.Address)
	c.String("bcast_address", &n.BroadcastAddress)
	if c.Since(codec.V2505) {
		c.Uint16("cert_flags", &n.CertFlags)
	}
	c.Uint16("port", &n.Port)
	c.Uint32("next_state", (*uint32)(&n.NextState))
	c.Uint32("node_state", (*uint32)(&n.State))
	c.String("version", &n.Version)
	c.Uint16("cpus", &n.CPUs)
	c.Uint16("boards", &n.Boards)
	c.Uint16("sockets", &n.Sockets)
	c.Uint16("cores", &n.Cores)
	c.Uint16("threads", &n.Threads)
	c.Uint64("real_memory", &n.Memory)
	c.Uint32("tmp_disk", &n.TmpDisk)
	if c.Since(codec.V2405) {
		c.String("gpu_spec", &n.GPUSpec)
	}
	c.String("mcs_label", &n.MCSLabel)
	c.OptUint32("owner", &n.Owner)
	c.Uint16("core_spec_cnt", &n.SpecializedCores)
	c.Uint32("cpu_bind", &n.CPUBind)
	c.Uint64("mem_spec_limit", &n.SpecializedMemory)
	c.String("cpu_spec_list", &n.SpecializedCPUs)
	c.Uint16("cpus_efctv", &n.EffectiveCPUs)
	c.OptUint32("cpu_load", &n.CPULoad)
	c.OptUint64("free_mem", &n.FreeMem)
	c.Uint32("weight", &n.Weight)
	if c.Since(codec.V2405) {
		c.Uint16("res_cores_per_gpu", &n.ResCoresPerGPU)
	}
	c.Uint32("reason_uid", &n.ReasonUID)
	if c.Since(codec.V2605) {
		c.OptUint32("suspend_time", &n.SuspendTime)
	}
	c.Time("boot_time", &n.BootTime)
	c.Time("last_busy", &n.LastBusy)
	c.Time("reason_time", &n.ReasonTime)
	if c.Since(codec.V2302) {
		c.Time("resume_after", &n.ResumeAfter)
	}
	c.Time("slurmd_start_time", &n.DaemonStartTime)
	if c.Until(codec.V2505) {
		selectPlugin(c, "select_plugin_id")
	}
	if c.Since(codec.V2505) {
		c.Time("cert_last_renewal", &n.CertLastRenewal)
	}
	c.Uint16("alloc_cpus", &n.AllocCPUs)
	c.Uint64("alloc_memory", &n.AllocMemory)
	c.String("alloc_tres_fmt_str", &n.AllocTRES)
	if c.Until(codec.V2505) {
		c.Float("alloc_tres_weighted", &n.AllocTRESWeighted) // from removed plugin data; ignored
	}
	c.String("arch", &n.Architecture)
	c.String("features", &n.Features)
	c.String("features_act", &n.ActiveFeatures)
	c.String("gres", &n.GRES)
	c.String("gres_drain", &n.GRESDrained)
	c.String("gres_used", &n.GRESUsed)
	c.String("os", &n.OS)
	c.String("comment", &n.Comment)
	c.String("extra", &n.Extra)
	if c.Since(codec.V2311) {
		c.String("instance_id", &n.InstanceID)
		c.String("instance_type", &n.InstanceType)
	}
	if c.Since(codec.V2511) {
		c.String("parameters", &n.Parameters)
	}
	c.String("reason", &n.Reason)
	codec.Record(c, "energy", "energy", &n.Energy, energy)
	if c.Until(codec.V2405) {
		c.Uint64("ext_sensors_consumed_energy", &n.ExtSensorsConsumedEnergy)
		c.OptUint32("ext_sensors_temperature", &n.ExtSensorsTemperature)
		c.Time("ext_sensors_update_time", &n.ExtSensorsUpdateTime)
		c.OptUint32("ext_sensors_current_watts", &n.ExtSensorsCurrentWatts)
		c.OptUint32("power_cap_watts", &n.PowerCapWatts) // from removed plugin data; ignored
	}
	c.String("tres_fmt_str", &n.TRES)
	if c.Since(codec.V2302) {
		c.String("resv_name", &n.Reservation)
	}
	if c.Since(codec.V2505) {
		c.String("topology_str", &n.Topology)
	}
}

// energy encodes or decodes a node's energy consumption (table energy).
func energy(c *codec.Codec, e *model.Energy) {
	c.Uint64("base_consumed_energy", &e.BaseConsumedEnergy)
	c.Uint32("ave_watts", &e.AverageWatts)
	c.Uint64("consumed_energy", &e.ConsumedEnergy)
	c.OptUint32("current_watts", &e.CurrentWatts)
	c.Uint64("previous_consumed_energy", &e.PreviousConsumedEnergy)
	c.Time("poll_time", &e.PollTime)
	if c.Since(codec.V2411) {
		c.Time("slurmd_start_time", &e.DaemonStartTime)
	}
}

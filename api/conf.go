package api

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

type confField = schema.Field[model.Configuration]

// schedNames replaces Slurm's name with this project's name in field names.
var schedNames = strings.NewReplacer("SLURM", "SCHED", "Slurm", "Sched")

// confShow returns a field of the configuration. The name argument is the
// field's name in the Slurm spelling. confShow derives the field's name in the
// Sched spelling from it.
func confShow[T any](name string, typ func() schema.Type[T], get func(*model.Configuration) T, opts ...schema.Option) confField {
	schedName := schedNames.Replace(name)
	return schema.Show(schedName, typ, get, "Current value of "+schedName, append(opts, schema.InSlurm(name))...)
}

// confText returns a field that contains a string. In this function and in
// those below, the wire argument is the key of the setting in a Configuration.
func confText(name, wire string, opts ...schema.Option) confField {
	return confShow(name, schema.String, func(c *model.Configuration) string { return c.Texts[wire] }, opts...)
}

func confTexts(name, wire string, opts ...schema.Option) confField {
	return confShow(name, csvString, func(c *model.Configuration) []string { return commaList(c.Texts[wire]) }, opts...)
}

// confList returns a field that contains a list. Older controllers send a
// single string instead of a list. The field then contains this string as its
// only element.
func confList(name, wire string) confField {
	return confShow(name, stringArray, func(c *model.Configuration) []string {
		if text := c.Texts[wire]; text != "" {
			return []string{text}
		}
		return c.Lists[wire]
	})
}

func confNumber(name, wire string, unit schema.Option) confField {
	return confShow(name, schema.Int32, func(c *model.Configuration) uint32 { return uint32(c.Numbers[wire]) }, unit)
}

// confLimit returns a field with a number that may be unset. A number that the
// controller did not send is shown as unset.
func confLimit[T uint16 | uint32](name, wire string, unit schema.Option) confField {
	return confShow(name, rawNumber, func(c *model.Configuration) T {
		if n, sent := c.Numbers[wire]; sent {
			return T(n)
		}
		return ^T(0) - 1
	}, unit)
}

func confBool(name, wire string) confField {
	return confShow(name, schema.Boolean, func(c *model.Configuration) bool { return c.Numbers[wire] != 0 })
}

func confMemory(name, wire string, amount func(uint64) model.Opt[uint64]) confField {
	return confShow(name, number, func(c *model.Configuration) model.Opt[uint64] { return amount(c.Numbers[wire]) }, schema.Unit("MiB"))
}

func confTime(name, doc string, at func(*model.Configuration) model.Time) confField {
	return schema.Show(name, seconds, at, doc, schema.Unit(UnixTime))
}

func confWord(name, wire string, words singleWords) confField {
	return confShow(name, words.Type, func(c *model.Configuration) uint64 { return c.Numbers[wire] })
}

func confFlags(name, wire string, words *schema.WordSet[uint64]) confField {
	return confShow(name, words.Type, func(c *model.Configuration) uint64 {
		n := c.Numbers[wire]
		if words == healthCheckNodeStateWords && n&0xff == 0xff {
			return n&^0xff | confAnyState
		}
		return n
	})
}

// confAnyState is a bit that the protocol does not use. If the bits of all node
// states are set, confFlags replaces them with this bit. So the answer contains
// the single word ANY instead of the names of all states.
const confAnyState uint64 = 1 << 32

// confDuration returns a field with a duration as Slurm's commands write it,
// such as "7-00:00:00".
func confDuration(name, wire string) confField {
	return confShow(name, schema.String, func(c *model.Configuration) string {
		n := c.Numbers[wire]
		if n == 0xffffffff {
			return "UNLIMITED"
		}
		text := fmt.Sprintf("%02d:%02d:%02d", n/3600%24, n/60%60, n%60)
		if days := n / 86400; days > 0 {
			text = fmt.Sprintf("%d-%s", days, text)
		}
		return text
	})
}

var confPorts = schema.Object("port_range", func() schema.Fields[[2]uint64] {
	return schema.Fields[[2]uint64]{
		schema.Show("minimum", schema.Int32, func(p *[2]uint64) uint32 { return uint32(p[0]) }, "First port", schema.Bare),
		schema.Show("maximum", schema.Int32, func(p *[2]uint64) uint32 { return uint32(p[1]) }, "Last port", schema.Bare),
		schema.Show("set", schema.Boolean, func(p *[2]uint64) bool { return p[0] != 0 }, "Whether a range of ports is set"),
	}
})

var confController = schema.Object("controller", func() schema.Fields[[2]string] {
	return schema.Fields[[2]string]{
		schema.Show("machine", schema.String, func(c *[2]string) string { return c[0] }, "Name of the controller's machine"),
		schema.Show("address", schema.String, func(c *[2]string) string { return c[1] }, "Address of the controller"),
	}
})

func confControllers(c *model.Configuration) [][2]string {
	var list [][2]string
	for i, machine := range c.Lists["control_machine"] {
		address := machine
		if addresses := c.Lists["control_addr"]; i < len(addresses) {
			address = cmp.Or(addresses[i], machine)
		}
		list = append(list, [2]string{machine, address})
	}
	return list
}

var confJobDefault = schema.Object("job_defaults", func() schema.Fields[model.JobDefault] {
	return schema.Fields[model.JobDefault]{
		schema.Show("type", schema.Words("job_defaults_type", schema.Part("DefCpuPerGPU", ^uint16(0), 1), schema.Part("DefMemPerGPU", ^uint16(0), 2)).Type, func(d *model.JobDefault) uint16 { return d.Type }, "Name of the default"),
		schema.Show("value", schema.Int64, func(d *model.JobDefault) uint64 { return d.Value }, "Value of the default", schema.Bare),
	}
})

// configuration declares the fields of a Configuration. The table contains the
// names in Slurm's documents. confShow derives the names in the Sched spelling
// from them.
var configuration = schema.Object("slurm_conf", func() schema.Fields[model.Configuration] {
	return schema.Fields[model.Configuration]{
		confTexts("AccountingStorageTRES", "accounting_storage_tres"),
		confText("AccountingStorageBackupHost", "accounting_storage_backup_host"),
		confFlags("AccountingStorageEnforce", "accounting_storage_enforce", acctStorageEnforceWords),
		confText("AccountingStorageExternalHost", "accounting_storage_ext_host"),
		confText("AccountingStorageHost", "accounting_storage_host"),
		confTexts("AccountingStorageParameters", "accounting_storage_params"),
		confNumber("AccountingStoragePort", "accounting_storage_port", schema.Bare),
		confText("AccountingStorageType", "accounting_storage_type"),
		confTexts("AcctGatherEnergyType", "acct_gather_energy_type"),
		confText("AcctGatherProfileType", "acct_gather_profile_type"),
		confText("AcctGatherInterconnectType", "acct_gather_interconnect_type"),
		confText("AcctGatherFilesystemType", "acct_gather_filesystem_type"),
		confNumber("AcctGatherNodeFreq", "acct_gather_node_freq", schema.Unit("s")),
		confFlags("ConfFlags", "conf_flags", confFlagsWords),
		confTexts("AuthAltTypes", "authalttypes"),
		confText("AuthInfo", "authinfo"),
		confText("AuthAltParameters", "authalt_params"),
		confText("AuthType", "authtype"),
		confNumber("BatchStartTimeout", "batch_start_timeout", schema.Unit("s")),
		confText("BurstBufferType", "bb_type"),
		confTexts("BcastExclude", "bcast_exclude"),
		confTexts("BcastParameters", "bcast_parameters"),
		confTexts("CertgenParameters", ""),
		confText("CertgenType", ""),
		confText("CertmgrParameters", "certmgr_params"),
		confText("CertmgrType", "certmgr_type"),
		confTexts("CliFilterParameters", "cli_filter_params"),
		confTexts("CliFilterPlugins", "cli_filter_plugins"),
		confText("ClusterName", "cluster_name"),
		confTexts("CommunicationParameters", "comm_params"),
		confNumber("CompleteWait", "complete_wait", schema.Unit("s")),
		confFlags("CommunicationParametersFlags", "conf_flags", confFlagsCommunicationParametersWords),
		confFlags("AccountingStoreFlags", "conf_flags", confFlagsAccountingStoreWords),
		confFlags("SlurmdParametersFlags", "conf_flags", confFlagsSlurmdParametersWords),
		schema.Show("controllers", schema.Named("controllers_array", schema.List(confController.Type)), confControllers, "The controllers, the primary one first"),
		confShow("CpuFreqDef", schema.String, func(c *model.Configuration) string {
			n := c.Numbers["cpu_freq_def"]
			if n == uint64(model.NoVal32) {
				return "Unknown"
			}
			return cpuFreqGovsNames[n]
		}),
		confFlags("CpuFreqGovernors", "cpu_freq_govs", cpuFreqGovsWords),
		confText("CredType", "cred_type"),
		confText("DataParserParameters", "data_parser_parameters"),
		confFlags("DebugFlags", "debug_flags", debugFlagsWords),
		confMemory("DefMemPerCPU", "def_mem_per_cpu", memoryPerCPU),
		confText("DefRuntimePlugin", "def_runtime_plugin", schema.Since(V46)),
		confTexts("DependencyParameters", "dependency_params"),
		confNumber("EioTimeout", "eio_timeout", schema.Unit("s")),
		confFlags("EnforcePartLimits", "enforce_part_limits", enforcePartLimitsWords),
		confList("Epilog", "epilog"),
		confNumber("EpilogMsgTime", "epilog_msg_time", schema.Unit("µs")),
		confList("EpilogSlurmctld", "epilog_slurmctld"),
		confLimit[uint16]("EpilogTimeout", "epilog_timeout", schema.Unit("s")),
		confTexts("FederationParameters", "fed_params"),
		confNumber("FirstJobId", "first_job_id", schema.Bare),
		confNumber("FairShareDampeningFactor", "fs_dampening_factor", schema.Bare),
		confNumber("GetNameInfoCacheTimeout", "", schema.Unit("s")),
		confTexts("GresTypes", "gres_plugins"),
		confNumber("GroupUpdateTime", "group_time", schema.Unit("s")),
		confBool("GroupUpdateForce", "group_force"),
		confText("GpuFreqDef", "gpu_freq_def"),
		confText("HashPlugin", "hash_plugin"),
		confNumber("HealthCheckInterval", "health_check_interval", schema.Unit("s")),
		confFlags("HealthCheckNodeState", "health_check_node_state", healthCheckNodeStateWords),
		confText("HealthCheckProgram", "health_check_program"),
		confNumber("HealthCheckTimeout", "health_check_timeout", schema.Unit("s")),
		confText("HttpParserType", "http_parser_type"),
		confNumber("HostUnreachRetryCount", "", schema.Bare),
		confNumber("InactiveLimit", "inactive_limit", schema.Unit("s")),
		confText("InteractiveStepOptions", "interactive_step_opts"),
		confTexts("JobAcctGatherFrequency", "job_acct_gather_freq"),
		confText("JobAcctGatherType", "job_acct_gather_type"),
		confTexts("JobAcctGatherParams", "job_acct_gather_params"),
		confBool("JobAcctOomKill", ""),
		confText("JobCompHost", "job_comp_host"),
		confText("JobCompLoc", "job_comp_loc"),
		confText("JobCompParams", "job_comp_params"),
		confNumber("JobCompPort", "job_comp_port", schema.Bare),
		confText("JobCompType", "job_comp_type"),
		confText("JobCompUser", "job_comp_user"),
		schema.F("JobDefaults", schema.Named("job_defaults_list", schema.List(confJobDefault.Type)), func(c *model.Configuration) *[]model.JobDefault { return &c.JobDefaults }, "Defaults for jobs"),
		confBool("JobFileAppend", "job_file_append"),
		confBool("JobRequeue", "job_requeue"),
		confTexts("JobSubmitPlugins", "job_submit_plugins"),
		confNumber("KeepaliveInterval", "", schema.Unit("s")),
		confNumber("KeepaliveProbes", "", schema.Bare),
		confNumber("KeepaliveTime", "", schema.Unit("s")),
		confBool("KillOnBadExit", "kill_on_bad_exit"),
		confNumber("KillWait", "kill_wait", schema.Unit("s")),
		confTexts("LaunchParameters", "launch_params"),
		confTexts("Licenses", "licenses"),
		confTexts("LicenseParameters", "license_params"),
		confWord("LogTimeFormat", "log_fmt", logTimeFormats),
		confText("MailDomain", "mail_domain"),
		confText("MailProg", "mail_prog"),
		confNumber("MaxArraySize", "max_array_sz", schema.Bare),
		confNumber("MaxBatchRequeue", "max_batch_requeue", schema.Bare),
		confNumber("MaxDBDMsgs", "max_dbd_msgs", schema.Bare),
		confNumber("MaxJobCount", "max_job_cnt", schema.Bare),
		confNumber("MaxJobId", "max_job_id", schema.Bare),
		confMemory("MaxMemPerCPU", "max_mem_per_cpu", memoryPerNode),
		confNumber("MaxNodeCount", "max_node_cnt", schema.Bare),
		confNumber("MaxStepCount", "max_step_cnt", schema.Bare),
		confNumber("MaxTasksPerNode", "max_tasks_per_node", schema.Bare),
		confText("MCSPlugin", "mcs_plugin"),
		confTexts("MCSParameters", "mcs_plugin_params"),
		confTexts("MetricsAuthUsers", "metrics_auth_users"),
		confTexts("MetricsParameters", "metrics_params"),
		confText("MetricsType", "metrics_type"),
		confNumber("MinJobAge", "min_job_age", schema.Unit("s")),
		confText("MpiDefault", "mpi_default"),
		confTexts("MpiParams", "mpi_params"),
		confNumber("MessageTimeout", "msg_timeout", schema.Unit("s")),
		confText("NamespaceType", "namespace_plugin"),
		confTexts("NodeFeaturesPlugins", "node_features_plugins"),
		confNumber("OverTimeLimit", "over_time_limit", schema.Unit("min")),
		confText("PluginDir", "plugindir"),
		confText("PlugStackConfig", "plugstack"),
		confLimit[uint32]("PreemptExemptTime", "preempt_exempt_time", schema.Unit("s")),
		confFlags("PreemptMode", "preempt_mode", slurmConfPreemptModesWords),
		confTexts("PreemptParameters", "preempt_params"),
		confText("PreemptType", "preempt_type"),
		confText("PrEpParameters", "prep_params"),
		confTexts("PrEpPlugins", "prep_plugins"),
		confDuration("PriorityDecayHalfLife", "priority_decay_hl"),
		confDuration("PriorityCalcPeriod", "priority_calc_period"),
		confBool("PriorityFavorSmall", "priority_favor_small"),
		confFlags("PriorityFlags", "priority_flags", priorityFlagsWords),
		confDuration("PriorityMaxAge", "priority_max_age"),
		confText("PriorityParameters", "priority_params"),
		confWord("PriorityUsageResetPeriod", "priority_reset_period", priorityResetPeriods),
		confText("PriorityType", "priority_type"),
		confNumber("PriorityWeightAge", "priority_weight_age", schema.Bare),
		confNumber("PriorityWeightAssoc", "priority_weight_assoc", schema.Bare),
		confNumber("PriorityWeightFairshare", "priority_weight_fs", schema.Bare),
		confNumber("PriorityWeightJobSize", "priority_weight_js", schema.Bare),
		confNumber("PriorityWeightPartition", "priority_weight_part", schema.Bare),
		confNumber("PriorityWeightQOS", "priority_weight_qos", schema.Bare),
		confText("PriorityWeightTRES", "priority_weight_tres"),
		confFlags("PrivateData", "private_data", privateDataWords),
		confText("ProctrackType", "proctrack_type"),
		confList("Prolog", "prolog"),
		confList("PrologSlurmctld", "prolog_slurmctld"),
		confLimit[uint16]("PrologTimeout", "prolog_timeout", schema.Unit("s")),
		confWord("PropagatePrioProcess", "propagate_prio_process", propagatePrioProcesses),
		confFlags("PrologFlags", "prolog_flags", prologFlagsWords),
		confTexts("PropagateResourceLimits", "propagate_rlimits"),
		confTexts("PropagateResourceLimitsExcept", "propagate_rlimits_except"),
		confText("RebootProgram", "reboot_program"),
		confFlags("ReconfigFlags", "reconfig_flags", reconfigFlagsWords),
		confTexts("RequeueExit", "requeue_exit"),
		confTexts("RequeueExitHold", "requeue_exit_hold"),
		confText("ResumeFailProgram", "resume_fail_program"),
		confText("ResumeProgram", "resume_program"),
		confNumber("ResumeRate", "resume_rate", schema.Bare),
		confNumber("ResumeTimeout", "resume_timeout", schema.Unit("s")),
		confText("ResvEpilog", "resv_epilog"),
		confNumber("ResvOverRun", "resv_over_run", schema.Unit("min")),
		confText("ResvProlog", "resv_prolog"),
		confWord("ReturnToService", "ret2service", returnToService),
		confText("SlurmSchedLogFile", "sched_logfile"),
		confNumber("SlurmSchedLogLevel", "sched_log_level", schema.Bare),
		confTexts("SchedulerParameters", "sched_params"),
		confNumber("SchedulerTimeSlice", "sched_time_slice", schema.Unit("s")),
		confText("SchedulerType", "schedtype"),
		confTexts("ScronParameters", "scron_params"),
		confText("SelectType", "select_type"),
		confShow("SelectTypeParameters", selectParameters.Type, func(c *model.Configuration) uint16 { return uint16(c.Numbers["select_type_param"]) }),
		confTexts("SerializerParameters", "serializer_params", schema.Since(V46)),
		confTexts("SerializerPlugins", "serializer_plugins", schema.Since(V46)),
		confText("PrioritySiteFactorPlugin", ""),
		confText("PrioritySiteFactorParameters", ""),
		confNumber("SlurmUserId", "slurm_user_id", schema.Bare),
		confText("SlurmUser", "slurm_user_name"),
		confNumber("SlurmdUserId", "slurmd_user_id", schema.Bare),
		confText("SlurmdUser", "slurmd_user_name"),
		confText("SlurmctldAddr", "slurmctld_addr"),
		confWord("SlurmctldDebug", "slurmctld_debug", logLevels),
		confTexts("SlurmctldHttpAuthParams", "slurmctld_http_auth_params"),
		confText("SlurmctldLogFile", "slurmctld_logfile"),
		confText("SlurmctldPidFile", "slurmctld_pidfile"),
		confNumber("SlurmctldPort", "slurmctld_port", schema.Bare),
		confNumber("SlurmctldPortCount", "slurmctld_port_count", schema.Bare),
		confText("SlurmctldPrimaryOffProg", "slurmctld_primary_off_prog"),
		confText("SlurmctldPrimaryOnProg", "slurmctld_primary_on_prog"),
		confWord("SlurmctldSyslogDebug", "slurmctld_syslog_debug", logLevels),
		confNumber("SlurmctldTimeout", "slurmctld_timeout", schema.Unit("s")),
		confTexts("SlurmctldParameters", "slurmctld_params"),
		confWord("SlurmdDebug", "slurmd_debug", logLevels),
		confTexts("SlurmdHttpAuthParams", "slurmd_http_auth_params"),
		confText("SlurmdLogFile", "slurmd_logfile"),
		confTexts("SlurmdParameters", "slurmd_params"),
		confText("SlurmdPidFile", "slurmd_pidfile"),
		confNumber("SlurmdPort", "slurmd_port", schema.Bare),
		confText("SlurmdSpoolDir", "slurmd_spooldir"),
		confWord("SlurmdSyslogDebug", "slurmd_syslog_debug", logLevels),
		confNumber("SlurmdTimeout", "slurmd_timeout", schema.Unit("s")),
		confTexts("SlurmrestdHttpAuthParameters", "slurmrestd_http_auth_params", schema.Since(V46)),
		confTexts("SlurmrestdParameters", "slurmrestd_params", schema.Since(V46)),
		confTexts("SlurmstepdParameters", "slurmstepd_params", schema.Since(V46)),
		confText("SrunEpilog", "srun_epilog"),
		schema.Show("SrunPortRange", confPorts.Type, func(c *model.Configuration) [2]uint64 {
			return [2]uint64{c.Numbers["srun_port_range[0]"], c.Numbers["srun_port_range[1]"]}
		}, "Ports that srun may use"),
		confText("SrunProlog", "srun_prolog"),
		confText("StateSaveLocation", "state_save_location"),
		confTexts("SuspendExcNodes", "suspend_exc_nodes"),
		confTexts("SuspendExcParts", "suspend_exc_parts"),
		confTexts("SuspendExcStates", "suspend_exc_states"),
		confText("SuspendProgram", "suspend_program"),
		confNumber("SuspendRate", "suspend_rate", schema.Bare),
		confLimit[uint32]("SuspendTime", "suspend_time", schema.Unit("s")),
		confNumber("SuspendTimeout", "suspend_timeout", schema.Unit("s")),
		confText("SwitchType", "switch_type"),
		confTexts("SwitchParameters", "switch_param"),
		confText("TaskEpilog", "task_epilog"),
		confTexts("TaskPlugin", "task_plugin"),
		confFlags("TaskPluginParam", "task_plugin_param", taskPluginParamFlagsWords),
		confText("TaskProlog", "task_prolog"),
		confTexts("TLSParameters", "tls_params"),
		confText("TLSType", "tls_type"),
		confNumber("TCPTimeout", "tcp_timeout", schema.Unit("s")),
		confText("TmpFS", "tmp_fs"),
		confTexts("TopologyParam", "topology_param"),
		confText("TopologyPlugin", "topology_plugin"),
		confNumber("TreeWidth", "tree_width", schema.Bare),
		confText("UnkillableStepProgram", "unkillable_program"),
		confNumber("UnkillableStepTimeout", "unkillable_timeout", schema.Unit("s")),
		confText("UrlParserType", "url_parser_type"),
		confNumber("VSizeFactor", "vsize_factor", schema.Bare),
		confNumber("WaitTime", "wait_time", schema.Unit("s")),
		confTexts("X11Parameters", "x11_params"),
	}
})

var configurationMeta = schema.Object("slurm_conf_meta", func() schema.Fields[model.Configuration] {
	return schema.Fields[model.Configuration]{
		confTime("LastUpdate", "Time of the last change", func(c *model.Configuration) model.Time { return c.LastUpdate }),
		confTime("BOOT_TIME", "Time when the controller started", func(c *model.Configuration) model.Time { return c.BootTime }),
		confShow("ClusterId", number, func(*model.Configuration) model.Opt[uint16] { return model.Some[uint16](0) }, schema.Bare),
		confNumber("HashValue", "hash_val", schema.Bare),
		confLimit[uint32]("NEXT_JOB_ID", "next_job_id", schema.Bare),
		confText("SLURM_CONF", "slurm_conf"),
		confText("SLURM_VERSION", "version"),
	}
})

type ConfAnswer struct {
	Configuration model.Configuration
	Envelope
}

// Conf declares the fields of a ConfAnswer.
var Conf = enveloped("openapi_conf_resp", func(a *ConfAnswer) *Envelope { return &a.Envelope },
	schema.F("sched_conf", configuration.Type, func(a *ConfAnswer) *model.Configuration { return &a.Configuration }, "The configuration", schema.InSlurm("slurm_conf")),
	schema.F("sched_conf_meta", configurationMeta.Type, func(a *ConfAnswer) *model.Configuration { return &a.Configuration }, "Origin and state of the configuration", schema.InSlurm("slurm_conf_meta")),
)

// GetConf shows the controller's configuration.
var GetConf = declare(scope.ComputeRead, sinceParams, Endpoint{
	Method: http.MethodGet, Path: "conf", ID: "get_conf", NoFields: true,
	Doc: "Show the configuration", Answer: Conf, Since: V45,
	Description: "Returns the part of the controller's configuration that all users may read. Fields that an older controller lacks are empty.",
	AnswerDoc:   "The configuration",
})

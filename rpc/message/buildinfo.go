package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// BuildInfoRequest asks for the controller's configuration (table last_update_request).
type BuildInfoRequest struct {
	LastUpdate model.Time // only when something changed since; 0: always
}

// Walk is the wire's order.
func (m *BuildInfoRequest) Walk(c *codec.Codec) { c.Time("last_update", &m.LastUpdate) }

// BuildInfo answers it (table conf_response). Of the configuration it keeps what is used here; the rest is
// skipped, and sent as empty.
type BuildInfo struct {
	LastUpdate  model.Time
	BootTime    model.Time
	ClusterName string
	Version     string // the release, "24.11.5"
}

// Walk is the wire's order.
func (m *BuildInfo) Walk(c *codec.Codec) {
	c.Time("last_update", &m.LastUpdate)
	skip16(c, "accounting_storage_enforce")
	skipTexts(c, "accounting_storage_backup_host", "accounting_storage_host", "accounting_storage_ext_host",
		"accounting_storage_params")
	skip16(c, "accounting_storage_port")
	skipTexts(c, "accounting_storage_tres", "accounting_storage_type")
	if c.Until(codec.V2511) {
		skipTexts(c, "accounting_storage_user")
	}
	skipRecords(c, "acct_gather_conf", "config_key_pair", configPair)
	skipTexts(c, "acct_gather_energy_type", "acct_gather_filesystem_type", "acct_gather_interconnect_type")
	skip16(c, "acct_gather_node_freq")
	skipTexts(c, "acct_gather_profile_type", "authalttypes", "authalt_params", "authinfo", "authtype")
	skip16(c, "batch_start_timeout")
	c.Time("boot_time", &m.BootTime)
	skipTexts(c, "bb_type", "bcast_exclude", "bcast_parameters")
	if c.Since(codec.V2505) {
		skipTexts(c, "certmgr_params", "certmgr_type")
	}
	skipRecords(c, "cgroup_conf", "config_key_pair", configPair)
	if c.Since(codec.V2511) {
		skipTexts(c, "cli_filter_params")
	}
	skipTexts(c, "cli_filter_plugins")
	c.String("cluster_name", &m.ClusterName)
	skipTexts(c, "comm_params")
	skip16(c, "complete_wait")
	skip32(c, "conf_flags")
	skipLists(c, "control_addr", "control_machine")
	if c.Until(codec.V2405) {
		skipTexts(c, "core_spec_plugin")
	}
	skip32(c, "cpu_freq_def", "cpu_freq_govs")
	skipTexts(c, "cred_type")
	if c.Since(codec.V2411) {
		skipTexts(c, "data_parser_parameters")
	}
	skip64(c, "def_mem_per_cpu", "debug_flags")
	skipTexts(c, "dependency_params")
	skip16(c, "eio_timeout", "enforce_part_limits")
	if c.Until(codec.V2405) {
		skipTexts(c, "epilog")
	}
	if c.Since(codec.V2405) {
		skipLists(c, "epilog")
	}
	skip32(c, "epilog_msg_time")
	if c.Until(codec.V2405) {
		skipTexts(c, "epilog_slurmctld")
		skipRecords(c, "ext_sensors_conf", "config_key_pair", configPair)
		skipTexts(c, "ext_sensors_type")
		skip16(c, "ext_sensors_freq")
	}
	if c.Since(codec.V2405) {
		skipLists(c, "epilog_slurmctld")
	}
	if c.Since(codec.V2505) {
		skip16(c, "epilog_timeout")
	}
	skipTexts(c, "fed_params")
	skip32(c, "first_job_id")
	skip16(c, "fs_dampening_factor")
	if c.Until(codec.V2505) {
		skip16(c, "get_env_timeout")
	}
	skipTexts(c, "gres_plugins")
	skip16(c, "group_time", "group_force")
	skipTexts(c, "gpu_freq_def")
	if c.Since(codec.V2405) {
		skipTexts(c, "hash_plugin")
	}
	skip32(c, "hash_val")
	skip16(c, "health_check_interval", "health_check_node_state")
	skipTexts(c, "health_check_program")
	if c.Since(codec.V2605) {
		skip16(c, "health_check_timeout")
	}
	if c.Since(codec.V2511) {
		skipTexts(c, "http_parser_type")
	}
	skip16(c, "inactive_limit")
	skipTexts(c, "interactive_step_opts", "job_acct_gather_freq", "job_acct_gather_type",
		"job_acct_gather_params", "job_comp_host", "job_comp_loc", "job_comp_params")
	skip32(c, "job_comp_port")
	skipTexts(c, "job_comp_type", "job_comp_user")
	if c.Until(codec.V2511) {
		skipTexts(c, "job_container_plugin")
	}
	if c.Until(codec.V2311) {
		skipTexts(c, "job_credential_private_key", "job_credential_public_certificate")
	}
	if c.Since(codec.V2511) {
		skipTexts(c, "namespace_plugin")
	}
	skipRecords(c, "job_defaults_list", "job_defaults", jobDefault)
	skip16(c, "job_file_append", "job_requeue")
	skipTexts(c, "job_submit_plugins")
	skip16(c, "kill_on_bad_exit", "kill_wait")
	skipTexts(c, "launch_params")
	if c.Until(codec.V2302) {
		skipTexts(c, "launch_type")
	}
	if c.Since(codec.V2605) {
		skipTexts(c, "license_params")
	}
	skipTexts(c, "licenses")
	skip16(c, "log_fmt")
	skip32(c, "max_array_sz")
	if c.Since(codec.V2302) {
		skip32(c, "max_batch_requeue")
	}
	skip32(c, "max_dbd_msgs")
	skipTexts(c, "mail_domain", "mail_prog")
	skip32(c, "max_job_cnt", "max_job_id")
	skip64(c, "max_mem_per_cpu")
	skip32(c, "max_node_cnt", "max_step_cnt")
	skip16(c, "max_tasks_per_node")
	skipTexts(c, "mcs_plugin", "mcs_plugin_params")
	if c.Since(codec.V2605) {
		skipTexts(c, "metrics_auth_users", "metrics_params")
	}
	if c.Since(codec.V2511) {
		skipTexts(c, "metrics_type")
	}
	skip32(c, "min_job_age")
	skipRecords(c, "mpi_conf", "config_key_pair", configPair)
	skipTexts(c, "mpi_default", "mpi_params")
	skip16(c, "msg_timeout")
	skip32(c, "next_job_id")
	skipRecords(c, "node_features_conf", "config_plugin_params", pluginParams)
	skipTexts(c, "node_features_plugins")
	if c.Until(codec.V2505) {
		skipTexts(c, "node_prefix")
	}
	skip16(c, "over_time_limit")
	skipTexts(c, "plugindir", "plugstack")
	if c.Until(codec.V2405) {
		skipTexts(c, "power_parameters", "power_plugin")
	}
	skip16(c, "preempt_mode")
	if c.Since(codec.V2302) {
		skipTexts(c, "preempt_params")
	}
	skipTexts(c, "preempt_type")
	skip32(c, "preempt_exempt_time")
	skipTexts(c, "prep_params", "prep_plugins")
	skip32(c, "priority_decay_hl", "priority_calc_period")
	skip16(c, "priority_favor_small", "priority_flags")
	skip32(c, "priority_max_age")
	skipTexts(c, "priority_params")
	skip16(c, "priority_reset_period")
	skipTexts(c, "priority_type")
	skip32(c, "priority_weight_age", "priority_weight_assoc", "priority_weight_fs", "priority_weight_js",
		"priority_weight_part", "priority_weight_qos")
	skipTexts(c, "priority_weight_tres")
	skip16(c, "private_data")
	skipTexts(c, "proctrack_type")
	if c.Until(codec.V2405) {
		skipTexts(c, "prolog")
	}
	if c.Since(codec.V2405) {
		skipLists(c, "prolog")
	}
	if c.Until(codec.V2505) {
		skip16(c, "prolog_epilog_timeout")
	}
	if c.Until(codec.V2405) {
		skipTexts(c, "prolog_slurmctld")
	}
	if c.Since(codec.V2405) {
		skipLists(c, "prolog_slurmctld")
	}
	if c.Since(codec.V2505) {
		skip16(c, "prolog_timeout")
	}
	skip16(c, "prolog_flags", "propagate_prio_process")
	skipTexts(c, "propagate_rlimits", "propagate_rlimits_except", "reboot_program")
	skip16(c, "reconfig_flags")
	skipTexts(c, "requeue_exit", "requeue_exit_hold", "resume_fail_program", "resume_program")
	skip16(c, "resume_rate", "resume_timeout")
	skipTexts(c, "resv_epilog")
	skip16(c, "resv_over_run")
	skipTexts(c, "resv_prolog")
	skip16(c, "ret2service")
	if c.Until(codec.V2311) {
		skipTexts(c, "route_plugin")
	}
	skipTexts(c, "sched_params", "sched_logfile")
	skip16(c, "sched_log_level", "sched_time_slice")
	skipTexts(c, "schedtype", "scron_params", "select_type")
	skipRecords(c, "select_conf_key_pairs", "config_key_pair", configPair)
	skip16(c, "select_type_param")
	skipTexts(c, "slurm_conf")
	skip32(c, "slurm_user_id")
	skipTexts(c, "slurm_user_name")
	skip32(c, "slurmd_user_id")
	skipTexts(c, "slurmd_user_name", "slurmctld_addr")
	skip16(c, "slurmctld_debug")
	if c.Since(codec.V2605) {
		skipTexts(c, "slurmctld_http_auth_params")
	}
	skipTexts(c, "slurmctld_logfile", "slurmctld_params", "slurmctld_pidfile")
	if c.Until(codec.V2302) {
		skipTexts(c, "slurmctld_plugstack")
		skipRecords(c, "slurmctld_plugstack_conf", "config_plugin_params", pluginParams)
	}
	skip32(c, "slurmctld_port")
	skip16(c, "slurmctld_port_count")
	skipTexts(c, "slurmctld_primary_off_prog", "slurmctld_primary_on_prog")
	skip16(c, "slurmctld_syslog_debug", "slurmctld_timeout", "slurmd_debug")
	if c.Since(codec.V2605) {
		skipTexts(c, "slurmd_http_auth_params")
	}
	skipTexts(c, "slurmd_logfile", "slurmd_params", "slurmd_pidfile")
	skip32(c, "slurmd_port")
	skipTexts(c, "slurmd_spooldir")
	skip16(c, "slurmd_syslog_debug", "slurmd_timeout")
	skipTexts(c, "srun_epilog")
	skip16(c, "srun_port_range[0]", "srun_port_range[1]")
	skipTexts(c, "srun_prolog", "state_save_location", "suspend_exc_nodes", "suspend_exc_parts")
	if c.Since(codec.V2302) {
		skipTexts(c, "suspend_exc_states")
	}
	skipTexts(c, "suspend_program")
	skip16(c, "suspend_rate")
	skip32(c, "suspend_time")
	skip16(c, "suspend_timeout")
	skipTexts(c, "switch_param", "switch_type", "task_epilog", "task_prolog", "task_plugin")
	skip32(c, "task_plugin_param")
	skip16(c, "tcp_timeout")
	if c.Since(codec.V2505) {
		skipTexts(c, "tls_params")
	}
	if c.Since(codec.V2405) {
		skipTexts(c, "tls_type")
	}
	skipTexts(c, "tmp_fs", "topology_param", "topology_plugin")
	skip16(c, "tree_width")
	skipTexts(c, "unkillable_program")
	skip16(c, "unkillable_timeout")
	if c.Since(codec.V2511) {
		skipTexts(c, "url_parser_type")
	}
	c.String("version", &m.Version)
	skip16(c, "vsize_factor", "wait_time")
	skipTexts(c, "x11_params")
}

func configPair(c *codec.Codec, _ *struct{}) { skipTexts(c, "name", "value") }

func pluginParams(c *codec.Codec, _ *struct{}) {
	skipTexts(c, "name")
	skipRecords(c, "key_pairs", "config_key_pair", configPair)
}

func skipTexts(c *codec.Codec, names ...string) { skip(names, c.String) }
func skip16(c *codec.Codec, names ...string)    { skip(names, c.Uint16) }
func skip32(c *codec.Codec, names ...string)    { skip(names, c.Uint32) }
func skip64(c *codec.Codec, names ...string)    { skip(names, c.Uint64) }
func skipLists(c *codec.Codec, names ...string) { skip(names, c.Strings) }

func skip[T any](names []string, walk func(string, *T)) {
	for _, name := range names {
		var unused T
		walk(name, &unused)
	}
}

func skipRecords[T any](c *codec.Codec, name, table string, walk func(*codec.Codec, *T)) {
	var unused []T
	codec.List(c, name, table, &unused, walk)
}

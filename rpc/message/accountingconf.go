package message

import (
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// AccountingConf answers AccountingGetConf from protocol 45 on (table
// dbd_slurmdbd_conf). Older daemons send the lines of their configuration file.
type AccountingConf struct{ model.AccountingConf }

// Walk encodes or decodes the fields in wire order.
func (m *AccountingConf) Walk(c *codec.Codec) { accountingConf(c, &m.AccountingConf) }

func accountingConf(c *codec.Codec, a *model.AccountingConf) {
	if c.Until(codec.V2605) {
		return
	}
	c.String("archive_dir", &a.ArchiveDir)
	c.String("archive_script", &a.ArchiveScript)
	c.Uint16("commit_delay", &a.CommitDelay)
	c.String("dbd_addr", &a.Address)
	c.String("dbd_backup", &a.BackupHost)
	c.String("dbd_host", &a.Host)
	c.Uint16("dbd_port", &a.Port)
	if c.Since(codec.V2611) {
		c.Uint64("debug_flags", &a.DebugFlags)
	}
	c.Uint16("debug_level", &a.DebugLevel)
	c.String("default_qos", &a.DefaultQOS)
	c.Uint32("flags", &a.Flags)
	c.String("log_file", &a.LogFile)
	c.Uint32("max_purge_limit", &a.MaxPurgeLimit)
	c.Uint32("max_time_range", &a.MaxTimeRange)
	c.String("parameters", &a.Parameters)
	c.Uint16("persist_conn_rc_flags", &a.PersistFlags)
	c.String("pid_file", &a.PIDFile)
	c.Uint32("purge_event", &a.PurgeEvent)
	c.Uint32("purge_job", &a.PurgeJob)
	c.Uint32("purge_resv", &a.PurgeReservation)
	c.Uint32("purge_step", &a.PurgeStep)
	c.Uint32("purge_suspend", &a.PurgeSuspend)
	c.Uint32("purge_txn", &a.PurgeTransaction)
	c.Uint32("purge_usage", &a.PurgeUsage)
	c.Uint32("purge_jobscript", &a.PurgeJobScript)
	c.Uint32("purge_jobenv", &a.PurgeJobEnv)
	if c.Since(codec.V2611) {
		c.String("serializer_params", &a.SerializerParams)
		c.String("serializer_plugins", &a.Serializers)
	}
	c.String("storage_loc", &a.StorageLoc)
	c.String("storage_pass_script", &a.StoragePass)
	c.String("storage_user", &a.StorageUser)
	c.Uint16("syslog_debug", &a.SyslogDebug)
	flag16(c, "track_wckey", &a.TrackWCKey)
	flag16(c, "track_ctld", &a.TrackController)
}

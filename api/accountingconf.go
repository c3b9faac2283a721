package api

import (
	"fmt"
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// accountingFlags are the names of the configuration's on/off settings.
var accountingFlags = schema.Words("",
	schema.Bit("AllowNoDefAcct", uint32(1)<<0),
	schema.Bit("AllResourcesAbsolute", uint32(1)<<1),
	schema.Bit("DisableCoordDBD", uint32(1)<<2),
	schema.Bit("DisableArchiveCommands", uint32(1)<<4),
)

var persistFlags = schema.Words("",
	schema.Bit("PreserveCaseUser", uint16(1)<<3),
	schema.Bit("PreserveCaseResource", uint16(1)<<7, schema.Since(V46)),
)

// slurmdbdConf declares the fields of the accounting daemon's configuration.
// They have the same names as in the configuration file.
var slurmdbdConf = schema.Object("slurmdbd_conf", func() schema.Fields[model.AccountingConf] {
	return schema.Fields[model.AccountingConf]{
		schema.F("ArchiveDir", schema.String, func(c *model.AccountingConf) *string { return &c.ArchiveDir }, "Directory for archives of purged records"),
		schema.F("ArchiveScript", schema.String, func(c *model.AccountingConf) *string { return &c.ArchiveScript }, "Program that archives records in place of the daemon"),
		schema.F("CommitDelay", schema.Int32, func(c *model.AccountingConf) *uint16 { return &c.CommitDelay }, "Time between the commits of records that a controller sends", schema.Unit("s")),
		schema.F("DbdAddr", schema.String, func(c *model.AccountingConf) *string { return &c.Address }, "Address of the daemon"),
		schema.F("DbdBackupHost", schema.String, func(c *model.AccountingConf) *string { return &c.BackupHost }, "Host name of the backup daemon"),
		schema.F("DbdHost", schema.String, func(c *model.AccountingConf) *string { return &c.Host }, "Host name of the daemon"),
		schema.F("DbdPort", schema.Int32, func(c *model.AccountingConf) *uint16 { return &c.Port }, "Port of the daemon", schema.Bare),
		schema.F("DebugFlags", debugFlagsWords.Type, func(c *model.AccountingConf) *uint64 { return &c.DebugFlags }, "Subjects about which the daemon logs more", schema.Since(V46)),
		schema.Show("DebugLevel", logLevels.Type, func(c *model.AccountingConf) uint64 { return uint64(c.DebugLevel) }, "Log level"),
		schema.F("DefaultQOS", schema.String, func(c *model.AccountingConf) *string { return &c.DefaultQOS }, "Default quality of service"),
		schema.F("Flags", accountingFlags.Type, func(c *model.AccountingConf) *uint32 { return &c.Flags }, "Flags of the configuration"),
		schema.F("LogFile", schema.String, func(c *model.AccountingConf) *string { return &c.LogFile }, "Log file"),
		schema.F("MaxPurgeLimit", schema.Int32, func(c *model.AccountingConf) *uint32 { return &c.MaxPurgeLimit }, "Maximum number of records that one database statement purges", schema.Count),
		schema.Show("MaxQueryTimeRange", schema.String, func(c *model.AccountingConf) string { return longTime(c.MaxTimeRange) }, "Longest period that a query may select, as days-hours:minutes:seconds"),
		schema.Show("Parameters", csvString, func(c *model.AccountingConf) []string { return words(c.Parameters) }, "Parameters of the daemon"),
		schema.F("PersistConnFlags", persistFlags.Type, func(c *model.AccountingConf) *uint16 { return &c.PersistFlags }, "Flags that the daemon sends to its clients"),
		schema.F("PidFile", schema.String, func(c *model.AccountingConf) *string { return &c.PIDFile }, "File with the daemon's process id"),
		schema.F("PurgeEventAfter", purge, func(c *model.AccountingConf) *uint32 { return &c.PurgeEvent }, "Age at which events of nodes are purged"),
		schema.F("PurgeJobAfter", purge, func(c *model.AccountingConf) *uint32 { return &c.PurgeJob }, "Age at which jobs are purged"),
		schema.F("PurgeResvAfter", purge, func(c *model.AccountingConf) *uint32 { return &c.PurgeReservation }, "Age at which reservations are purged"),
		schema.F("PurgeStepAfter", purge, func(c *model.AccountingConf) *uint32 { return &c.PurgeStep }, "Age at which steps are purged"),
		schema.F("PurgeSuspendAfter", purge, func(c *model.AccountingConf) *uint32 { return &c.PurgeSuspend }, "Age at which suspensions are purged"),
		schema.F("PurgeTXNAfter", purge, func(c *model.AccountingConf) *uint32 { return &c.PurgeTransaction }, "Age at which transactions are purged"),
		schema.F("PurgeUsageAfter", purge, func(c *model.AccountingConf) *uint32 { return &c.PurgeUsage }, "Age at which usage is purged"),
		schema.F("PurgeJobScriptAfter", purge, func(c *model.AccountingConf) *uint32 { return &c.PurgeJobScript }, "Age at which scripts of jobs are purged"),
		schema.F("PurgeJobEnvAfter", purge, func(c *model.AccountingConf) *uint32 { return &c.PurgeJobEnv }, "Age at which environments of jobs are purged"),
		schema.Show("SerializerParameters", csvString, func(c *model.AccountingConf) []string { return words(c.SerializerParams) }, "Parameters of the serializers", schema.Since(V46)),
		schema.Show("SerializerPlugins", csvString, func(c *model.AccountingConf) []string { return words(c.Serializers) }, "Serializers that the daemon loads", schema.Since(V46)),
		schema.F("StorageLoc", schema.String, func(c *model.AccountingConf) *string { return &c.StorageLoc }, "Always empty"),
		schema.F("StoragePassScript", schema.String, func(c *model.AccountingConf) *string { return &c.StoragePass }, "Always empty"),
		schema.F("StorageUser", schema.String, func(c *model.AccountingConf) *string { return &c.StorageUser }, "Always empty"),
		schema.Show("DebugLevelSyslog", logLevels.Type, func(c *model.AccountingConf) uint64 { return uint64(c.SyslogDebug) }, "Log level of syslog"),
		schema.F("TrackWCKey", schema.Boolean, func(c *model.AccountingConf) *bool { return &c.TrackWCKey }, "Whether workload keys are recorded"),
		schema.F("TrackSlurmctldDown", schema.Boolean, func(c *model.AccountingConf) *bool { return &c.TrackController }, "Whether controllers that are down are recorded"),
	}
})

// purgeAfter declares the fields that show the age at which records are
// deleted. The field for the configured unit contains the age. The fields for
// the other units are 0.
var purgeAfter = schema.Object("slurmdb_purge_units", func() schema.Fields[uint32] {
	return schema.Fields[uint32]{
		schema.Show("set", schema.Boolean, func(n *uint32) bool { return *n != model.NoVal32 }, "Whether these records are purged"),
		schema.Show("hours", schema.Int32, inUnit(model.PurgeHours), "Age of purged records; 0 if it is not configured in hours", schema.Unit("h")),
		schema.Show("days", schema.Int32, inUnit(model.PurgeDays), "Age of purged records; 0 if it is not configured in days", schema.Unit("d")),
		schema.Show("months", schema.Int32, inUnit(model.PurgeMonths), "Age of purged records; 0 if it is not configured in months", schema.Unit("months")),
		schema.Show("archive", schema.Boolean, func(n *uint32) bool { return *n != model.NoVal32 && *n&model.PurgeArchive != 0 }, "Whether purged records are first written to a file"),
	}
})

func purge() schema.Type[uint32] { return purgeAfter.Type() }

// inUnit returns a function that removes the unit from a stored age and returns
// the number. If the age is in another unit, the function returns 0.
func inUnit(unit uint32) func(*uint32) uint32 {
	return func(n *uint32) uint32 {
		if *n == model.NoVal32 || *n&unit == 0 {
			return 0
		}
		return *n & model.PurgeNumber
	}
}

// longTime writes a time as "7-00:00:00".
func longTime(seconds uint32) string {
	if seconds >= model.NoVal32 {
		return "UNLIMITED"
	}
	return fmt.Sprintf("%d-%02d:%02d:%02d", seconds/86400, seconds/3600%24, seconds/60%60, seconds%60)
}

// AccountingConfAnswer is an answer with the accounting daemon's configuration.
type AccountingConfAnswer struct {
	Conf model.AccountingConf
	Envelope
}

// AccountingConf declares the fields of an AccountingConfAnswer.
var AccountingConf = enveloped("openapi_slurmdbd_conf_resp", func(a *AccountingConfAnswer) *Envelope { return &a.Envelope },
	schema.F("slurmdbd_conf", slurmdbdConf.Type, func(a *AccountingConfAnswer) *model.AccountingConf { return &a.Conf }, "The configuration", schema.Required(0)),
)

// GetAccountingConf shows the accounting daemon's configuration.
var GetAccountingConf = declare(scope.SlurmdbRead, noParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "conf", ID: "get_conf", NoFields: true,
	Doc: "Show the accounting daemon's configuration", Answer: AccountingConf, Since: V45,
	Description: "Returns the configuration of the accounting daemon. Daemons before Slurm 26.05 do not support this request; the answer is then 501.",
	AnswerDoc:   "The configuration",
})

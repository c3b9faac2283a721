package model

// AccountingConf is the configuration of the accounting daemon.
type AccountingConf struct {
	ArchiveDir       string
	ArchiveScript    string
	CommitDelay      uint16 // seconds
	Address          string
	BackupHost       string
	Host             string
	Port             uint16
	DebugLevel       uint16
	DefaultQOS       string
	Flags            uint32
	LogFile          string
	MaxPurgeLimit    uint32
	MaxTimeRange     uint32 // seconds
	Parameters       string
	PersistFlags     uint16
	PIDFile          string
	PurgeEvent       uint32 // each of them as Purge… says
	PurgeJob         uint32
	PurgeReservation uint32
	PurgeStep        uint32
	PurgeSuspend     uint32
	PurgeTransaction uint32
	PurgeUsage       uint32
	PurgeJobScript   uint32
	PurgeJobEnv      uint32
	StorageLoc       string // the daemon never says it; nor the next two
	StoragePass      string
	StorageUser      string
	SyslogDebug      uint16
	TrackWCKey       bool
	TrackController  bool // controllers that are down
}

// The parts of a time after which records are purged: a number of units in the
// low 16 bits, and the unit. Leave32 is never.
const (
	PurgeNumber  uint32 = 0xffff
	PurgeHours   uint32 = 0x10000
	PurgeDays    uint32 = 0x20000
	PurgeMonths  uint32 = 0x40000
	PurgeArchive uint32 = 0x80000 // purged records go to a file
)

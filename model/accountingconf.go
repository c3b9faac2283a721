package model

// AccountingConf is the configuration of the accounting daemon.
type AccountingConf struct {
	ArchiveDir       string
	ArchiveScript    string
	CommitDelay      uint16 // in seconds
	Address          string
	BackupHost       string
	Host             string
	Port             uint16
	DebugFlags       uint64
	DebugLevel       uint16
	DefaultQOS       string
	Flags            uint32
	LogFile          string
	MaxPurgeLimit    uint32
	MaxTimeRange     uint32 // in seconds
	Parameters       string
	PersistFlags     uint16
	PIDFile          string
	PurgeEvent       uint32 // this and the other purge settings consist of the Purge bits below
	PurgeJob         uint32
	PurgeReservation uint32
	PurgeStep        uint32
	PurgeSuspend     uint32
	PurgeTransaction uint32
	PurgeUsage       uint32
	PurgeJobScript   uint32
	PurgeJobEnv      uint32
	SerializerParams string
	Serializers      string
	StorageLoc       string // this and the next two are never sent by the daemon
	StoragePass      string
	StorageUser      string
	SyslogDebug      uint16
	TrackWCKey       bool
	TrackController  bool // record the times when controllers are down
}

// Bits of settings such as PurgeEvent, which set the age at which records are
// purged. The low 16 bits (PurgeNumber) contain a number of hours, days or
// months, and another bit selects the unit. The value NoVal32 means that
// records are never purged.
const (
	PurgeNumber  uint32 = 0xffff
	PurgeHours   uint32 = 0x10000
	PurgeDays    uint32 = 0x20000
	PurgeMonths  uint32 = 0x40000
	PurgeArchive uint32 = 0x80000 // purged records are written to a file
)

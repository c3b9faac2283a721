package model

// Node is a compute node in the view of its controller.
type Node struct {
	Name                     string
	Hostname                 string
	Address                  string
	BroadcastAddress         string
	CertFlags                uint16
	Port                     uint16    // where its daemon listens
	NextState                NodeState // what it becomes after a reboot; NodeStateNone: nothing planned
	State                    NodeState // base state in the low 4 bits, flags above
	Version                  string
	CPUs                     uint16 // logical processors
	Boards                   uint16
	Sockets                  uint16
	Cores                    uint16 // per socket
	Threads                  uint16 // per core
	Memory                   uint64 // MiB
	TmpDisk                  uint32 // MiB
	GPUSpec                  string
	MCSLabel                 string
	Owner                    Opt[uint32] // uid that has the node to itself
	SpecializedCores         uint16
	CPUBind                  uint32 // default binding of tasks
	SpecializedMemory        uint64 // MiB kept from jobs
	SpecializedCPUs          string
	EffectiveCPUs            uint16      // CPUs that jobs may use
	CPULoad                  Opt[uint32] // load average times 100
	FreeMem                  Opt[uint64] // MiB free as the node last said
	Weight                   uint32
	ResCoresPerGPU           uint16
	ReasonUID                uint32      // who set Reason
	SuspendTime              Opt[uint32] // seconds of idleness before power saving
	BootTime                 Time
	LastBusy                 Time
	ReasonTime               Time
	ResumeAfter              Time // when a drained node returns
	DaemonStartTime          Time
	CertLastRenewal          Time
	AllocCPUs                uint16
	AllocMemory              uint64  // MiB allocated to jobs
	AllocTRES                string  // allocated trackable resources
	AllocTRESWeighted        float64 // only for the wire: data of a plugin that is gone
	Architecture             string
	Features                 string // configured, separated by commas
	ActiveFeatures           string // in force, separated by commas
	GRES                     string
	GRESDrained              string
	GRESUsed                 string
	OS                       string // kernel name and version
	Comment                  string
	Extra                    string
	InstanceID               string
	InstanceType             string
	Parameters               string
	Reason                   string
	Energy                   Energy
	ExtSensorsConsumedEnergy uint64
	ExtSensorsTemperature    Opt[uint32]
	ExtSensorsUpdateTime     Time
	ExtSensorsCurrentWatts   Opt[uint32]
	PowerCapWatts            Opt[uint32] // only for the wire: data of a plugin that is gone
	TRES                     string      // configured trackable resources, as "cpu=4,mem=8G"
	Reservation              string
	Topology                 string
}

// Energy is the energy consumption that a node reports.
type Energy struct {
	BaseConsumedEnergy     uint64 // joules
	AverageWatts           uint32
	ConsumedEnergy         uint64 // joules
	CurrentWatts           Opt[uint32]
	PreviousConsumedEnergy uint64 // joules
	PollTime               Time
	DaemonStartTime        Time
}

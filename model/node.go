package model

// Node is a compute node of a controller.
type Node struct {
	Name                     string
	Hostname                 string
	Address                  string
	BroadcastAddress         string
	CertFlags                uint16
	Port                     uint16    // port of its daemon
	NextState                NodeState // state after a reboot; NodeStateNone if none is planned
	State                    NodeState // base state in the low 4 bits, flags above
	Version                  string
	CPUs                     uint16 // logical processors
	Boards                   uint16
	Sockets                  uint16
	Cores                    uint16 // per socket
	Threads                  uint16 // per core
	Memory                   uint64 // in MiB
	TmpDisk                  uint32 // in MiB
	GPUSpec                  string
	MCSLabel                 string
	Owner                    Opt[uint32] // uid of the user who has exclusive use of the node
	SpecializedCores         uint16
	CPUBind                  uint32 // default binding of tasks
	SpecializedMemory        uint64 // in MiB, reserved from jobs
	SpecializedCPUs          string
	EffectiveCPUs            uint16      // number of CPUs that jobs may use
	CPULoad                  Opt[uint32] // load average times 100
	FreeMem                  Opt[uint64] // free MiB in the node's last report
	Weight                   uint32
	ResCoresPerGPU           uint16
	ReasonUID                uint32      // user who set Reason
	SuspendTime              Opt[uint32] // seconds of idleness before power saving
	BootTime                 Time
	LastBusy                 Time
	ReasonTime               Time
	ResumeAfter              Time // time when a drained node returns
	DaemonStartTime          Time
	CertLastRenewal          Time
	AllocCPUs                uint16
	AllocMemory              uint64  // MiB that are allocated to jobs
	AllocTRES                string  // allocated trackable resources
	AllocTRESWeighted        float64 // data of a removed plugin; older protocols contain it
	Architecture             string
	Features                 string // configured features, separated by commas
	ActiveFeatures           string // active features, separated by commas
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
	PowerCapWatts            Opt[uint32] // data of a removed plugin; older protocols contain it
	TRES                     string      // configured trackable resources, such as "cpu=4,mem=8G"
	Reservation              string
	Topology                 string
}

// Energy is the energy consumption that a node reports.
type Energy struct {
	BaseConsumedEnergy     uint64 // in joules
	AverageWatts           uint32
	ConsumedEnergy         uint64 // in joules
	CurrentWatts           Opt[uint32]
	PreviousConsumedEnergy uint64 // in joules
	PollTime               Time
	DaemonStartTime        Time
}

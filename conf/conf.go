// Package conf reads two configuration files: the cluster's and the accounting
// daemon's. All programs of this project can share the cluster's file with a
// site's Slurm, which calls it slurm.conf. The package also looks up
// environment variables. Like the keys of the files, these variables have two
// spellings.
//
// A file consists of lines of Key=Value pairs. Keys are case-insensitive. Each
// key may be written in our spelling (SchedUser) or in Slurm's (SlurmUser). A
// value with spaces is quoted. A "#" starts a comment. A backslash at the end
// of a line continues the line.
//
// "Include FILE" reads another file. A relative FILE is resolved against the
// directory of the first file. Within an included slurm.conf, a relative FILE
// is resolved against the directory of that slurm.conf.
//
// All problems are reported together, each with its line number. Keys of Slurm
// that this project does not need are ignored. Other unknown keys cause a
// warning. Lines are parsed in the same way as in Slurm, with the exceptions
// that docs/SLURM-CONF.md lists.
//
// The package resolves no host names and opens no connections. It never prints
// the value of an unknown key, because the value might be a password.
package conf

import "time"

// Default ports, the same as Slurm's.
const (
	DefaultControllerPort = 6817
	defaultAccountingPort = 6819
)

// Cluster is the cluster's configuration file.
type Cluster struct {
	Path      string
	Files     []string // Path and the files that it includes; see CheckTrust
	Sent      []string // those of Files that a controller sent; see Reader.ReadSent
	SentCA    string   // Sent.CA
	SlurmKeys bool     // whether a key is in Slurm's spelling

	ClusterName    string
	Controllers    []Host // primary first
	SharedAddress  string // SchedctldAddr: the active controller's shared address; "" to use each controller's own
	ControllerPort int
	MorePorts      int    // number of additional ports on which the controllers listen
	User           string // SchedUser; "" for root
	Auth
	Accounting        *Accounting // nil if the cluster has no accounting daemon
	StateSaveLocation string
	PrivateData       PrivateData
	Restd             Restd
	Configless        bool   // SchedctldParameters=enable_configless: the controller sends this file to others
	Nodes             []Line // NodeName= lines
	Partitions        []Line // PartitionName= lines
	SecureRPC         bool   // TLSType=tls/s2n: the daemons and their clients use TLS
	TLS               TLSParameters
	MessageTimeout    time.Duration
	ConnectTimeout    time.Duration // TCPTimeout; 0 if not given
	KillWait          time.Duration // of jobs, from SIGTERM to SIGKILL; 0 if not given
	DebugFlags        []string
	KeptLimits        []string // limits of jobs, such as CORE, that stay as they are on the job's machine; nil: none
}

// Dbd is the accounting daemon's configuration file.
type Dbd struct {
	Path      string
	Files     []string // like Cluster.Files
	SlurmKeys bool

	Host       string // name of the machine
	Address    string // address to listen on; Host if DbdAddr is not given
	Port       int
	User       string // SchedUser; "" for root
	StorageLoc string // path of the database

	PrivateData PrivateData
	Auth
	SecureRPC      bool // as in Cluster
	TLS            TLSParameters
	MessageTimeout time.Duration
	DebugFlags     []string
}

// Auth describes how clients authenticate. Both configuration files have the
// same keys for these settings.
type Auth struct {
	AuthType             string        // in a site's file, possibly an unsupported type
	AuthSocket           string        // AuthInfo=socket= with auth/cred: the daemon's own socket; it has a default
	Munge                Munge         // settings for auth/munge
	SlurmClientIDs       bool          // AuthInfo=use_client_ids: with auth/slurm, a credential contains the user's name and groups
	JWT                  bool          // AuthAltTypes has auth/jwt
	JWTKey               string        // AuthAltParameters=jwt_key=
	JWKS                 string        // … jwks=
	UserClaimField       string        // … userclaimfield=
	ClientIDs            bool          // … use_jwt_client_ids or use_jwt_client_ids_only
	ClientIDsOnly        bool          // … use_jwt_client_ids_only
	DisableTokenCreation bool          // … disable_token_creation
	MaxTokenLifespan     time.Duration // … max_token_lifespan=; see LifespanLimit
	HasUnusableKey       bool          // jwt_key= or jwks= contains a path that can't be used, so there is no default key
}

// Munge holds the settings of the munged that issues credentials for
// auth/munge.
type Munge struct {
	Socket string        // path; by default munged's default socket
	TTL    time.Duration // AuthInfo=ttl=; 0 for munged's default
}

// Host is a value of SchedctldHost.
type Host struct {
	Name    string
	Address string // Name if no address was given
}

// Accounting is the address of the accounting daemon.
type Accounting struct {
	Host       string
	BackupHost string
	Port       int
	Socket     string // scheddbd's UNIX socket, for the controller's own use; "" for TCP
	Munge      string // socket of the munged for the accounting daemon; "" to use Auth.Munge.Socket
}

// Line is a line of Key=Value pairs that describe one object, such as a node.
type Line struct {
	File   string
	Number int
	Pairs  []Pair
}

// Pair is a Key=Value pair, with the key as it is written in the file.
type Pair struct{ Key, Value string }

// Get returns the value of key, which is case-insensitive. If the line has the
// key several times, Get returns the last value.
func (l Line) Get(key string) (value string, ok bool) {
	for _, p := range l.Pairs {
		if fold(p.Key) == fold(key) {
			value, ok = p.Value, true
		}
	}
	return value, ok
}

// Read reads the cluster's configuration. An error lists all problems; warnings
// are returned with or without an error. A program that needs no configuration
// can use the path /dev/null. Every setting then has its default value.
func Read(path string) (*Cluster, []Warning, error) { return diskReader.Read(path) }

// ReadDbd reads the accounting daemon's configuration, in the same way as Read.
func ReadDbd(path string) (*Dbd, []Warning, error) {
	d, warnings, err := readDbd(path, newSource(diskReader.Files))
	return d, warnings, diskReader.withHint(path, err)
}

// Package conf reads the two configuration files: the file of the cluster,
// which all programs of this project can share with a site's Slurm
// (slurm.conf), and the file of the accounting daemon. It also looks up
// environment variables. These have two spellings, like the keys of the files.
//
// A file consists of lines of Key=Value pairs. Keys are case-insensitive. Each
// may be written in our spelling (SchedUser) or in Slurm's (SlurmUser). A value
// with spaces is quoted. A "#" starts a comment, and a backslash at the end
// continues the line. "Include FILE" reads another file. A relative FILE is
// resolved against the directory of the first file. In an included slurm.conf,
// it is resolved against the directory of that slurm.conf. All problems are
// reported together, each with its line number. Keys of Slurm that this project
// does not need are ignored. Other unknown keys cause a warning. Everything
// that Slurm's daemons can read is parsed in the same way as in Slurm
// (docs/SLURM.md).
//
// The package resolves no names and opens no connections. It never prints the
// value of an unknown key, because the value might be a password.
package conf

import "time"

// Default ports, the same as Slurm's.
const (
	DefaultControllerPort = 6817
	DefaultAccountingPort = 6819
)

// Cluster is the cluster's configuration file.
type Cluster struct {
	Path      string
	Files     []string // Path and the files that it includes; see CheckTrust
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
	Nodes             []Line // NodeName= lines
	Partitions        []Line // PartitionName= lines
	TLS               map[string]string
	MessageTimeout    time.Duration
	ConnectTimeout    time.Duration // TCPTimeout; 0 if not given
	DebugFlags        []string
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
	MessageTimeout time.Duration
	DebugFlags     []string
}

// Auth describes how clients authenticate. It is the same in both files.
type Auth struct {
	AuthType             string        // in a site's file, possibly an unsupported type
	AuthSocket           string        // AuthInfo=socket= with auth/cred: the daemon's own socket
	Munge                Munge         // settings for auth/munge
	JWT                  bool          // AuthAltTypes has auth/jwt
	JWTKey               string        // AuthAltParameters=jwt_key=
	JWKS                 string        // … jwks=
	UserClaimField       string        // … userclaimfield=
	DisableTokenCreation bool          // … disable_token_creation
	MaxTokenLifespan     time.Duration // … max_token_lifespan=; see LifespanLimit
	HasUnusableKey       bool          // the path in jwt_key= or jwks= can't be used here, so there is no default key
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
	Munge      string // socket of the munged for this daemon; "" to use the socket in Auth
}

// Line is a line of the file whose pairs describe one object, such as a node.
type Line struct {
	File   string
	Number int
	Pairs  []Pair
}

// Pair is a Key=Value, with the key as it is written in the file.
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

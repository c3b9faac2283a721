// Package conf reads the two configuration files: the cluster's, which every
// program here shares with a site's Slurm (slurm.conf is one), and that of the
// accounting daemon. It also looks up environment variables, which have two
// spellings as the keys of the files do.
//
// A file consists of lines of Key=Value pairs. Keys are in any case and in the
// Sched… or the Slurm… spelling. A value with spaces is quoted. # starts a
// comment, and a backslash at the end continues the line. "Include FILE" reads
// another file, relative to the first file's directory, or within an included
// slurm.conf to that file's directory. All problems are reported at once, each
// with its line. Keys that Slurm has and nothing here needs are ignored; other
// unknown keys cause a warning. Everything that Slurm's daemons can read is
// parsed as they do (docs/SLURM.md).
//
// It resolves no name and dials nothing. It prints no value of an unknown key,
// which might be a password.
package conf

import "time"

// Default ports, as Slurm's.
const (
	DefaultControllerPort = 6817
	DefaultAccountingPort = 6819
)

// Cluster is the main configuration file.
type Cluster struct {
	Path      string
	Files     []string // Path and what it includes; see Judge
	SlurmKeys bool     // a key is in Slurm's spelling

	ClusterName    string
	Controllers    []Host // primary first
	Front          string // SchedctldAddr: shared address of the active controller; "": use each one's own address
	ControllerPort int
	MorePorts      int    // number of further ports that the controllers listen on
	User           string // SchedUser; "" is root
	Auth
	Accounting        *Accounting // nil: the cluster has no accounting daemon
	StateSaveLocation string
	PrivateData       PrivateData
	Nodes             []Line // NodeName= lines
	Partitions        []Line // PartitionName= lines
	TLS               map[string]string
	MessageTimeout    time.Duration
	ConnectTimeout    time.Duration // TCPTimeout; 0: not given
	DebugFlags        []string
}

// Dbd is the accounting daemon's configuration file.
type Dbd struct {
	Path      string
	Files     []string // as Cluster.Files
	SlurmKeys bool

	Host       string // name of the machine
	Address    string // where to listen; Host when DbdAddr is not given
	Port       int
	User       string // SchedUser; "" is root
	StorageLoc string // path of the database

	PrivateData PrivateData
	Auth
	MessageTimeout time.Duration
	DebugFlags     []string
}

// Auth describes how clients authenticate, the same in both files.
type Auth struct {
	AuthType             string        // or in a site's file an unsupported one
	AuthSocket           string        // AuthInfo=socket= under auth/cred: the daemon's own
	Munge                Munge         // under auth/munge
	JWT                  bool          // AuthAltTypes has auth/jwt
	JWTKey               string        // AuthAltParameters=jwt_key=
	JWKS                 string        // … jwks=
	UserClaimField       string        // … userclaimfield=
	DisableTokenCreation bool          // … disable_token_creation
	MaxTokenLifespan     time.Duration // … max_token_lifespan=; see LongestToken
	KeyElsewhere         bool          // a key's path is not usable here: no default is used
}

// Munge is the munged that issues credentials under auth/munge.
type Munge struct {
	Socket string        // or munged's default socket
	TTL    time.Duration // AuthInfo=ttl=; 0: munged's own
}

// Host is one SchedctldHost.
type Host struct {
	Name    string
	Address string // Name when none was given
}

// Accounting is the address of the accounting daemon.
type Accounting struct {
	Host       string
	BackupHost string
	Port       int
	Socket     string // scheddbd's UNIX socket, for the controller's own use; "": by TCP
	Munge      string // socket of the munged for this daemon; "": that of Auth
}

// Line is a line that describes one thing in many pairs, such as a node.
type Line struct {
	File   string
	Number int
	Pairs  []Pair
}

// Pair is one Key=Value, the key as written.
type Pair struct{ Key, Value string }

// Get returns the value of key, in any case; the last one when it is repeated.
func (l Line) Get(key string) (value string, ok bool) {
	for _, p := range l.Pairs {
		if fold(p.Key) == fold(key) {
			value, ok = p.Value, true
		}
	}
	return value, ok
}

// Read reads the cluster's configuration. An error lists all problems; warnings
// are returned with or without an error. /dev/null is an empty configuration
// with every default, for programs that need none.
func Read(path string) (*Cluster, []Warning, error) { return own.Read(path) }

// ReadDbd reads the accounting daemon's configuration, as Read does.
func ReadDbd(path string) (*Dbd, []Warning, error) {
	d, warnings, err := readDbd(path, from(own.Files))
	return d, warnings, own.hinted(path, err)
}

// Package conf reads the two configuration files: the cluster's, which every
// program here shares with a site's Slurm (slurm.conf is one), and that of the
// accounting daemon. It also looks up environment variables, which have two
// spellings as the keys of the files do.
//
// A file is lines of Key=Value pairs; keys in any case, each in the Sched… or the
// Slurm… spelling, values quoted when they have blanks, # to the end of the line
// is a comment, a backslash at the end continues the line, "Include FILE" reads
// another, relative to the first file's directory (within an included slurm.conf, to that file's). All problems are reported at once, each with
// its line. Keys that Slurm has and nothing here needs are passed over; others unknown are warned
// about. What Slurm's daemons can read is read as they read it (docs/SLURM.md).
//
// It resolves no name and dials nothing, and prints no value of a key it does not
// know, which might be a password.
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
	SlurmKeys bool     // some key is in Slurm's spelling

	ClusterName    string
	Controllers    []Host // primary first
	Front          string // SchedctldAddr: where whichever controller is in charge is asked; "": each at its own address
	ControllerPort int
	MorePorts      int    // how many ports after it the controllers listen at as well
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

// Auth is how clients prove who they are, the same in both files.
type Auth struct {
	AuthType             string        // "auth/cred", "auth/munge", "auth/slurm", or in a site's file one not spoken here
	AuthSocket           string        // AuthInfo=socket= under auth/cred: the daemon's own
	Munge                Munge         // under auth/munge
	JWT                  bool          // AuthAltTypes has auth/jwt
	JWTKey               string        // AuthAltParameters=jwt_key=
	JWKS                 string        // … jwks=
	UserClaimField       string        // … userclaimfield=
	DisableTokenCreation bool          // … disable_token_creation
	MaxTokenLifespan     time.Duration // … max_token_lifespan=; see LongestToken
	KeyElsewhere         bool          // a key is named that can't be found from here: none is looked for
}

// Munge is munged, who vouches for processes under auth/munge.
type Munge struct {
	Socket string        // AuthInfo=socket=, or where munged listens unless it is told otherwise
	TTL    time.Duration // AuthInfo=ttl=; 0: munged's own
}

// Host is one SchedctldHost.
type Host struct {
	Name    string
	Address string // Name when none was given
}

// Accounting says where the accounting daemon is.
type Accounting struct {
	Host       string
	BackupHost string
	Port       int
	Socket     string // scheddbd's UNIX socket, for the controller's own use; "": by TCP
	Munge      string // socket of the munged that vouches towards it; "": that of Auth
}

// Line is a line that describes one thing in many pairs, such as a node.
type Line struct {
	File   string
	Number int
	Pairs  []Pair
}

// Pair is one Key=Value, the key as written.
type Pair struct{ Key, Value string }

// Get is the value of key, in any case, the last when it is repeated.
func (l Line) Get(key string) (value string, ok bool) {
	for _, p := range l.Pairs {
		if fold(p.Key) == fold(key) {
			value, ok = p.Value, true
		}
	}
	return value, ok
}

// Read reads the cluster's configuration. The error, when there is one, lists all
// problems; warnings come with or without it. /dev/null is an empty configuration
// with every default, for what needs none.
func Read(path string) (*Cluster, []Warning, error) { return own.Read(path) }

// ReadDbd reads the accounting daemon's configuration, as Read does.
func ReadDbd(path string) (*Dbd, []Warning, error) {
	d, warnings, err := readDbd(path, from(own.Files))
	return d, warnings, own.hinted(path, err)
}

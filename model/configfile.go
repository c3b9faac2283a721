package model

// ConfigFile is one of the configuration files that a controller sends to
// machines that have no files of their own.
type ConfigFile struct {
	Name       string // without a directory; for a file that slurm.conf includes, as it is written there
	Text       string
	Exists     bool // false if the controller has no such file
	Executable bool
}

package model

// Configuration is a controller's configuration. The gateway only shows it, so
// its values are in maps, keyed by the names that they have on the wire.
type Configuration struct {
	LastUpdate  Time
	BootTime    Time
	Texts       map[string]string
	Numbers     map[string]uint64
	Lists       map[string][]string
	JobDefaults []JobDefault
}

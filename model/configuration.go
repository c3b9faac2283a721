package model

// Configuration is a controller's configuration. It is a dictionary, by the names
// of the wire: nothing but showing is done with it.
type Configuration struct {
	LastUpdate  Time
	BootTime    Time
	Texts       map[string]string
	Numbers     map[string]uint64
	Lists       map[string][]string
	JobDefaults []JobDefault
}

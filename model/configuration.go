package model

// Configuration is a controller's configuration. It is a dictionary with the
// names on the wire, because it is only shown.
type Configuration struct {
	LastUpdate  Time
	BootTime    Time
	Texts       map[string]string
	Numbers     map[string]uint64
	Lists       map[string][]string
	JobDefaults []JobDefault
}

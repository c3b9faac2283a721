package model

// Configuration is a controller's configuration. Its values are in maps, by
// their names on the wire, because the gateway only shows them.
type Configuration struct {
	LastUpdate  Time
	BootTime    Time
	Texts       map[string]string
	Numbers     map[string]uint64
	Lists       map[string][]string
	JobDefaults []JobDefault
}

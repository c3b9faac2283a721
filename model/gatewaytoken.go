package model

// GatewayToken is what the register of gateway tokens records about one.
type GatewayToken struct {
	ID      string
	User    string
	ActFor  string // Unix group for whose members it acts; "": it acts only as User
	Scopes  string // separated by "+"
	Label   string // what it is for, for people
	Issued  Time
	Expires Time
	Revoked bool
}

// NewGatewayToken describes a gateway token that a user wants.
type NewGatewayToken struct {
	Scopes   []string
	Lifetime uint32 // in seconds; 0 for the default
	Label    string
}

package auth

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"

	"schedrestd/internal/setting"
)

// Rules says which claims of a token the daemons use, as configured in
// AuthAltParameters=, and what the gateway demands of them. The zero Rules are the
// default of the daemons.
type Rules struct {
	setting.Tokens
	Gateway       string // ClusterName, which a gateway token must contain; "": gateway tokens are refused
	UserField     string // userclaimfield=: a third claim, after sun and username, that may contain the user's name
	ClientIDs     bool   // use_jwt_client_ids: the identity claims replace a look-up of the user
	ClientIDsOnly bool   // use_jwt_client_ids_only: a token must have the identity claims
}

// identity is the part of a token's identity claims that decides as which user
// the daemons act. The identity claims are uid, gid and id. The last is an
// object, which may be long: it also has the user's groups, home directory and
// shell. The daemons check these, and this package does not read them.
type identity struct {
	name string // "" if the claim id has none
	uid  uint32
}

// user returns the user that the daemons take a token for. If they take the
// user's uid from the token, user returns the uid, too, and otherwise nil.
//
// The name is in the first of these claims that is present: sun, username, and
// the claim that the site configured. If the first claim present does not
// contain a valid user name, user returns an error, whatever the other claims
// contain. The identity claims may contain a name as well. The daemons prefer
// one or the other, depending on their release and configuration, so user
// refuses a token in which the two differ, whatever r says.
func (o object) user(r Rules) (name string, uid *uint32, err error) {
	name, err = o.namedUser(r.UserField)
	if err != nil {
		return "", nil, err
	}
	id, err := o.identity()
	switch {
	case id != nil && name != "" && id.name != "" && name != id.name:
		return "", nil, errors.New("the claim id names another user")
	case !r.ClientIDs && name == "" && id != nil && id.name != "":
		return "", nil, errors.New("only the claim id names the user, and use_jwt_client_ids is not set")
	case !r.ClientIDs: // the daemons ignore the identity claims
	case err != nil:
		return "", nil, err
	case id != nil:
		name, uid = cmp.Or(name, id.name), &id.uid
	case r.ClientIDsOnly:
		return "", nil, errors.New("no identity: use_jwt_client_ids_only requires the claims uid, gid and id")
	}
	if name == "" {
		return "", nil, errors.New("no claim names the user")
	}
	return name, uid, nil
}

// namedUser returns the user that a claim other than id names, or "".
func (o object) namedUser(field string) (string, error) {
	for _, claim := range []string{"sun", "username", field} {
		value, ok, err := o.text(claim)
		switch {
		case !ok || claim == "":
			continue
		case err != nil || !PosixName(value):
			return "", errors.New("the user claim is not a user name")
		}
		return value, nil
	}
	return "", nil
}

// identity returns the identity claims. It returns nil if one of them is
// missing, as the daemons then ignore the others.
func (o object) identity() (*identity, error) {
	for _, name := range []string{"uid", "gid", "id"} {
		if _, ok := o[name]; !ok {
			return nil, nil
		}
	}
	uid, err := o.id("uid")
	if err != nil {
		return nil, err
	}
	if _, err := o.id("gid"); err != nil {
		return nil, err
	}
	members, err := parseObject(o["id"])
	if err != nil {
		return nil, fmt.Errorf("id: %w", err)
	}
	name, ok, err := members.text("name")
	if err != nil || ok && !PosixName(name) {
		return nil, errors.New("id: the name is not a user name")
	}
	return &identity{name, uid}, nil
}

// id returns the uid or gid in the named member. Slurm also accepts a decimal number in quotes,
// and providers that copy the claim from a directory send it in this form.
func (o object) id(name string) (uint32, error) {
	digits := bytes.TrimSuffix(bytes.TrimPrefix(o[name], []byte{'"'}), []byte{'"'})
	n, err := strconv.ParseUint(string(digits), 10, 32)
	if err != nil || n == math.MaxUint32 {
		return 0, fmt.Errorf("%s: not a number from 0 to %d", name, uint32(math.MaxUint32-1))
	}
	return uint32(n), nil
}

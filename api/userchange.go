package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// UsersBody declares the users that a request creates or changes.
var UsersBody = changes("openapi_users_resp", "users", "user_list", withInitial(User.Type, model.BlankUser), "The users")

// PostUsers creates and changes users.
var PostUsers = declare(scope.SlurmdbWrite, noParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "users/", ID: "post_users",
	Doc: "Create or change users", Request: UsersBody, Answer: Empty,
	Example:     `{"users": [{"name": "alice", "default": {"account": "lab"}}]}`,
	Description: "Creates the users that do not exist, without associations, and changes those that exist. old_name renames a user. The daemon makes all changes or none. A user needs an association to submit jobs; POST users_association/ creates both.",
	RequestDoc:  "The users",
	AnswerDoc:   "Only `meta`, `errors` and `warnings`: the users now match the request. A warning names each user that already did",
})

type NamedUserParams struct{ Name string }

var namedUserParams = nameParams("name", "user", "Name of the user",
	func(p *NamedUserParams) *string { return &p.Name })

// UsersRemoved declares the answer of DeleteUser. slurmrestd sends the names of
// the removed users, but does not document them.
var UsersRemoved = removed("openapi_resp", "removed_users", "The users that were removed", schema.Undocumented(0))

var DeleteUser = declare(scope.SlurmdbWrite, namedUserParams, Endpoint{
	Method: http.MethodDelete, Accounting: true, Path: "user/{name}", ID: "delete_user",
	Doc: "Remove a user", Answer: UsersRemoved,
	Description: "Removes the user with this name and all associations of the user. Returns 409 if the user has running jobs.",
	AnswerDoc:   "The user",
})

// UsersWithAssocs is a request to create users and their associations
// (PostUsersAssociation). All new users get the values in the field User.
type UsersWithAssocs struct {
	Set  AssocSet
	User model.User
}

var userShort = schema.Object("user_short", func() schema.Fields[model.User] {
	return schema.Fields[model.User]{
		schema.F("adminlevel", adminLevels.Type, func(u *model.User) *uint16 { return &u.AdminLevel }, "Rights of the users in accounting"),
		schema.F("defaultqos", schema.Int32, func(u *model.User) *uint32 { return &u.DefaultQOSID }, "Number of the default quality of service", schema.Bare, schema.Since(V44)),
		schema.F("defaultaccount", nonempty(schema.String), func(u *model.User) *string { return &u.DefaultAccount }, "Default account"),
		schema.F("defaultwckey", nonempty(schema.String), func(u *model.User) *string { return &u.DefaultWCKey }, "Default workload key"),
	}
})

// UsersWithAssocsBody declares the fields of a UsersWithAssocs.
var UsersWithAssocsBody = schema.Object("openapi_users_add_cond_resp", func() schema.Fields[UsersWithAssocs] {
	return append(schema.Fields[UsersWithAssocs]{
		schema.F("association_condition", usersSet.Type, func(u *UsersWithAssocs) *AssocSet { return &u.Set }, "The users, and where to create their associations", schema.Required(0)),
		schema.F("user", withInitial(userShort.Type, model.BlankUser), func(u *UsersWithAssocs) *model.User { return &u.User }, "Fields of all new users", schema.Required(0)),
	}, unusedEnvelope[UsersWithAssocs]()...)
})

var usersSet = schema.Object("users_add_cond", func() schema.Fields[AssocSet] {
	return schema.Fields[AssocSet]{
		schema.F("accounts", names(stringList), func(s *AssocSet) *[]string { return &s.Accounts }, "Accounts; default: the default account of user"),
		schema.F("association", commonAssoc.Type, func(s *AssocSet) *AssociationRow { return s.row() }, "Fields of all new associations"),
		schema.F("clusters", names(stringList), func(s *AssocSet) *[]string { return &s.Clusters }, "Clusters; default: all"),
		schema.F("partitions", names(stringList), func(s *AssocSet) *[]string { return &s.Partitions }, "Partitions; default: the associations are for all partitions"),
		schema.F("users", names(stringList), func(s *AssocSet) *[]string { return &s.Users }, "Names of the users", schema.Required(0)),
		schema.F("wckeys", names(stringList), func(s *AssocSet) *[]string { return &s.WCKeys }, "Workload keys; default: the default key in the field user"),
	}
})

var UsersAdded = added("openapi_users_add_cond_resp_str", "added_users",
	"The accounting daemon's text about the added records; empty if nothing was added")

// UsersWithAssocsParams are the parameters of PostUsersAssociation. They have
// no effect.
type UsersWithAssocsParams struct{}

var usersWithAssocsParams = schema.Object("", func() schema.Fields[UsersWithAssocsParams] {
	return schema.Fields[UsersWithAssocsParams]{
		schema.Ignore[UsersWithAssocsParams]("update_time", instant, "Ignored: it only applies to lists", schema.Unit(TimeText)),
		schema.Ignore[UsersWithAssocsParams]("flags", joined(showFlags), "Ignored: it only applies to lists"),
	}
})

// PostUsersAssociation creates users with associations.
var PostUsersAssociation = declare(scope.SlurmdbWrite, usersWithAssocsParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "users_association/", ID: "post_users_association",
	Doc: "Create users with associations", Request: UsersWithAssocsBody, Answer: UsersAdded,
	Example:     `{"association_condition": {"users": ["alice"], "accounts": ["lab"]}, "user": {"adminlevel": ["None"]}}`,
	Description: "Creates the users that do not exist, and an association for each user with each of the accounts in each of the clusters and partitions. Existing records stay unchanged. Either all are created or none.",
	RequestDoc:  "The users, the accounts, and the fields of the associations",
	AnswerDoc:   "The accounting daemon's text about the added records",
})

package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// adminLevels are the words for a user's privileges in the accounting database.
var adminLevels = schema.Words("admin_lvl",
	schema.Part("Not Set", ^uint16(0), 0),
	schema.Part("None", ^uint16(0), 1),
	schema.Part("Operator", ^uint16(0), 2),
	schema.Part("Administrator", ^uint16(0), 3),
)

var userFlags = schema.Words("user_flags",
	schema.Part("NONE", ^uint32(0), 0),
	schema.Bit("DELETED", uint32(1)<<0),
)

// wckey declares the fields of a workload key, which distinguishes jobs in
// accounting.
var wckey = schema.Object("wckey", func() schema.Fields[model.WCKey] {
	return schema.Fields[model.WCKey]{
		schema.Show("accounting", usages, func(k *model.WCKey) []model.Usage { return k.Usage }, "Usage of jobs with this key, if requested"),
		schema.F("cluster", schema.String, func(k *model.WCKey) *string { return &k.Cluster }, "Cluster", schema.Required(0)),
		schema.Show("id", schema.Int32, func(k *model.WCKey) uint32 { return k.ID }, "Number of the workload key", schema.Bare),
		schema.F("name", schema.String, func(k *model.WCKey) *string { return &k.Name }, "Name of the workload key", schema.Required(0)),
		schema.F("user", schema.String, func(k *model.WCKey) *string { return &k.User }, "User of the workload key", schema.Required(0)),
		schema.F("flags", schema.Words("wckey_flags", schema.Bit("DELETED", uint32(1)<<0)).Type, func(k *model.WCKey) *uint32 { return &k.Flags }, "Flags of the record"),
	}
})

// User declares the fields of a user in the accounting records.
var User = schema.Object("user", func() schema.Fields[model.User] {
	return schema.Fields[model.User]{
		schema.F("administrator_level", adminLevels.Type, func(u *model.User) *uint16 { return &u.AdminLevel }, "Rights of the user in accounting"),
		schema.Show("associations", assocShorts, func(u *model.User) []model.Association { return u.Associations }, "Associations, if requested"),
		schema.Show("coordinators", coordinators, func(u *model.User) []model.Coordinator { return u.Coordinates }, "Accounts that the user coordinates, if requested"),
		schema.Group("default", "Defaults for the user's jobs", schema.Fields[model.User]{
			schema.F("qos", schema.Int32, func(u *model.User) *uint32 { return &u.DefaultQOSID }, "Number of the quality of service; 0 for none", schema.Bare, schema.Since(V44)),
			schema.F("account", nonempty(schema.String), func(u *model.User) *string { return &u.DefaultAccount }, "Account"),
			schema.F("wckey", nonempty(schema.String), func(u *model.User) *string { return &u.DefaultWCKey }, "Workload key"),
		}),
		schema.F("flags", userFlags.Type, func(u *model.User) *uint32 { return &u.Flags }, "Flags of the record"),
		schema.F("name", schema.String, func(u *model.User) *string { return &u.Name }, "Name of the user", schema.Required(0)),
		schema.F("old_name", schema.String, func(u *model.User) *string { return &u.OldName }, "Former name of the user"),
		schema.F("wckeys", schema.Named("wckey_list", schema.List(wckey.Type)), func(u *model.User) *[]model.WCKey { return &u.WCKeys }, "Workload keys, if requested"),
	}
})

type UsersAnswer struct {
	Users schema.Stream[model.User]
	Envelope
}

// UserList declares the fields of a UsersAnswer.
var UserList = enveloped("openapi_users_resp", func(a *UsersAnswer) *Envelope { return &a.Envelope },
	schema.F("users", schema.Named("user_list", schema.StreamOf(User.Type)), func(a *UsersAnswer) *schema.Stream[model.User] { return &a.Users }, "The users", schema.Required(0)),
)

// UsersParams are the parameters of GetUsers and GetUser. Only GetUser uses
// Name.
type UsersParams struct {
	Name            string
	WithoutDefaults bool
	model.UserFilter
}

// The parameters that select which details of a user are shown. slurmrestd's
// documents list them in different orders.
var (
	withAssocs  = schema.F("with_assocs", boolText, func(p *UsersParams) *bool { return &p.WithAssocs }, "Include associations")
	withCoords  = schema.F("with_coords", boolText, func(p *UsersParams) *bool { return &p.WithCoordinates }, "Include the accounts that the user coordinates")
	withDeleted = schema.F("with_deleted", boolText, func(p *UsersParams) *bool { return &p.WithDeleted }, "Include deleted users")
	withWCKeys  = schema.F("with_wckeys", boolText, func(p *UsersParams) *bool { return &p.WithWCKeys }, "Include workload keys")
)

var usersParams = schema.Object("", func() schema.Fields[UsersParams] {
	return schema.Fields[UsersParams]{
		schema.F("admin_level", joined(adminLevels), func(p *UsersParams) *uint16 { return &p.AdminLevel }, "Rights that the users have in accounting"),
		texts("default_account", "Default accounts", func(p *UsersParams) *[]string { return &p.DefaultAccounts }),
		texts("default_wckey", "Default workload keys", func(p *UsersParams) *[]string { return &p.DefaultWCKeys }),
		withAssocs, withCoords, withDeleted, withWCKeys,
		schema.F("without_defaults", boolText, func(p *UsersParams) *bool { return &p.WithoutDefaults }, "Omit the default account and workload key"),
	}
})

var GetUsers = declare(scope.SlurmdbRead, usersParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "users/", ID: "get_users", Paged: true,
	Doc: "List the users", Answer: UserList,
	Description: "Returns the users that the accounting daemon knows. Each parameter selects fewer users or adds details. Default accounts and workload keys are shown only together with associations.",
	AnswerDoc:   "The users",
})

var userParams = schema.Object("", func() schema.Fields[UsersParams] {
	return schema.Fields[UsersParams]{
		schema.F("name", objectName("user"), func(p *UsersParams) *string { return &p.Name }, "Name of the user", schema.Required(0)),
		withDeleted, withAssocs, withCoords, withWCKeys,
	}
})

var GetUser = declare(scope.SlurmdbRead, userParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "user/{name}", ID: "get_user",
	Doc: "Show one user", Answer: UserList,
	Description: "Returns the user with this name.",
	AnswerDoc:   "The user, in a list",
})

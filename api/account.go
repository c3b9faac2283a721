package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// coordinators is the type of two lists: an account's coordinators, and the
// accounts that a user coordinates.
var coordinators = schema.Named("coord_list", schema.List(schema.Object("coord", func() schema.Fields[model.Coordinator] {
	return schema.Fields[model.Coordinator]{
		schema.F("name", schema.String, func(c *model.Coordinator) *string { return &c.Name }, "Name of the user or, in a list of accounts, of the account", schema.Required(0)),
		schema.F("direct", optBool, func(c *model.Coordinator) *model.Opt[uint16] { return &c.Direct }, "Whether the user coordinates this account directly, not only a parent account"),
	}
}).Type))

// accountFlags are the names of an account's flags.
var accountFlags = schema.Words("account_flags",
	schema.Bit("DELETED", uint32(1)<<0),
	schema.Bit("WithAssociations", uint32(1)<<1, schema.Since(V41)),
	schema.Bit("WithCoordinators", uint32(1)<<2, schema.Since(V41)),
	schema.Bit("NoUsersAreCoords", uint32(1)<<3, schema.Since(V41)),
	schema.Bit("UsersAreCoords", uint32(1)<<16, schema.Since(V41)),
)

// Account declares the fields of an account.
var Account = schema.Object("account", func() schema.Fields[model.Account] {
	return schema.Fields[model.Account]{
		schema.Show("associations", assocShorts, func(a *model.Account) []model.Association { return a.Associations }, "Associations, if requested"),
		schema.F("coordinators", coordinators, func(a *model.Account) *[]model.Coordinator { return &a.Coordinators }, "Coordinators"),
		schema.F("description", text, func(a *model.Account) *model.Text { return &a.Description }, "Any text", schema.Required(0)),
		schema.F("name", schema.String, func(a *model.Account) *string { return &a.Name }, "Name of the account", schema.Required(0)),
		schema.F("organization", text, func(a *model.Account) *model.Text { return &a.Organization }, "Organization of the account", schema.Required(0)),
		schema.F("flags", accountFlags.Type, func(a *model.Account) *uint32 { return &a.Flags }, "Flags of the record"),
	}
})

type AccountsAnswer struct {
	Accounts schema.Stream[model.Account]
	Envelope
}

// Accounts declares the fields of an AccountsAnswer.
var Accounts = enveloped("openapi_accounts_resp", func(a *AccountsAnswer) *Envelope { return &a.Envelope },
	schema.F("accounts", schema.Named("account_list", schema.StreamOf(Account.Type)), func(a *AccountsAnswer) *schema.Stream[model.Account] { return &a.Accounts }, "The accounts", schema.Required(0)),
)

type AccountsParams struct{ model.AccountFilter }

func accountFlag(name string, bit model.AccountFilterFlags, doc string, opts ...schema.Option) schema.Field[AccountsParams] {
	return flagText(name, doc, func(p *AccountsParams) *model.AccountFilterFlags { return &p.Flags }, bit, opts...)
}

var accountsParams = schema.Object("", func() schema.Fields[AccountsParams] {
	return schema.Fields[AccountsParams]{
		texts("description", "Descriptions of accounts", func(p *AccountsParams) *[]string { return &p.Descriptions }),
		accountFlag("with_assocs", model.AccountWithAssocs, "Include the associations", schema.Until(V41)),
		accountFlag("with_coords", model.AccountWithCoordinators, "Include the coordinators, which the answer always does", schema.Until(V41)),
		accountFlag("with_deleted", model.AccountWithDeleted, "Include deleted records", schema.Until(V41)),
		accountFlag("DELETED", model.AccountWithDeleted, "Include deleted records", schema.Since(V41)),
		accountFlag("WithAssociations", model.AccountWithAssocs, "Include the associations", schema.Since(V41)),
		accountFlag("WithCoordinators", model.AccountWithCoordinators, "Include the coordinators, which the answer always does", schema.Since(V41)),
		schema.Ignore[AccountsParams]("NoUsersAreCoords", boolText, "Ignored in lists", schema.Since(V41)),
		schema.Ignore[AccountsParams]("UsersAreCoords", boolText, "Ignored in lists", schema.Since(V41)),
	}
})

var GetAccounts = declare(scope.SlurmdbRead, accountsParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "accounts/", ID: "get_accounts", Paged: true,
	Doc: "List the accounts", Answer: Accounts,
	Description: "Returns the accounts in the accounting records. Each parameter narrows the list or adds details.",
	AnswerDoc:   "The accounts",
})

type AccountParams struct {
	Name                                string
	WithAssocs, WithCoords, WithDeleted bool
}

var accountParams = schema.Object("", func() schema.Fields[AccountParams] {
	return schema.Fields[AccountParams]{
		schema.F("account_name", objectName("account"), func(p *AccountParams) *string { return &p.Name }, "Name of the account", schema.Required(0)),
		schema.F("with_assocs", boolText, func(p *AccountParams) *bool { return &p.WithAssocs }, "Include the associations"),
		schema.F("with_coords", boolText, func(p *AccountParams) *bool { return &p.WithCoords }, "Include the coordinators, which the answer always does"),
		schema.F("with_deleted", boolText, func(p *AccountParams) *bool { return &p.WithDeleted }, "Include the record even if it is deleted"),
	}
})

var GetAccount = declare(scope.SlurmdbRead, accountParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "account/{account_name}", ID: "get_account",
	Doc: "Show one account", Answer: Accounts,
	Description: "Returns the account with this name.",
	AnswerDoc:   "The account, in a list",
})

package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// AccountsBody declares the accounts that a request creates or changes.
var AccountsBody = changes("openapi_accounts_resp", "accounts", "account_list", Account.Type, "The accounts")

// PostAccounts creates and changes accounts.
var PostAccounts = declare(scope.SlurmdbWrite, noParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "accounts/", ID: "post_accounts",
	Doc: "Create or change accounts", Request: AccountsBody, Answer: Empty,
	Example:     `{"accounts": [{"name": "lab", "description": "Physics laboratory", "organization": "physics"}]}`,
	Description: "Creates the accounts that do not exist, without associations, and changes those that exist. coordinators replaces the coordinators of an account; without this field they stay. The daemon makes all changes or none.",
	RequestDoc:  "The accounts",
	AnswerDoc:   "Only `meta`, `errors` and `warnings`: the accounts now match the request. A warning names each account that already did",
})

type NamedAccountParams struct{ Name string }

var namedAccountParams = nameParams("account_name", "account", "Name of the account",
	func(p *NamedAccountParams) *string { return &p.Name })

var AccountsRemoved = removed("openapi_accounts_removed_resp", "removed_accounts", "The accounts that were removed")

var DeleteAccount = declare(scope.SlurmdbWrite, namedAccountParams, Endpoint{
	Method: http.MethodDelete, Accounting: true, Path: "account/{account_name}", ID: "delete_account",
	Doc: "Remove an account", Answer: AccountsRemoved,
	Description: "Removes the named account and its associations. Returns 409 if the account has running jobs or is the default account of a user.",
	AnswerDoc:   "The account",
})

// AccountsWithAssocs is a request to create accounts and their associations
// (PostAccountsAssociation). It names the accounts and the clusters. Each
// account gets an association in each cluster. The other values in the request
// apply to all of these accounts and associations.
type AccountsWithAssocs struct {
	Set     AssocSet
	Account model.Account
}

var accountShort = schema.Object("account_short", func() schema.Fields[model.Account] {
	return schema.Fields[model.Account]{
		schema.F("description", text, func(a *model.Account) *model.Text { return &a.Description }, "Any text; default: the name of the account"),
		schema.F("organization", text, func(a *model.Account) *model.Text { return &a.Organization }, "Organization; default: the parent account, or the name of the account"),
	}
})

// AccountsWithAssocsBody declares the fields of an AccountsWithAssocs. As in
// Slurm's documents, the association_condition field is marked as required only
// from v0.0.44 on. The handler requires it in every version.
var AccountsWithAssocsBody = schema.Object("openapi_accounts_add_cond_resp", func() schema.Fields[AccountsWithAssocs] {
	return append(schema.Fields[AccountsWithAssocs]{
		schema.F("association_condition", accountsSet.Type, func(a *AccountsWithAssocs) *AssocSet { return &a.Set }, "The accounts, and where to create them", schema.Required(V44)),
		schema.F("account", accountShort.Type, func(a *AccountsWithAssocs) *model.Account { return &a.Account }, "Fields of all new accounts"),
	}, unusedEnvelope[AccountsWithAssocs]()...)
})

var accountsSet = schema.Object("accounts_add_cond", func() schema.Fields[AssocSet] {
	return schema.Fields[AssocSet]{
		schema.F("accounts", names(stringList), func(s *AssocSet) *[]string { return &s.Accounts }, "Names of the accounts", schema.Required(0)),
		schema.F("association", commonAssoc.Type, func(s *AssocSet) *AssociationRow { return s.row() }, "Fields of all new associations"),
		schema.F("clusters", names(stringList), func(s *AssocSet) *[]string { return &s.Clusters }, "Clusters; default: all"),
	}
})

var AccountsAdded = added("openapi_accounts_add_cond_resp_str", "added_accounts",
	"The accounting daemon's text about the added records; empty if nothing was added")

// PostAccountsAssociation creates accounts with associations.
var PostAccountsAssociation = declare(scope.SlurmdbWrite, noParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "accounts_association/", ID: "post_accounts_association",
	Doc: "Create accounts with associations", Request: AccountsWithAssocsBody, Answer: AccountsAdded,
	Example:     `{"association_condition": {"accounts": ["new"]}, "account": {"description": "Physics laboratory", "organization": "physics"}}`,
	Description: "Creates the accounts that do not exist, and an association for each account in each of the clusters. Existing records stay unchanged. Either all are created or none.",
	RequestDoc:  "The accounts, the clusters, and the fields of the associations",
	AnswerDoc:   "The accounting daemon's text about the added records",
})

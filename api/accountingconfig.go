package api

import (
	"net/http"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// ConfigAnswer is an answer with all accounting records.
type ConfigAnswer struct {
	Clusters     schema.Stream[ClusterRow]
	TRES         schema.Stream[model.TRES]
	Accounts     schema.Stream[model.Account]
	Users        schema.Stream[model.User]
	QOS          schema.Stream[QOSRow]
	WCKeys       schema.Stream[model.WCKey]
	Associations schema.Stream[AssociationRow]
	Envelope
}

// Config declares the fields of a ConfigAnswer.
var Config = enveloped("openapi_slurmdbd_config_resp", func(a *ConfigAnswer) *Envelope { return &a.Envelope },
	schema.F("clusters", schema.Named("cluster_rec_list", schema.StreamOf(Cluster.Type)), func(a *ConfigAnswer) *schema.Stream[ClusterRow] { return &a.Clusters }, "The clusters"),
	schema.F("tres", schema.Named("tres_list", schema.StreamOf(TRES.Type)), func(a *ConfigAnswer) *schema.Stream[model.TRES] { return &a.TRES }, "The trackable resources"),
	schema.F("accounts", schema.Named("account_list", schema.StreamOf(Account.Type)), func(a *ConfigAnswer) *schema.Stream[model.Account] { return &a.Accounts }, "The accounts"),
	schema.F("users", schema.Named("user_list", schema.StreamOf(User.Type)), func(a *ConfigAnswer) *schema.Stream[model.User] { return &a.Users }, "The users"),
	schema.F("qos", schema.Named("qos_list", schema.StreamOf(QOS.Type)), func(a *ConfigAnswer) *schema.Stream[QOSRow] { return &a.QOS }, "The qualities of service"),
	schema.F("wckeys", schema.Named("wckey_list", schema.StreamOf(wckey.Type)), func(a *ConfigAnswer) *schema.Stream[model.WCKey] { return &a.WCKeys }, "The workload keys"),
	schema.F("associations", schema.Named("assoc_list", schema.StreamOf(Association.Type)), func(a *ConfigAnswer) *schema.Stream[AssociationRow] { return &a.Associations }, "The associations"),
	schema.Show("instances", instanceList, func(*ConfigAnswer) []model.Instance { return nil }, "Always empty", schema.Until(V45), schema.Deprecated(V43)),
)

var instanceList = schema.Named("instance_list", schema.List(Instance.Type))

var GetConfig = declare(scope.SlurmdbRead, noParams, Endpoint{
	Method: http.MethodGet, Accounting: true, Path: "config", ID: "get_config", NoFields: true,
	Doc: "Show all accounting records", Answer: Config,
	Description: "Returns all clusters, trackable resources, accounts, users, qualities of service, workload keys and associations, including deleted ones. POST config accepts the answer as its body.",
	AnswerDoc:   "The records",
})

// ConfigBody is a request to create or change records of all kinds
// (PostConfig). The records have the same form as in a ConfigAnswer.
type ConfigBody struct {
	Clusters     []ClusterRow
	TRES         []model.TRES
	Accounts     []model.Account
	Users        []model.User
	QOS          []QOSRow
	WCKeys       []model.WCKey
	Associations []AssociationRow
}

// ConfigRequest declares the fields of a ConfigBody.
var ConfigRequest = schema.Object("openapi_slurmdbd_config_resp", func() schema.Fields[ConfigBody] {
	return append(schema.Fields[ConfigBody]{
		schema.F("clusters", schema.Named("cluster_rec_list", schema.List(withInitial(Cluster.Type, blankCluster))), func(b *ConfigBody) *[]ClusterRow { return &b.Clusters }, "The clusters"),
		schema.F("tres", schema.Named("tres_list", schema.List(TRES.Type)), func(b *ConfigBody) *[]model.TRES { return &b.TRES }, "The trackable resources"),
		schema.F("accounts", schema.Named("account_list", schema.List(Account.Type)), func(b *ConfigBody) *[]model.Account { return &b.Accounts }, "The accounts"),
		schema.F("users", schema.Named("user_list", schema.List(withInitial(User.Type, model.BlankUser))), func(b *ConfigBody) *[]model.User { return &b.Users }, "The users"),
		schema.F("qos", schema.Named("qos_list", schema.List(withInitial(QOS.Type, blankQOS))), func(b *ConfigBody) *[]QOSRow { return &b.QOS }, "The qualities of service"),
		schema.F("wckeys", schema.Named("wckey_list", schema.List(withInitial(wckey.Type, model.BlankWCKey))), func(b *ConfigBody) *[]model.WCKey { return &b.WCKeys }, "The workload keys"),
		schema.F("associations", schema.Named("assoc_list", schema.List(withInitial(Association.Type, blankAssociation))), func(b *ConfigBody) *[]AssociationRow { return &b.Associations }, "The associations"),
		schema.Show("instances", instanceList, func(*ConfigBody) []model.Instance { return nil }, "Always empty", schema.Until(V45), schema.Deprecated(V43)),
	}, unusedEnvelope[ConfigBody]()...)
})

var PostConfig = declare(scope.SlurmdbWrite, noParams, Endpoint{
	Method: http.MethodPost, Accounting: true, Path: "config", ID: "post_config",
	Doc: "Load accounting records", Request: ConfigRequest, Answer: Empty,
	Example:     `{"accounts": [{"name": "lab", "description": "Physics laboratory", "organization": "physics"}]}`,
	Description: "Creates or changes the clusters, accounts, qualities of service, users, associations and workload keys in the body, as the operations for each of them do. A new association does not get values of its own that it would inherit. The daemon makes all changes or none, except that the tables of new clusters stay. Trackable resources and deleted records in the body are ignored, with a warning.",
	RequestDoc:  "The records",
	AnswerDoc:   "Only `meta`, `errors` and `warnings`: the records now match the request",
})

package message

import (
	"strings"
	"testing"

	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// TestUnsafeTexts checks that no request to the accounting daemon can contain a
// cluster name or an id with characters that have a meaning in SQL, whatever
// the caller has checked. docs/DIFFERENCES.md has a row for each class.
func TestUnsafeTexts(t *testing.T) {
	for _, value := range []string{"1", "a`b", "a'b", "1 OR 1", "1)--", "\x00", "é"} {
		one := []string{value}
		isNumber, isName := value == "1", value == "1"
		associations, wckeys, clusters := new(Associations), new(WCKeys), new(Clusters)
		associations.Records.List = []model.Association{{Cluster: value}}
		wckeys.Records.List = []model.WCKey{{Cluster: value}}
		clusters.Records.List = []model.Cluster{{Name: value}}
		set := model.AssocSet{Clusters: one}
		for name, tt := range map[string]struct {
			body Body
			safe bool
		}{
			"jobs: cluster":        {&GetAccountingJobs{model.AccountingJobFilter{Clusters: one}}, isName},
			"jobs: user":           {&GetAccountingJobs{model.AccountingJobFilter{UserIDs: one}}, isNumber},
			"jobs: group":          {&GetAccountingJobs{model.AccountingJobFilter{GroupIDs: one}}, isNumber},
			"jobs: association":    {&GetAccountingJobs{model.AccountingJobFilter{AssocIDs: one}}, isNumber},
			"jobs: QOS":            {&GetAccountingJobs{model.AccountingJobFilter{QOS: one}}, isNumber},
			"jobs: reservation":    {&GetAccountingJobs{model.AccountingJobFilter{ReservationIDs: one}}, isNumber},
			"associations: id":     {&GetAssociations{model.AssocFilter{IDs: one}}, isNumber},
			"associations: QOS":    {&GetAssociations{model.AssocFilter{QOSIDs: one}}, isNumber},
			"associations: usual":  {&GetAssociations{model.AssocFilter{DefaultQOSIDs: one}}, isNumber},
			"associations":         {&GetAssociations{model.AssocFilter{Clusters: one}}, isName},
			"QOS: id":              {&GetQOS{model.QOSFilter{IDs: one}}, isNumber},
			"wckeys: id":           {&GetWCKeys{model.WCKeyFilter{IDs: one}}, isNumber},
			"wckeys: cluster":      {&GetWCKeys{model.WCKeyFilter{Clusters: one}}, isName},
			"clusters":             {&GetClusters{model.ClusterFilter{Names: one}}, isName},
			"instances":            {&GetInstances{model.InstanceFilter{Clusters: one}}, isName},
			"users: cluster":       {&GetUsers{model.UserFilter{Assoc: model.AssocFilter{Clusters: one}}}, isName},
			"association":          {associations, isName},
			"wckey":                {wckeys, isName},
			"cluster":              {clusters, isName},
			"users of clusters":    {&AddUsersTo{model.AddUsersWithAssocs{AssocSet: set}}, isName},
			"accounts of clusters": {&AddAccountsTo{model.AddAccountsWithAssocs{AssocSet: set}}, isName},
		} {
			for v := codec.Oldest; v <= codec.Newest; v++ {
				if (name == "instances" || strings.HasSuffix(name, " of clusters")) && v < codec.V2311 {
					continue // these releases do not have the message, and it is empty
				}
				c := codec.NewEncoder(v, nil)
				tt.body.Walk(c)
				if err := c.Err(); (err == nil) != tt.safe || err != nil && errs.KindOf(err) != errs.Invalid {
					t.Errorf("%s %q, version %v: %v", name, value, v, err)
				}
			}
		}
	}
}

package slurm

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Commands that show the records that TestAccountChanges changes.
const (
	showAccount = "sacctmgr -nP show account aNAME,bNAME,cNAME withcoord format=account,description,organization,coordinators"
	showAssocs  = "sacctmgr -nP show assoc where account=aNAME,bNAME,cNAME format=cluster,account,user,partition,share,priority," +
		"grpjobs,grpjobsaccrue,grpsubmit,grpwall,grptres,grptresmins,grptresrunmins,maxjobs,maxjobsaccrue,maxsubmit,maxwall,maxtres," +
		"maxtrespernode,maxtresmins,qos,defaultqos,parentname"
	showUsers = "sacctmgr -nP show user uNAME,vNAME,wNAME withassoc withcoord format=user,defaultaccount,defaultwckey,admin,coordinators,cluster,account,partition,qos"
	showQOS   = "sacctmgr -nP show qos qNAME,rNAME format=name,description,priority,gracetime,preempt,preemptmode,preemptexempttime,flags," +
		"usagefactor,usagethreshold,limitfactor,grptres,grpjobs,grpwall,maxtres,maxtrespu,maxwall,maxjobspu,maxsubmitpu,mintres"
	showWCKeys   = "sacctmgr -nP show wckey where wckey=kNAME,lNAME format=wckey,cluster,user"
	showClusters = "sacctmgr -nP show cluster clNAME,dlNAME format=cluster,classification,flags"
)

// comparedBefore maps the name of a change to the lists of records that
// TestAccountChanges compares before it makes this change. In each list, the
// records that were made through our gateway must be the same as those that
// were made through Slurm's gateway.
var comparedBefore = map[string][]string{
	"give it a comment":                       {"accounts", "associations", "users?with_assocs=true&with_coords=true"},
	"make a QOS that preempts an unknown one": {"qos"},
	"delete a wckey that several users have":  {"wckeys"},
	"delete a cluster without the privilege":  {"clusters"},
}

// TestAccountChanges changes records through both gateways, which use the same
// accounting daemon. After each change it compares what sacctmgr shows.
func TestAccountChanges(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("the gateway of 22.05 serves v0.0.36 to v0.0.38, none of which is served here")
	}
	m.reference(t)
	gateway := m.startAudited(t)
	token, err := m.createToken("root")
	must(t, err)
	sides := m.newSides(token)
	version := map[string]string{"24.11": "v0.0.42", "26.05": "v0.0.45"}[m.release]
	const unmodified = "theirs answers 304, which is no answer to a change"
	for _, tt := range []change{
		{name: "make accounts", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "aNAME", "description": "one", "organization": "science"}, {"name": "bNAME", "description": "two", "organization": "arts"}]}`, show: showAccount, status: 200},
		{name: "make one again", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "aNAME", "description": "one", "organization": "science"}]}`, show: showAccount, status: 200},
		{name: "change an account", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "aNAME", "description": "changed", "organization": "science"}]}`, show: showAccount, status: 200},
		{name: "make an account without the privilege", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "cNAME", "description": "x", "organization": "x"}]}`, token: m.token, show: showAccount, status: 403},
		{name: "change an account without the privilege", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "aNAME", "description": "x", "organization": "x"}]}`, token: m.token, show: showAccount, status: 403},
		{name: "make no accounts", method: "POST", path: "accounts/", body: `{"accounts": []}`, status: 200},
		{name: "make accounts with one without a name", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "cNAME", "description": "x", "organization": "x"}, {"name": "", "description": "x", "organization": "x"}]}`, show: showAccount, status: 422},
		{name: "make accounts with an unknown coordinator", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "cNAME", "description": "x", "organization": "x", "coordinators": [{"name": "nosuchuser"}]}]}`, show: showAccount, status: 404, statusReason: "theirs makes a coordinator who is no user", effectReason: "the same"},

		{name: "make accounts with associations", method: "POST", path: "accounts_association/", body: `{"association_condition": {"accounts": ["aNAME", "bNAME"], "clusters": ["lab"], "association": {"fairshare": 7, "grpjobs": {"set": true, "number": 9}}}, "account": {"description": "d", "organization": "o"}}`, show: showAssocs, status: 200},
		{name: "make them again", method: "POST", path: "accounts_association/", body: `{"association_condition": {"accounts": ["aNAME", "bNAME"], "clusters": ["lab"], "association": {"fairshare": 7}}}`, show: showAssocs, status: 200},
		{name: "make one below another", method: "POST", path: "accounts_association/", body: `{"association_condition": {"accounts": ["cNAME"], "association": {"parent": "aNAME", "maxjobs": {"set": true, "number": 3}, "grptres": [{"type": "cpu", "count": 12}]}}}`, show: showAssocs, status: 200},
		{name: "make one below an unknown account", method: "POST", path: "accounts_association/", body: `{"association_condition": {"accounts": ["dNAME"], "association": {"parent": "nosuchaccount"}}}`, show: "sacctmgr -nP show assoc where account=dNAME", status: 404},
		{name: "make one in an unknown cluster", method: "POST", path: "accounts_association/", body: `{"association_condition": {"accounts": ["dNAME"], "clusters": ["nosuchcluster"]}}`, show: "sacctmgr -nP show assoc where account=dNAME", status: 404},
		{name: "make none", method: "POST", path: "accounts_association/", body: `{"association_condition": {"accounts": []}}`, status: 422},
		{name: "make one without the privilege", method: "POST", path: "accounts_association/", body: `{"association_condition": {"accounts": ["dNAME"]}}`, token: m.token, show: "sacctmgr -nP show assoc where account=dNAME", status: 403},

		{name: "make users", method: "POST", path: "users/", body: `{"users": [{"name": "uNAME", "administrator_level": ["Operator"]}]}`, show: showUsers, status: 200},
		{name: "make users with associations", method: "POST", path: "users_association/", body: `{"association_condition": {"users": ["uNAME", "vNAME"], "accounts": ["aNAME", "bNAME"], "clusters": ["lab"], "wckeys": ["kNAME"], "association": {"fairshare": 11, "maxsubmitjobs": {"set": true, "number": 5}}}, "user": {"defaultaccount": "bNAME"}}`, show: showUsers, status: 200},
		{name: "make users' associations again", method: "POST", path: "users_association/", body: `{"association_condition": {"users": ["uNAME"], "accounts": ["aNAME"], "clusters": ["lab"]}, "user": {}}`, show: showAssocs, status: 200},
		{name: "make users of an unknown account", method: "POST", path: "users_association/", body: `{"association_condition": {"users": ["wNAME"], "accounts": ["nosuchaccount"]}, "user": {}}`, show: showUsers, status: 404, statusReason: unmodified},
		{name: "make users of no account", method: "POST", path: "users_association/", body: `{"association_condition": {"users": ["wNAME"]}, "user": {}}`, show: showUsers, status: 422},
		{name: "make users without the privilege", method: "POST", path: "users_association/", body: `{"association_condition": {"users": ["wNAME"], "accounts": ["aNAME"]}, "user": {}}`, token: m.token, show: showUsers, status: 403},
		{name: "change a user", method: "POST", path: "users/", body: `{"users": [{"name": "vNAME", "administrator_level": ["Administrator"], "default": {"account": "aNAME"}}]}`, show: showUsers, status: 200},
		{name: "change a user's default to an account that is not theirs", method: "POST", path: "users/", body: `{"users": [{"name": "vNAME", "default": {"account": "cNAME"}}]}`, show: showUsers, status: 404, statusReason: "theirs reports success and changes nothing"},
		{name: "change a user without the privilege", method: "POST", path: "users/", body: `{"users": [{"name": "vNAME", "administrator_level": ["None"]}]}`, token: m.token, show: showUsers, status: 403},
		{name: "rename a user", method: "POST", path: "users/", body: `{"users": [{"name": "wNAME", "old_name": "vNAME"}]}`, show: showUsers, status: 200},
		{name: "rename an unknown user", method: "POST", path: "users/", body: `{"users": [{"name": "xNAME", "old_name": "nosuchuser"}]}`, show: showUsers, status: 404},
		{name: "make no users", method: "POST", path: "users/", body: `{"users": []}`, status: 200},

		{name: "give an account a coordinator", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "cNAME", "description": "x", "organization": "x", "coordinators": [{"name": "uNAME"}]}]}`, show: showAccount, status: 200},
		{name: "change the account without its coordinators", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "cNAME", "description": "y", "organization": "x"}]}`, show: showAccount, status: 200, effectReason: "theirs removes coordinators that the body does not name"},
		{name: "take its coordinator away", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "cNAME", "description": "y", "organization": "x", "coordinators": []}]}`, show: showAccount, status: 200},

		{name: "make an association", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "uNAME", "partition": "debug", "shares_raw": 5, "max": {"jobs": {"active": {"set": true, "number": 4}}}}]}`, show: showAssocs, status: 200},
		{name: "change an association", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "uNAME", "partition": "debug", "shares_raw": 6, "priority": {"set": true, "number": 21}, "max": {"tres": {"total": [{"type": "cpu", "count": 8}, {"type": "gres", "name": "gpu", "count": 2}], "group": {"minutes": [{"type": "cpu", "count": 600}]}}}, "qos": ["normal", "quick"], "default": {"qos": "quick"}}]}`, show: showAssocs, status: 200},
		{name: "change one of its lists of limits", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "uNAME", "partition": "debug", "max": {"tres": {"total": [{"type": "cpu", "count": 9}], "group": {"minutes": [{"type": "cpu", "count": 600}]}}}}]}`, show: showAssocs, status: 200},
		{name: "give it a comment", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "uNAME", "partition": "debug", "comment": "c", "max": {"tres": {"total": [{"type": "cpu", "count": 8}, {"type": "gres", "name": "gpu", "count": 2}], "group": {"minutes": [{"type": "cpu", "count": 600}]}}}}]}`, show: "sacctmgr -nP show assoc where account=cNAME user=uNAME format=comment", status: 200, effectReason: "theirs ignores it"},
		{name: "make an association for all partitions", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "uNAME"}]}`, show: showAssocs, status: 200},
		{name: "make an association of an unknown account", method: "POST", path: "associations/", body: `{"associations": [{"account": "nosuchaccount", "cluster": "lab", "user": "uNAME"}]}`, show: showAssocs, status: 404, statusReason: "theirs makes it"},
		{name: "make an association of an unknown QOS", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "uNAME", "partition": "debug", "qos": ["nosuchqos"]}]}`, show: showAssocs, status: 422},
		{name: "make an association of an unknown cluster", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "nosuchcluster", "user": "uNAME"}]}`, show: showAssocs, status: 404, statusReason: "theirs reports success and makes nothing"},
		{name: "change several associations with one without a cluster", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "uNAME", "partition": "debug", "shares_raw": 99}, {"account": "cNAME", "user": "uNAME"}]}`, show: showAssocs, status: 422, statusReason: "theirs takes no cluster for one that it does not name", effectReason: "the same"},
		{name: "change an association without its limits", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "uNAME", "partition": "debug", "shares_raw": 7}]}`, show: showAssocs, status: 200, effectReason: "theirs removes the lists of limits that the body does not contain"},
		{name: "change the association back", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "uNAME", "partition": "debug", "shares_raw": 6, "max": {"tres": {"total": [{"type": "cpu", "count": 8}, {"type": "gres", "name": "gpu", "count": 2}], "group": {"minutes": [{"type": "cpu", "count": 600}]}}}}]}`, show: showAssocs, status: 200},
		{name: "change an association without the privilege", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "uNAME", "partition": "debug", "shares_raw": 98}]}`, token: m.token, show: showAssocs, status: 403},
		{name: "make no associations", method: "POST", path: "associations/", body: `{"associations": []}`, status: 200},
		{name: "delete one association of several that match", method: "DELETE", path: "association/?account=cNAME&user=uNAME", show: showAssocs, status: 422},
		{name: "delete associations without the privilege", method: "DELETE", path: "associations/?account=cNAME&user=uNAME", token: m.token, show: showAssocs, status: 403},
		{name: "delete one association", method: "DELETE", path: "association/?account=cNAME&user=uNAME&cluster=lab&partition=debug", show: showAssocs, status: 200},
		{name: "delete the association again", method: "DELETE", path: "association/?account=cNAME&user=uNAME&cluster=lab&partition=debug", show: showAssocs, status: 200},
		{name: "delete associations that are not there", method: "DELETE", path: "associations/?account=cNAME&user=wNAME", show: showAssocs, status: 200},

		{name: "make a QOS", method: "POST", path: "qos/", body: `{"qos": [{"name": "qNAME", "description": "d", "priority": {"set": true, "number": 33}, "flags": ["DENY_LIMIT", "NO_DECAY"], "usage_factor": {"set": true, "number": 2.5}, "limits": {"grace_time": 60, "max": {"wall_clock": {"per": {"job": {"set": true, "number": 90}}}, "tres": {"per": {"user": [{"type": "cpu", "count": 16}]}}, "jobs": {"active_jobs": {"per": {"user": {"set": true, "number": 7}}}}}}, "preempt": {"list": ["quick"], "mode": ["REQUEUE"]}}]}`, show: showQOS, status: 200},
		{name: "change a QOS", method: "POST", path: "qos/", body: `{"qos": [{"name": "qNAME", "description": "other", "flags": ["DENY_LIMIT"], "limits": {"max": {"wall_clock": {"per": {"job": {"set": true, "number": 100}}}}}, "preempt": {"list": ["quick", "normal"], "mode": ["CANCEL"]}}]}`, show: showQOS, status: 200},
		{name: "make a QOS that preempts an unknown one", method: "POST", path: "qos/", body: `{"qos": [{"name": "rNAME", "preempt": {"list": ["nosuchqos"]}}]}`, show: showQOS, status: 422},
		{name: "change a QOS by an unknown number", method: "POST", path: "qos/", body: `{"qos": [{"id": 4000, "description": "x"}]}`, status: 404},
		{name: "make a QOS without the privilege", method: "POST", path: "qos/", body: `{"qos": [{"name": "rNAME"}]}`, token: m.token, show: showQOS, status: 403},
		{name: "make several QOS with one without a name", method: "POST", path: "qos/", body: `{"qos": [{"name": "rNAME"}, {"description": "x"}]}`, show: showQOS, status: 422},
		{name: "make no QOS", method: "POST", path: "qos/", body: `{"qos": []}`, status: 200},
		{name: "change a QOS without its flags", method: "POST", path: "qos/", body: `{"qos": [{"name": "qNAME", "description": "third"}]}`, show: showQOS, status: 200, effectReason: "theirs clears flags and the mode of preemption that the body does not name"},
		{name: "change the QOS back", method: "POST", path: "qos/", body: `{"qos": [{"name": "qNAME", "description": "third", "flags": ["DENY_LIMIT"], "preempt": {"list": ["quick", "normal"], "mode": ["CANCEL"]}}]}`, show: showQOS, status: 200},
		{name: "delete a QOS without the privilege", method: "DELETE", path: "qos/qNAME", token: m.token, show: showQOS, status: 403},
		{name: "delete a QOS", method: "DELETE", path: "qos/qNAME", show: showQOS, status: 200},
		{name: "delete the QOS again", method: "DELETE", path: "qos/qNAME", show: showQOS, status: 200},

		{name: "make a TRES", method: "POST", path: "tres/", body: `{"TRES": [{"type": "gres", "name": "nNAME", "id": 0, "count": 0}]}`, show: "sacctmgr -nP show tres format=type,name", status: 501},

		{name: "make wckeys", method: "POST", path: "wckeys/", body: `{"wckeys": [{"name": "lNAME", "cluster": "lab", "user": "uNAME"}, {"name": "lNAME", "cluster": "lab", "user": "wNAME"}]}`, show: showWCKeys, status: 200},
		{name: "make one again", method: "POST", path: "wckeys/", body: `{"wckeys": [{"name": "lNAME", "cluster": "lab", "user": "uNAME"}]}`, show: showWCKeys, status: 200},
		{name: "make a wckey of no user", method: "POST", path: "wckeys/", body: `{"wckeys": [{"name": "lNAME", "cluster": "lab", "user": ""}]}`, show: showWCKeys, status: 422},
		{name: "make a wckey without the privilege", method: "POST", path: "wckeys/", body: `{"wckeys": [{"name": "kNAME", "cluster": "lab", "user": "alice"}]}`, token: m.token, show: showWCKeys, status: 403},
		{name: "make no wckeys", method: "POST", path: "wckeys/", body: `{"wckeys": []}`, status: 200},
		{name: "delete a wckey that several users have", method: "DELETE", path: "wckey/lNAME", show: showWCKeys, status: 200},
		{name: "delete a wckey that is not there", method: "DELETE", path: "wckey/nosuchkey", status: 200},

		{name: "make a cluster", method: "POST", path: "clusters/", body: `{"clusters": [{"name": "clNAME"}]}`, show: showClusters, status: 200},
		{name: "make it again", method: "POST", path: "clusters/", body: `{"clusters": [{"name": "clNAME"}]}`, show: showClusters, status: 200},
		{name: "make no clusters", method: "POST", path: "clusters/", body: `{"clusters": []}`, status: 422},
		{name: "make a cluster without the privilege", method: "POST", path: "clusters/", body: `{"clusters": [{"name": "dlNAME"}]}`, token: m.token, show: showClusters, status: 403},
		{name: "delete a cluster without the privilege", method: "DELETE", path: "cluster/clNAME", token: m.token, show: showClusters, status: 403},
		{name: "delete a cluster", method: "DELETE", path: "cluster/clNAME", show: showClusters, status: 200},
		{name: "delete the cluster again", method: "DELETE", path: "cluster/clNAME", show: showClusters, status: 200},

		{name: "load records", method: "POST", path: "config", body: `{"clusters": [{"name": "lab"}], "accounts": [{"name": "eNAME", "description": "e", "organization": "o"}], "users": [{"name": "yNAME"}], "associations": [{"account": "eNAME", "cluster": "lab", "user": ""}, {"account": "eNAME", "cluster": "lab", "user": "yNAME"}]}`, show: "sacctmgr -nP show assoc where account=eNAME format=cluster,account,user", status: 200, effectReason: "theirs commits nothing"},
		{name: "load records with one that is refused", method: "POST", path: "config", body: `{"accounts": [{"name": "fNAME", "description": "f", "organization": "o"}], "associations": [{"account": "fNAME", "cluster": "lab", "user": ""}, {"account": "fNAME", "cluster": "nosuchcluster", "user": ""}]}`, show: "sacctmgr -nP show account fNAME", status: 404},
		{name: "load without the privilege", method: "POST", path: "config", body: `{"accounts": [{"name": "fNAME", "description": "f", "organization": "o"}]}`, token: m.token, show: "sacctmgr -nP show account fNAME", status: 403},
		{name: "load nothing", method: "POST", path: "config", body: `{}`, status: 422},

		{name: "delete an account that is a user's default", method: "DELETE", path: "account/bNAME", show: showAccount},
		{name: "delete a user without the privilege", method: "DELETE", path: "user/uNAME", token: m.token, show: showUsers, status: 403},
		{name: "delete a user", method: "DELETE", path: "user/uNAME", show: showUsers, status: 200},
		{name: "delete the user again", method: "DELETE", path: "user/uNAME", show: showUsers, status: 200},
		{name: "make a deleted user again", method: "POST", path: "users/", body: `{"users": [{"name": "uNAME"}]}`, show: showUsers, status: 200},
		{name: "delete another user", method: "DELETE", path: "user/wNAME", show: showUsers, status: 200},
		{name: "delete an account without the privilege", method: "DELETE", path: "account/bNAME", token: m.token, show: showAccount, status: 403},
		{name: "delete an account", method: "DELETE", path: "account/bNAME", show: showAccount, status: 200},
		{name: "delete the account again", method: "DELETE", path: "account/bNAME", show: showAccount, status: 200},
		{name: "delete an account with one below", method: "DELETE", path: "account/aNAME", show: showAccount},
	} {
		tt.path = "/slurmdb/" + version + "/" + tt.path
		if tt.name == "delete a wckey that several users have" { // by now, most kinds of records exist
			t.Run("every GET", func(t *testing.T) { sides.compareGETs(t) })
		}
		if lists := comparedBefore[tt.name]; lists != nil {
			t.Run("records before "+tt.name, func(t *testing.T) { sides.compareMade(t, version, "slurmdb/", lists...) })
		}
		t.Run(tt.name, func(t *testing.T) { sides.apply(t, tt) })
	}
	if m.release == "26.05" {
		t.Run("jobs", func(t *testing.T) { m.changeRecordedJob(t, sides) })
	}
	defer func() { sides.audit(t, gateway, "accounting") }()
	t.Run("delete all associations", func(t *testing.T) { // only through our gateway, because slurmrestd would delete them
		before := m.run(t, "root", "sacctmgr", "-nP", "show", "assoc")
		for _, path := range []string{"associations/", "associations/?user=", "association/"} {
			a, err := sendRequest(m.client(gatewaySocket), "DELETE", "/slurmdb/"+version+"/"+path, "", "X-SLURM-USER-TOKEN: "+token)
			must(t, err)
			if a.status != http.StatusUnprocessableEntity {
				t.Errorf("%s: status %d: %s", path, a.status, remarks(a.body))
			}
		}
		if after := m.run(t, "root", "sacctmgr", "-nP", "show", "assoc"); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}
	})
	t.Run("changes by others", m.checkForeignChanges)
	t.Run("lists", func(t *testing.T) { m.compareLists(t, version) })
}

// changeRecordedJob changes a recorded job through both gateways.
func (m *machine) changeRecordedJob(t *testing.T, sides *sides) {
	bob, err := m.createToken("bob")
	must(t, err)
	job := m.run(t, "alice", "sbatch", "--parsable", "-o", "/dev/null", "--wrap=true")
	const show = "sacct -nPX -j JOB -o comment,admincomment,systemcomment,extra,wckey"
	eventually(t, "the job is recorded as ended", func() bool {
		return strings.HasPrefix(m.run(t, "root", "sacct", "-nPX", "-j", job, "-o", "state"), "COMPLETED")
	})
	sides.addWords("JOB", job)
	for _, tt := range []change{
		{name: "change a job", method: "POST", path: "job/JOB", body: `{"comment": {"job": "cNAME", "administrator": "a", "system": "s"}, "extra": "e"}`, show: show, status: 200},
		{name: "change its exit code", method: "POST", path: "job/JOB", body: `{"derived_exit_code": {"return_code": 3}}`, show: "sacct -nPX -j JOB -o derivedexitcode", status: 200, effectReason: "theirs takes the number for a signal's"},
		{name: "change one's own job", method: "POST", path: "job/JOB", body: `{"comment": {"job": "mine, NAME"}}`, token: m.token, show: show, status: 200},
		{name: "change another's job", method: "POST", path: "job/JOB", body: `{"comment": {"job": "not mine"}}`, token: bob, status: 403},
		{name: "change jobs", method: "POST", path: "jobs/", body: `{"job_id_list": ["JOB"], "job_rec": {"comment": {"job": "list, NAME"}}}`, show: show, status: 200},
		{name: "change nothing of a job", method: "POST", path: "job/JOB", body: `{}`, status: 422, statusReason: "theirs answers 304, which is no answer to a change"},
		{name: "change an unknown job", method: "POST", path: "job/4000000", body: `{"comment": {"job": "c"}}`, status: 404, statusReason: "theirs answers 304, which is no answer to a change"},
	} {
		tt.path = "/slurmdb/v0.0.45/" + tt.path
		t.Run(tt.name, func(t *testing.T) { sides.apply(t, tt) })
	}
}

// checkForeignChanges changes records with sacctmgr. Each worker must show the
// changes at once, even if it has already requested the records in the same
// session with the accounting daemon.
func (m *machine) checkForeignChanges(t *testing.T) {
	for i := range 4 {
		text := fmt.Sprint("changed", i)
		m.run(t, "root", "sacctmgr", "-i", "-Q", "modify", "account", "physics", "set", "description="+text)
		for range 4 {
			a, err := sendRequest(m.client(gatewaySocket), "GET", "/slurmdb/v0.0.42/account/physics", "", "X-SLURM-USER-TOKEN: "+m.admin)
			must(t, err)
			if !strings.Contains(string(a.body), `"`+text+`"`) {
				t.Fatalf("%s is not shown: %s", text, a.body)
			}
		}
	}
}

// compareLists compares the lists of records from both gateways.
func (m *machine) compareLists(t *testing.T, version string) {
	excepted := readExceptions(t)
	for _, list := range []string{"accounts", "associations", "clusters", "config", "qos", "tres", "users", "wckeys"} {
		path := "/slurmdb/" + version + "/" + list
		found, n := m.compareAnswers(t, fields{}, m.client(referenceSocket), m.client(gatewaySocket), m.admin, path)
		for _, d := range found {
			if !excepted.allowed(m.release, version, "/slurmdb/"+list, d) {
				t.Errorf("%s: %v", path, d)
			}
		}
		if n < 10 {
			t.Errorf("%s: only %d fields compared", path, n)
		}
	}
}

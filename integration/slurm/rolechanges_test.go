package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// roleRecords are commands that make the records that TestRoles changes. The
// account aNAME has members and a coordinator, and cNAME no coordinator.
const roleRecords = `add account aNAME description=a organization=o fairshare=4 grptres=cpu=77,mem=1000
add account bNAME parent=aNAME description=b organization=o
add account cNAME description=c organization=o fairshare=3
add user uNAME account=aNAME fairshare=7 maxjobs=5 qos+=quick
add user wNAME account=cNAME adminlevel=operator
add user vNAME account=aNAME,bNAME adminlevel=administrator
add user uNAME wckey=kNAME
add user bob account=aNAME
add coordinator account=aNAME names=wNAME
add qos qNAME priority=4
add account gNAME parent=aNAME description=g organization=o
add user tNAME account=gNAME qos+=quick`

// Commands that show records of TestRoles.
const (
	roleAccount = "sacctmgr -nP show account withcoord format=account,description,organization,coordinators where name="
	roleAssoc   = "sacctmgr -nP show assoc format=account,user,share,grptres,maxjobs,qos,defaultqos,parentname where account="
	roleUser    = "sacctmgr -nP show user withcoord format=user,defaultaccount,admin,coordinators where name="
	roleQOS     = "sacctmgr -nP show qos format=name,description,priority where name="
	roleJob     = "squeue -h -t all -o %k|%a|%l|%y|%q|%r -j JJ"
)

// roleChanges are the changes that TestRoles makes with each token.
var roleChanges = []change{
	{name: "change an account", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "aNAME", "description": "changed", "organization": "o2", "coordinators": [{"name": "wNAME"}]}]}`, show: roleAccount + "aNAME"},
	{name: "change the account of another", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "cNAME", "description": "changed", "organization": "o2", "coordinators": []}]}`, show: roleAccount + "cNAME"},
	{name: "make an account", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "dNAME", "description": "d", "organization": "o"}]}`, show: roleAccount + "dNAME"},
	{name: "make a coordinator", method: "POST", path: "accounts/", body: `{"accounts": [{"name": "bNAME", "description": "b", "organization": "o", "coordinators": [{"name": "vNAME"}]}]}`, show: roleAccount + "bNAME"},
	{name: "make an account below one", method: "POST", path: "accounts_association/", body: `{"association_condition": {"accounts": ["eNAME"], "association": {"parent": "aNAME", "fairshare": 5}}, "account": {"description": "e", "organization": "e"}}`, show: roleAssoc + "eNAME"},
	{name: "make an account below that of another", method: "POST", path: "accounts_association/", body: `{"association_condition": {"accounts": ["fNAME"], "association": {"parent": "cNAME"}}, "account": {"description": "f", "organization": "f"}}`, show: roleAssoc + "fNAME"},
	{name: "make a user", method: "POST", path: "users/", body: `{"users": [{"name": "xNAME"}]}`, show: roleUser + "xNAME"},
	{name: "make an operator", method: "POST", path: "users/", body: `{"users": [{"name": "uNAME", "administrator_level": ["Operator"]}]}`, show: roleUser + "uNAME"},
	{name: "name an operator", method: "POST", path: "users/", body: `{"users": [{"name": "wNAME"}]}`, show: roleUser + "wNAME"},
	{name: "take a level away", method: "POST", path: "users/", body: `{"users": [{"name": "wNAME", "administrator_level": ["None"]}]}`, show: roleUser + "wNAME"},
	{name: "make a member", method: "POST", path: "users_association/", body: `{"association_condition": {"users": ["yNAME"], "accounts": ["aNAME"], "association": {"fairshare": 11}}, "user": {}}`, show: roleAssoc + "aNAME"},
	{name: "make another's member a member", method: "POST", path: "users_association/", body: `{"association_condition": {"users": ["wNAME"], "accounts": ["aNAME"], "association": {"fairshare": 11}}, "user": {}}`, show: roleUser + "wNAME"},
	{name: "make a member of another's account", method: "POST", path: "users_association/", body: `{"association_condition": {"users": ["uNAME"], "accounts": ["cNAME"]}, "user": {}}`, show: roleAssoc + "cNAME"},
	{name: "change the QOS of a member", method: "POST", path: "associations/", body: `{"associations": [{"account": "aNAME", "cluster": "lab", "user": "uNAME", "qos": ["normal"]}]}`, show: roleAssoc + "aNAME user=uNAME"},
	{name: "change the shares of a member", method: "POST", path: "associations/", body: `{"associations": [{"account": "gNAME", "cluster": "lab", "user": "tNAME", "shares_raw": 9}]}`, show: roleAssoc + "gNAME"},
	{name: "change the shares of an account", method: "POST", path: "associations/", body: `{"associations": [{"account": "bNAME", "cluster": "lab", "user": "", "shares_raw": 19}]}`, show: roleAssoc + "bNAME"},
	{name: "change the shares of another's account", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "", "shares_raw": 29}]}`, show: roleAssoc + "cNAME"},
	{name: "change the shares of another's member", method: "POST", path: "associations/", body: `{"associations": [{"account": "cNAME", "cluster": "lab", "user": "wNAME", "shares_raw": 29}]}`, show: roleAssoc + "cNAME"},
	{name: "make a member with an association", method: "POST", path: "associations/", body: `{"associations": [{"account": "bNAME", "cluster": "lab", "user": "uNAME", "shares_raw": 6}]}`, show: roleAssoc + "bNAME"},
	{name: "move an account below that of another", method: "POST", path: "associations/", body: `{"associations": [{"account": "bNAME", "cluster": "lab", "user": "", "parent_account": "cNAME"}]}`, show: roleAssoc + "bNAME"},
	{name: "change a QOS", method: "POST", path: "qos/", body: `{"qos": [{"name": "qNAME", "description": "changed"}]}`, show: roleQOS + "qNAME"},
	{name: "make a QOS", method: "POST", path: "qos/", body: `{"qos": [{"name": "rNAME", "description": "r"}]}`, show: roleQOS + "rNAME"},
	{name: "make a wckey", method: "POST", path: "wckeys/", body: `{"wckeys": [{"name": "lNAME", "cluster": "lab", "user": "uNAME"}]}`, show: "sacctmgr -nP show wckey format=wckey,user where wckey=lNAME"},

	{name: "comment on a job", method: "POST", path: "/slurm/job/JJ", body: `{"comment": "theirs"}`, show: roleJob},
	{name: "change a job's time limit", method: "POST", path: "/slurm/job/JJ", body: `{"time_limit": {"set": true, "number": 9}}`, show: roleJob},
	{name: "prefer a job", method: "POST", path: "/slurm/job/JJ", body: `{"nice": -5}`, show: roleJob},
	{name: "move a job to another account", method: "POST", path: "/slurm/job/JJ", body: `{"account": "bNAME"}`, show: roleJob},
	{name: "move a job to a partition of a group", method: "POST", path: "/slurm/job/JJ", body: `{"partition": "hidden"}`, show: roleJob},
	{name: "cancel a job", method: "DELETE", path: "/slurm/job/JJ", show: "squeue -h -t all -o %T -j JJ"},
	{name: "make a reservation", method: "POST", path: "/slurm/reservation", body: `{"name": "rNAME", "start_time": 1900000000, "duration": 60, "users": ["alice"], "node_list": ["n02"], "flags": ["IGNORE_JOBS", "OVERLAP"]}`, show: "sh /tmp/reservation rNAME"},
	{name: "change a reservation", method: "POST", path: "/slurm/reservation", body: `{"name": "rNAME", "comment": "c"}`, show: "sh /tmp/reservation rNAME"},
	{name: "delete a reservation", method: "DELETE", path: "/slurm/reservation/rNAME", show: "sh /tmp/reservation rNAME"},
	{name: "change a node", method: "POST", path: "/slurm/node/n02", body: `{"comment": "cNAME"}`, show: "scontrol show node n02"},

	{name: "delete a member", method: "DELETE", path: "association/?account=aNAME&user=vNAME&cluster=lab", show: roleAssoc + "aNAME"},
	{name: "delete another's member", method: "DELETE", path: "associations/?account=cNAME&user=wNAME", show: roleAssoc + "cNAME"},
	{name: "delete a wckey", method: "DELETE", path: "wckey/kNAME", show: "sacctmgr -nP show wckey format=wckey,user where wckey=kNAME"},
	{name: "delete a QOS", method: "DELETE", path: "qos/qNAME", show: roleQOS + "qNAME"},
	{name: "delete an operator", method: "DELETE", path: "user/wNAME", show: roleUser + "wNAME"},
	{name: "delete an administrator", method: "DELETE", path: "user/vNAME", show: roleUser + "vNAME"},
	{name: "delete an account", method: "DELETE", path: "account/bNAME", show: roleAccount + "bNAME"},
	{name: "delete another's account", method: "DELETE", path: "account/cNAME", show: roleAccount + "cNAME"},
	{name: "delete all members", method: "DELETE", path: "associations/?account=aNAME", show: roleAssoc + "aNAME"},
}

// roleDifferences are the reasons why the statuses and the effects of changes
// differ, by user, run and change.
var roleDifferences = map[string]struct{ status, effect string }{
	"mail private: cancel a job":   {ignored, ""},
	"bob open: name an operator":   {nothingChanged, ""},
	"alice open: name an operator": {nothingChanged, ""},

	"alice open: make a coordinator":               {"theirs changes the account, too, which only operators may", "the same"},
	"alice open: delete an administrator":          {"", "the coordinator that only ours has made is still there"},
	"alice open: delete an account":                {"", "the same"},
	"alice open: delete another's member":          {"theirs answers 200 and removes nothing", ""},
	"alice private: change the account of another": {hidden, "theirs overwrites a description that is hidden from the user"},
	"alice open: change the shares of a member":    {beyondQOS, beyondQOS},
	"alice private: change the shares of a member": {beyondQOS, beyondQOS},
	"alice private: make an account":               {hidden, "the same"},
	"alice private: make a user":                   {hidden, "the same"},
	"alice private: name an operator":              {hidden, ""},
	"alice private: delete another's account":      {"", "theirs has overwritten the description before"},
}

// Reasons in roleDifferences.
const (
	beyondQOS      = "theirs refuses a coordinator's change of a member with a QOS that the account lacks"
	ignored        = "theirs answers 200 to a signal that slurmctld does not send"
	nothingChanged = "ours sends no change that changes nothing"
	hidden         = "ours does not add a record that may exist and be hidden"
)

// TestRoles makes changes through both gateways as users of each kind. Both must
// permit and deny the same, and change the same. In the second run PrivateData
// hides records from the user who changes them: none may be overwritten. At the
// end it compares what each of the users sees.
func TestRoles(t *testing.T) {
	m := freshCluster(t)
	if m.release == "22.05" {
		t.Skip("the gateway of 22.05 serves v0.0.36 to v0.0.38, none of which is served here")
	}
	tokens := m.addRoles(t)
	m.reference(t)
	m.gateway(t, "-u", "nobody", "-g", "nogroup")
	version := m.newestVersion()
	must(t, os.WriteFile(filepath.Join(m.root, "tmp/reservation"), []byte("scontrol -a -o show reservation $1 || true\n"), 0o644))
	used := map[string]bool{}
	jobs = map[string]string{"array": "4000000"}
	for _, run := range []struct {
		private string
		users   []string
	}{{"open", []string{"alice", "bob", "games"}}, {"private", []string{"alice", "mail"}}} {
		private := run.private
		if private == "private" {
			m.configure(t, privateData)
		}
		for _, user := range run.users {
			token := tokens[user]
			t.Run(user+" "+private, func(t *testing.T) {
				s := m.newSides(token)
				name := user + private
				s.addWords("ROLE", name)
				for i, side := range []string{name + "of0", name + "of1"} {
					m.makeRoleRecords(t, side, user)
					out := m.run(t, "bob", "sbatch", "--parsable", "-H", "-A", "a"+side, "-o", "/dev/null", "--comment=mine", "--wrap=true")
					jobs[side] = strings.TrimSpace(out[strings.LastIndex(out, "\n")+1:])
					s.sideWords[i] = append(s.sideWords[i], "JJ", jobs[side])
				}
				for _, ch := range roleChanges {
					for _, text := range []*string{&ch.path, &ch.body, &ch.show} {
						*text = strings.ReplaceAll(*text, "NAME", "ROLENAME")
					}
					if rest, ok := strings.CutPrefix(ch.path, "/slurm/"); ok {
						ch.path = "/slurm/" + version + "/" + rest
					} else {
						ch.path = "/slurmdb/" + version + "/" + ch.path
					}
					key := user + " " + private + ": " + ch.name
					if d, ok := roleDifferences[key]; ok {
						ch.statusReason, ch.effectReason, used[key] = d.status, d.effect, true
					}
					t.Run(ch.name, func(t *testing.T) { s.apply(t, ch) })
				}
			})
		}
	}
	t.Run("every GET", func(t *testing.T) {
		m.attempt(t, "root", "scontrol update NodeName=n02 InstanceId=i-0815 InstanceType=large")
		m.run(t, "root", strings.Fields("scontrol create reservation ReservationName=upgrade StartTime=now+3days Duration=60 Nodes=n02 Users=alice")...)
		m.compareGETs(t, readExceptions(t), func(v, request string) map[string]string {
			if v != version || strings.Contains(request, "?") {
				return nil
			}
			return tokens
		})
	})
	for key := range roleDifferences {
		if !used[key] {
			t.Errorf("there is no change %q", key)
		}
	}
}

// makeRoleRecords makes the records of roleRecords with names that end with
// side. The user alice coordinates one of the accounts.
func (m *machine) makeRoleRecords(t *testing.T, side, user string) {
	t.Helper()
	commands := roleRecords
	if user == "alice" {
		commands += "\nadd coordinator account=aNAME names=alice"
	}
	for line := range strings.Lines(strings.ReplaceAll(commands, "NAME", side)) {
		m.run(t, "root", append([]string{"sacctmgr", "-i", "-Q"}, strings.Fields(line)...)...)
	}
}

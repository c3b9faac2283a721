package message

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"schedrestd/model"
	"schedrestd/rpc/codec"
)

// TestLost tests which fields of a change an older protocol version loses.
func TestLost(t *testing.T) {
	topo := &PartitionUpdate{}
	topo.Name, topo.Flags = "p", 1<<16
	hidden := &PartitionUpdate{}
	hidden.Name, hidden.Flags = "p", 1<<15
	topology := &PartitionUpdate{}
	topology.Topology = "tree"
	node := &NodeUpdate{}
	node.Topology, node.Comment = "t:s1", "c"
	reason := &NodeUpdate{}
	reason.ReasonUID, reason.ReasonUser = model.Some[uint32](7), "alice"
	noCPUs := &PartitionUpdate{}
	noCPUs.MaxCPUsPerSocket = model.Some[uint32](0)
	unchangedMemory := model.JobDesc{MemUpdateDelay: model.Some[uint16](0), MemUpdateMargin: model.Some[uint16](0)}
	emptied := &ReservationUpdate{}
	emptied.Comment = model.Emptied
	user, association, qos := &ModifyUsers{Record: model.BlankUser()}, &ModifyAssociations{Record: model.BlankAssociation()}, &ModifyQOS{Record: model.BlankQOS()}
	defaultQOS := &ModifyUsers{Record: model.BlankUser()}
	defaultQOS.Record.DefaultQOSID = 7
	comment := &ModifyAssociations{Record: model.BlankAssociation()}
	comment.Record.Comment = model.SetText("c")
	newAssociations := &Associations{}
	newAssociations.Records.List = []model.Association{model.BlankAssociation(), comment.Record}
	for i := range newAssociations.Records.List {
		newAssociations.Records.List[i].Comment = model.Emptied
	}
	flags := &ModifyAssociations{Record: model.BlankAssociation()}
	flags.Record.Flags = 1 << 20
	newUsers := &Users{}
	newUsers.Records.List = []model.User{model.BlankUser(), defaultQOS.Record}
	usersTo := &AddUsersTo{model.AddUsersWithAssocs{AssocSet: model.AssocSet{Assoc: model.BlankAssociation()}, User: model.BlankUser()}}
	usersTo.Assoc.DefaultQOSID = 7
	usersToQOS := &AddUsersTo{usersTo.AddUsersWithAssocs}
	usersToQOS.User.DefaultQOSID = 8
	for _, tt := range []struct {
		name string
		v    codec.Version
		body Body
		want []string
	}{
		{"nothing", codec.V2205, &NodeUpdate{}, nil},
		{"a flag beyond 16 bits", codec.V2311, topo, []string{"flags"}},
		{"in a version with 32 bits", codec.V2405, topo, nil},
		{"a flag of 16 bits", codec.V2205, hidden, nil},
		{"a topology", codec.V2411, topology, []string{"topology_name"}},
		{"in a version that has it", codec.V2505, topology, nil},
		{"one of two fields", codec.V2411, node, []string{"topology_str"}},
		{"an emptied text", codec.V2205, emptied, nil},
		{"a number that is 0", codec.V2205, noCPUs, []string{"max_cpus_per_socket"}},
		{"memory of two new jobs", codec.V2411, &JobDescs{Jobs: []model.JobDesc{unchangedMemory, unchangedMemory}}, nil},
		{"memory of one of two jobs", codec.V2411, &JobDescs{Jobs: []model.JobDesc{unchangedMemory, {MemUpdateDelay: model.Some[uint16](5)}}}, []string{"mem_update_delay"}},
		{"a field that newer versions lack", codec.V2411, &SubmitRequest{Desc: model.JobDesc{PowerFlags: model.Some[uint8](1)}}, []string{"power_flags"}},
		{"a user that newer controllers set", codec.V2411, reason, nil},
		{"a field that is never sent", codec.V2205, reason, nil},
		{"a message without fields", codec.V2205, Empty{}, nil},
		{"memory of a new job", codec.V2411, &SubmitRequest{Desc: unchangedMemory}, nil},
		{"memory that is reduced", codec.V2411, &SubmitRequest{Desc: model.JobDesc{MemUpdateDelay: model.Some[uint16](5)}}, []string{"mem_update_delay"}},
		{"a user without changes", codec.V2205, user, nil},
		{"an association without changes", codec.V2205, association, nil},
		{"a QOS without changes", codec.V2205, qos, nil},
		{"a user's default QOS", codec.V2411, defaultQOS, []string{"def_qos_id"}},
		{"an association's comment", codec.V2205, comment, []string{"comment"}},
		{"a new association without a comment", codec.V2205, newAssociations, nil},
		{"a flag of an association beyond 16 bits", codec.V2311, flags, []string{"flags"}},
		{"a field with the name of one that is not sent", codec.V2411, usersTo, nil},
		{"a field that is not sent, with the name of another", codec.V2411, usersToQOS, []string{"def_qos_id"}},
		{"one of several new users", codec.V2411, newUsers, []string{"def_qos_id"}},
	} {
		got, err := Lost(tt.v, tt.body)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, %v, want %q", tt.name, got, err, tt.want)
		}
	}
}

// TestNothingLostInOwnVersion checks that no value is lost in the version for
// which it was made, whatever the value.
func TestNothingLostInOwnVersion(t *testing.T) {
	for _, name := range []string{"SubmitRequest", "JobDescs", "NodeUpdate", "PartitionUpdate", "ReservationUpdate", "RequeueRequest", "KillJob",
		"ModifyAccounts", "ModifyAssociations", "ModifyQOS", "ModifyUsers", "AddAccountsTo", "AddUsersTo", "Accounts", "Associations", "QOSList", "Users", "WCKeys"} {
		for v := codec.Oldest; v <= codec.Newest; v++ {
			for seed := range uint64(20) {
				body := messages[name]()
				body.Walk(codec.NewFiller(v, rand.New(rand.NewPCG(seed, uint64(v)))))
				if lost, err := Lost(v, body); err != nil || len(lost) > 0 {
					t.Fatalf("%s in protocol %d: lost %q, %v: %s", name, v, lost, err, cmp.Diff(nil, body))
				}
			}
		}
	}
}

// TestOldTRES checks what controllers before 23.11 get: their names of trackable
// resources, and no value of extra, which controllers of 22.05 free twice.
func TestOldTRES(t *testing.T) {
	desc := model.JobDesc{Extra: "some", TRESPerJob: "gres/gpu:a:2,gres/gpu", TRESPerNode: "gres/gpu:1,license/x", TRESBind: "gres/gpu:single:1"}
	for _, tt := range []struct {
		version                 codec.Version
		extra, job, node, bound model.Text
	}{
		{codec.V2205, "", "gres:gpu:a:2,gres:gpu", "gres:gpu:1,license/x", "gpu:single:1"},
		{codec.V2302, desc.Extra, "gres:gpu:a:2,gres:gpu", "gres:gpu:1,license/x", "gpu:single:1"},
		{codec.V2311, desc.Extra, desc.TRESPerJob, desc.TRESPerNode, desc.TRESBind},
	} {
		var got SubmitRequest
		if err := recode(tt.version, &SubmitRequest{Desc: desc}, &got, nil); err != nil {
			t.Fatal(err)
		}
		if d := got.Desc; d.Extra != tt.extra || d.TRESPerJob != tt.job || d.TRESPerNode != tt.node || d.TRESBind != tt.bound {
			t.Errorf("%v: %q, %q, %q, %q", tt.version.Release(), d.Extra, d.TRESPerJob, d.TRESPerNode, d.TRESBind)
		}
	}
}

package slurm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"schedrestd/api"
)

// A show lists objects, for example with scontrol. Each object is a map of its
// fields.
type show struct {
	label  string
	kind   string // word for the objects in commands and paths
	read   func(c *changeForms) []shown
	key    string         // field that names the object
	id     string         // field that identifies an object whose name may change
	ignore *regexp.Regexp // fields that differ between objects that were made in the same way
	remove func(c *changeForms, objects []shown)
	last   bool // remove the objects that the other shows have left
}

// shown is an object as a show lists it.
type shown map[string]string

// list runs a command that lists objects. If a request has ended a daemon, but
// so late that send did not notice it, list starts the daemon again.
func (c *changeForms) list(args ...string) string {
	c.t.Helper()
	out, err := c.m.try("root", args...)
	if err != nil && c.restartEnded() {
		c.t.Log("a daemon of Slurm has ended late")
		out, err = c.m.try("root", args...)
	}
	must(c.t, err)
	return out
}

// scontrol lists the objects of a kind. The scontrol and the slurmrestd of
// 24.11 end with a segmentation fault when they show certain jobs, and then say
// nothing of the other ones. So scontrol asks for each job alone, says of these
// jobs that they can't be shown, and removes them.
func (c *changeForms) scontrol(kind string) string {
	c.t.Helper()
	out, err := c.m.try("root", "scontrol", "-a", "-o", "show", kind)
	if err == nil {
		return out
	}
	if kind != "job" || !strings.Contains(err.Error(), "segmentation fault") {
		return c.list("scontrol", "-a", "-o", "show", kind)
	}
	var b strings.Builder
	for id := range strings.FieldsSeq(c.list("squeue", "-a", "-h", "-t", "all", "-o", "%A")) {
		out, err := c.m.try("root", "scontrol", "-a", "-o", "show", kind, id)
		switch {
		case err == nil:
			fmt.Fprintln(&b, out)
		case strings.Contains(err.Error(), "segmentation fault"):
			fmt.Fprintf(&b, "JobId=%s ScontrolEnds=segmentation fault\n", id)
			c.m.try("root", "scancel", id)
		}
	}
	eventually(c.t, "the controller has forgotten the jobs that end scontrol", func() bool {
		_, err := c.m.try("root", "scontrol", "-a", "-o", "show", kind)
		return err == nil
	})
	return b.String()
}

// dump lists everything that the target's shows list.
func (c *changeForms) dump(tg *target) map[string][]shown {
	c.t.Helper()
	d := map[string][]shown{}
	for _, s := range tg.shows {
		d[s.label] = s.read(c)
	}
	return d
}

// owner returns the name of the trial's object to which a shown object belongs:
// "" for none, and "several" for an object that mentions several of them.
func (c *changeForms) owner(s show, o shown) string {
	if name := c.ids[o[s.id]]; s.id != "" && name != "" {
		return name
	}
	owner := ""
	for _, value := range o {
		for _, name := range objectName.FindAllString(value, -1) {
			if owner != "" && owner != name {
				return "several"
			}
			owner = name
		}
	}
	return owner
}

// stable returns an object without the fields that differ between objects that
// were made in the same way.
func (c *changeForms) stable(s show, o shown, name string) shown {
	n := shown{}
	for field, value := range o {
		if s.ignore != nil && s.ignore.MatchString(field) {
			continue
		}
		if name != "" {
			value = strings.ReplaceAll(value, name, "NAME")
		}
		if strings.HasPrefix(name, "a") && value == sideNodes[0] || strings.HasPrefix(name, "b") && value == sideNodes[1] {
			value = "NODE"
		}
		if s.id != "" && field == s.id {
			continue
		}
		if s.id != "" { // the default name of a job's output
			value = strings.ReplaceAll(value, "slurm-"+o[s.id], "slurm-OWNJOB")
		}
		n[field] = value
	}
	return n
}

// byOwner sorts the objects of a dump by their owners. The others are under "".
func (c *changeForms) byOwner(tg *target, dump map[string][]shown) map[string]map[string][]shown {
	list := map[string]map[string][]shown{}
	for _, s := range tg.shows {
		for _, o := range dump[s.label] {
			name := c.owner(s, o)
			if name == "several" {
				continue
			}
			if list[name] == nil {
				list[name] = map[string][]shown{}
			}
			list[name][s.label] = append(list[name][s.label], c.stable(s, o, name))
		}
	}
	return list
}

func (o shown) text() string {
	var b strings.Builder
	for _, field := range slices.Sorted(maps.Keys(o)) {
		fmt.Fprintf(&b, "%s=%s|", field, o[field])
	}
	return b.String()
}

// texts returns objects as sorted texts.
func texts(objects map[string][]shown) string {
	var list []string
	for label, objects := range objects {
		for _, o := range objects {
			list = append(list, label+": "+o.text())
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// Columns of sacctmgr.
const assocColumns = "cluster,account,user,partition,share,priority,grpjobs,grpjobsaccrue,grpsubmit,grpwall,grptres,grptresmins,grptresrunmins,maxjobs,maxjobsaccrue,maxsubmit,maxwall,maxtres," +
	"maxtrespernode,maxtresmins,maxtresrunmins,minpriothresh,qos,defaultqos,parentname,comment,flags"

var (
	shownAccounts = sacctmgr("account withcoord", "account,description,organization,coordinators,flags", "Account")
	shownUsers    = sacctmgr("user", "user,defaultaccount,defaultwckey,admin", "User")
	shownCoords   = sacctmgr("user withcoord", "user,coordinators", "")
	shownAssocs   = sacctmgr("assoc", assocColumns, "")
	shownWCKeys   = sacctmgr("wckey", "wckey,cluster,user", "")

	showsAccounts     = []show{shownUsers, shownAccounts, shownAssocs, listedBy(0, "/slurmdb/accounts/?COORDINATORS=true", "accounts"), listedBy(1, "/slurmdb/accounts/?COORDINATORS=true", "accounts")}
	showsUsers        = []show{shownUsers, shownAssocs, shownCoords, shownWCKeys, listedBy(0, "/slurmdb/users/?with_assocs=true&with_coords=true&with_wckeys=true", "users"), listedBy(1, "/slurmdb/users/?with_assocs=true&with_coords=true&with_wckeys=true", "users")}
	showsAssociations = []show{shownUsers, shownAccounts, shownAssocs, listedBy(0, "/slurmdb/associations/", "associations"), listedBy(1, "/slurmdb/associations/", "associations")}
)

func withIgnored(s show, pattern string) show {
	s.ignore = regexp.MustCompile(`(?i)` + pattern)
	return s
}

// settled returns a show of nodes without the fields of the cluster's own nodes
// that change while the controller tries to reach them.
func settled(s show) show {
	read := s.read
	s.read = func(c *changeForms) []shown {
		list := read(c)
		for _, o := range list {
			if !objectName.MatchString(o["NodeName"] + o["name"]) {
				maps.DeleteFunc(o, func(field, _ string) bool { return reachability.MatchString(field) })
			}
		}
		return list
	}
	return s
}

var reachability = regexp.MustCompile(`(?i)^(state.*|arch.*|os|operating_system|version)$`)

// endedJob matches the states of jobs that have ended.
var endedJob = regexp.MustCompile(`CANCELLED|COMPLETED|COMPLETING|FAILED|TIMEOUT|REVOKED`)

// schedulerFlag matches the flags of a job that the controller sets or removes
// by itself: when the scheduler looks at the job, or when slurmdbd has stored
// its script.
var schedulerFlag = regexp.MustCompile(`\b(SAVE_BATCH_SCRIPT|DEPENDENT|BACKFILL_ATTEMPTED|SCHEDULING_ATTEMPTED|TESTING_\w+|ACCRUE_COUNT_CLEARED|JOB_ACCRUE_TIME_RESET|TOP_PRIORITY_JOB|PARTITION_ASSIGNED)\b(, )?|\[\]`)

// changingJobFields are the fields of a job that its number and the scheduler
// determine.
const changingJobFields = `^(LastSchedEval|Reason|state_reason|state_description|ArrayJobId|array_job_id.*|Scheduler|job_id|step_id\.job_id.*|step_id\.sluid|association_id|last_sched_evaluation.*|het_job_id\..*|sluid|priority_by_partition.*)$`

// jobsOf returns a show of the jobs in a list that have not ended.
func jobsOf(s show) show {
	read := s.read
	s.id, s.ignore = "job_id", regexp.MustCompile(changingJobFields)
	s.read = func(c *changeForms) []shown {
		list := slices.DeleteFunc(read(c), func(o shown) bool { return endedJob.MatchString(o["job_state"] + o["job_state[]"]) })
		for _, o := range list {
			o["flags[]"] = strings.TrimSuffix(schedulerFlag.ReplaceAllString(o["flags[]"], ""), ", ")
		}
		return list
	}
	return s
}

func shownJobs() show {
	s := shownBy("job", "JobId", changingJobFields, "")
	read := s.read
	s.id = "JobId"
	s.read = func(c *changeForms) []shown {
		return slices.DeleteFunc(read(c), func(o shown) bool { return endedJob.MatchString(o["JobState"]) })
	}
	s.remove = func(c *changeForms, objects []shown) {
		args := []string{"scancel"}
		for _, o := range objects {
			args = append(args, o["JobId"])
		}
		c.m.try("root", args...)
	}
	return s
}

// restoringDefault returns a show of partitions that also makes the cluster's
// own partition the default one again.
func restoringDefault(s show) show {
	remove := s.remove
	s.remove = func(c *changeForms, objects []shown) {
		c.m.try("root", "scontrol", "update", "PartitionName=debug", "Default=YES")
		remove(c, objects)
	}
	return s
}

// scontrolField matches the beginning of a field in the output of "scontrol -o".
var scontrolField = regexp.MustCompile(`(?:^| )([A-Za-z][A-Za-z0-9:/_]*)=`)

// shownBy returns a show of what "scontrol show" lists. The command remove,
// with the value of the field key after it, removes an object.
func shownBy(kind, key, ignore, remove string) show {
	s := show{label: "scontrol " + kind, key: key}
	if ignore != "" {
		s.ignore = regexp.MustCompile(ignore)
	}
	s.read = func(c *changeForms) (list []shown) {
		c.t.Helper()
		for line := range strings.Lines(c.scontrol(kind)) {
			places := scontrolField.FindAllStringSubmatchIndex(line, -1)
			if len(places) == 0 {
				continue
			}
			o := shown{}
			for i, p := range places {
				end := len(line)
				if i+1 < len(places) {
					end = places[i+1][0]
				}
				if name := line[p[2]:p[3]]; o[name] == "" {
					o[name] = strings.TrimPrefix(strings.TrimSpace(line[p[1]:end]), "(null)") // the same as an empty text
				}
			}
			list = append(list, o)
		}
		return list
	}
	if remove != "" {
		s.remove = func(c *changeForms, objects []shown) {
			var script strings.Builder
			for _, o := range objects {
				fmt.Fprintf(&script, "scontrol %s'%s'\n", remove, strings.ReplaceAll(o[key], "'", `'\''`))
			}
			c.m.try("root", "sh", "-c", script.String())
		}
	}
	return s
}

var plainName = regexp.MustCompile(`^\w[\w.]*$`)

// sacctmgr returns a show of a kind of record, with the columns in format. The
// records are removed by the column key.
func sacctmgr(kind, format, key string) show {
	s := show{label: "sacctmgr " + strings.Fields(kind)[0], kind: strings.Fields(kind)[0], key: key}
	s.read = func(c *changeForms) (list []shown) {
		c.t.Helper()
		out := c.list(append(strings.Fields("sacctmgr -P show "+kind), "format="+format)...)
		lines := strings.Split(out, "\n")
		columns := strings.Split(lines[0], "|")
		for _, line := range lines[1:] {
			o := shown{}
			for i, value := range strings.Split(line, "|") {
				if i < len(columns) {
					o[columns[i]] = value
				}
			}
			list = append(list, o)
		}
		return list
	}
	if key != "" {
		s.remove = func(c *changeForms, objects []shown) {
			var names []string
			for _, o := range objects {
				switch name := o[key]; {
				case slices.Contains(names, name) || name == "":
				case plainName.MatchString(name):
					names = append(names, name)
				default: // sacctmgr would take it for several names, or for all others
					c.delete("/slurmdb/" + newest[c.m.release] + "/" + s.kind + "/" + url.PathEscape(name))
				}
			}
			if len(names) > 0 {
				c.m.try("root", "sacctmgr", "-i", "-Q", "delete", s.kind, "where", "name="+strings.Join(names, ","))
			}
		}
	}
	return s
}

var showsQOS = sacctmgr("qos", "name,description,gracetime,grpjobs,grpjobsaccrue,grpsubmitjobs,grptres,grptresmins,grptresrunmins,grpwall,limitfactor,maxjobsaccruepa,maxjobsaccruepu,"+
	"maxjobspa,maxjobspu,maxsubmitjobspa,maxsubmitjobspu,maxtrespj,maxtresminspj,maxtrespa,maxtrespn,maxtrespu,maxtresrunminspa,maxtresrunminspu,maxwall,minpriothresh,mintres,"+
	"preempt,preemptmode,preemptexempttime,priority,usagefactor,usagethreshold,flags", "Name")

// singular are the words of lists in the paths of single objects.
var singular = map[string]string{"accounts": "account", "users": "user", "qos": "qos", "clusters": "cluster"}

// listedBy returns a show of a list that one of the gateways answers.
func listedBy(side int, path, list string) show {
	s := show{label: [2]string{"theirs ", "ours "}[side] + list, key: "name", ignore: regexp.MustCompile(`(?i)(^|[.\]])(id|lineage)$`)}
	s.read = func(c *changeForms) (objects []shown) {
		c.t.Helper()
		parameter := "WithCoordinators"
		if c.version < api.V41 {
			parameter = "with_coords"
		}
		path := strings.Replace(path, "COORDINATORS", parameter, 1)
		ask := func() (answer, error) {
			return sendRequest(c.clients[side], "GET", c.versioned(path), "", "X-SLURM-USER-TOKEN: "+c.token)
		}
		a, err := ask()
		if err != nil && side == 0 { // slurmrestd has ended late
			c.revive(side)
			a, err = ask()
		}
		must(c.t, err)
		var body map[string]any
		d := json.NewDecoder(bytes.NewReader(nonJSONNumber.ReplaceAll(a.body, []byte(`: "$1"`))))
		d.UseNumber()
		if err := d.Decode(&body); err != nil || a.status != http.StatusOK {
			c.t.Fatalf("%s: status %d, %v: %.300s", path, a.status, err, a.body)
		}
		records, _ := body[list].([]any)
		for _, r := range records {
			o := shown{}
			o.add("", r)
			objects = append(objects, o)
		}
		return objects
	}
	if kind := strings.Split(path, "/")[2]; strings.HasPrefix(path, "/slurmdb/") && kind != "associations" {
		s.last = true
		s.remove = func(c *changeForms, objects []shown) {
			for _, o := range objects {
				if o["name"] != "" {
					c.delete("/slurmdb/" + newest[c.m.release] + "/" + singular[kind] + "/" + url.PathEscape(o["name"]))
				}
			}
		}
	}
	return s
}

// add adds the fields of a JSON value to an object. The values of a list are in
// one field, in order.
func (o shown) add(at string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, v := range value {
			o.add(strings.TrimPrefix(at+"."+name, "."), v)
		}
	case []any:
		if len(value) == 0 {
			o[at+"[]"] = "[]"
		}
		for _, v := range value {
			o.add(at+"[]", v)
		}
	default:
		if old, ok := o[at]; ok {
			o[at] = old + ", " + fmt.Sprint(value)
		} else {
			o[at] = fmt.Sprint(value)
		}
	}
}

package reason

import (
	"fmt"
	"strings"

	"schedrestd/model"
)

// details has the facts that explanations need, and the function that returns the
// numbers and names for the end of the first sentence; "" if they are not known.
var details = map[string]struct {
	needs Need
	text  func(f *Facts, j *model.Job, e *Explanation) string
}{
	"Priority":                 {NeedQueues, queued},
	"Dependency":               {0, dependencies},
	"Resources":                {NeedQueues, queued},
	"PartitionNodeLimit":       {needs: NeedPartitions},
	"PartitionTimeLimit":       {needs: NeedPartitions},
	"BeginTime":                {0, beginTime},
	"Licenses":                 {NeedLicenses, licenses},
	"Reservation":              {NeedReservations, reservation},
	"ReservationInvalid":       {NeedReservations, reservation},
	"ReqNodeNotAvail":          {NeedNodes | NeedReservations, missing},
	"NodeDown":                 {NeedNodes | NeedReservations, missing},
	"MaxMemPerLimit":           {needs: NeedPartitions},
	"JobArrayTaskLimit":        {0, arrayTasks},
	"DependencyNeverSatisfied": {0, dependencies},
	"DeadLine":                 {0, deadline},
}

// queued returns the place of a job among those that wait.
func queued(f *Facts, j *model.Job, e *Explanation) string {
	e.Place = f.place(j)
	if e.Place == nil || e.Place.Position == 1 && Name(j.StateReason) == "Priority" { // the client may not see the jobs that come first
		return ""
	}
	if e.Place.Waiting == 1 {
		return fmt.Sprintf("no other job that you can see waits in the partition \"%s\"", e.Place.Partition)
	}
	return fmt.Sprintf("by priority, this job is number %d of the %d waiting jobs that you can see in the partition \"%s\"", e.Place.Position, e.Place.Waiting, e.Place.Partition)
}

// dependencyWords say what a job must do so that another can start.
var dependencyWords = map[string]string{
	"after":            "must begin",
	"afterany":         "must end",
	"afterok":          "must end without an error",
	"afternotok":       "must end with an error",
	"aftercorr":        "must end without an error in the task with the same number",
	"afterburstbuffer": "must have copied its files out of the burst buffer",
	"expand":           "must run",
}

// dependencies returns what must happen before the job can start. The controller
// marks in the job's record what has not happened yet.
func dependencies(_ *Facts, j *model.Job, _ *Explanation) string {
	var list []string
	for item := range strings.FieldsFuncSeq(j.Dependency, func(r rune) bool { return r == ',' || r == '?' }) {
		item, mark, _ := strings.Cut(item, "(")
		if mark = strings.TrimSuffix(mark, ")"); mark == "fulfilled" {
			continue
		}
		kind, ids, _ := strings.Cut(item, ":")
		if kind == "singleton" {
			list = append(list, "the user's earlier jobs with the same name must end")
			continue
		}
		words := dependencyWords[kind]
		if words == "" || ids == "" {
			return j.Dependency
		}
		for id := range strings.SplitSeq(ids, ":") {
			id, delay, delayed := strings.Cut(id, "+")
			text := "job " + strings.TrimSuffix(id, "_*") + " " + words
			if delayed {
				text += " " + span(number(delay)) + " before"
			}
			if mark == "failed" {
				text += ", but it did not"
			}
			list = append(list, text)
		}
	}
	word := " and "
	if strings.Contains(j.Dependency, "?") {
		word = " or "
	}
	return strings.Join(list, word)
}

func beginTime(_ *Facts, j *model.Job, _ *Explanation) string {
	if j.EligibleTime == 0 {
		return ""
	}
	return "not before " + clock(j.EligibleTime)
}

func deadline(_ *Facts, j *model.Job, _ *Explanation) string {
	if j.Deadline == 0 {
		return ""
	}
	return clock(j.Deadline)
}

// licenses returns which licenses are in use.
func licenses(f *Facts, j *model.Job, e *Explanation) string {
	e.Licenses = f.wantedLicenses(j)
	var list []string
	for _, l := range e.Licenses {
		text := fmt.Sprintf("of %s, %d %s in use", resourceOf("license/"+l.Name, uint64(l.Total)), l.InUse, verb(uint64(l.InUse), "is", "are"))
		if l.Reserved > 0 {
			text += fmt.Sprintf(", reservations hold %d", l.Reserved)
		}
		if l.LastDeficit > 0 {
			text += fmt.Sprintf(", others use %d", l.LastDeficit)
		}
		list = append(list, fmt.Sprintf("%s, and this job asks for %d", text, l.Requested))
	}
	if len(list) == 0 {
		return j.Licenses
	}
	return strings.Join(list, "; ")
}

// reservation returns when the reservation of a job begins or ends.
func reservation(f *Facts, j *model.Job, e *Explanation) string {
	if e.Reservation = f.reservationOf(j); e.Reservation == nil {
		return ""
	}
	return reservationText(e.Reservation, "it")
}

// reservationText says when a reservation begins and ends, and who may use it.
func reservationText(r *model.Reservation, name string) string {
	text := fmt.Sprintf("%s lasts from %s to %s", name, clock(r.StartTime), clock(r.EndTime))
	if owners := strings.Trim(r.Users+","+r.Accounts+","+r.Groups, ","); owners != "" {
		text += ", for " + strings.Join(strings.FieldsFunc(owners, func(r rune) bool { return r == ',' }), ", ")
	}
	return text
}

// missing returns which nodes are not available, and why.
func missing(f *Facts, j *model.Job, e *Explanation) string {
	e.Nodes, e.Reservation = f.missingNodes(j), f.reservationOf(j)
	var list []string
	for _, n := range e.Nodes {
		text := n.Name + " is " + n.State
		if n.Reason != "" {
			text += fmt.Sprintf(" (the reason is \"%s\")", n.Reason)
		}
		list = append(list, text)
	}
	if e.Reservation != nil {
		list = append(list, reservationText(e.Reservation, fmt.Sprintf("the reservation \"%s\"", e.Reservation.Name)))
	}
	if len(list) == 0 {
		_, text, _ := strings.Cut(j.StateDescription, "ReqNodeNotAvail, ")
		return strings.TrimSuffix(text, ".")
	}
	return strings.Join(list, "; ")
}

func arrayTasks(_ *Facts, j *model.Job, _ *Explanation) string {
	if j.ArrayMaxTasks == 0 {
		return ""
	}
	return fmt.Sprintf("%d at a time", j.ArrayMaxTasks)
}

// named returns the text before a name, and the name, or "" without a name.
func named(text, name string) string {
	if name == "" {
		return ""
	}
	return text + name
}

// about returns what a reason is about, as far as the job's record has it.
func about(name string, j *model.Job) string {
	switch {
	case strings.HasPrefix(name, "Dependency"):
		return named("dependency ", j.Dependency)
	case name == "Licenses":
		return named("licenses ", j.Licenses)
	case strings.HasPrefix(name, "Reservation"):
		return named("reservation ", j.Reservation)
	case strings.HasPrefix(name, "Partition"):
		return named("partition ", j.Partition)
	case name == "BeginTime":
		return "begin time " + clock(j.EligibleTime)
	case name == "ReqNodeNotAvail", name == "NodeDown":
		return named("nodes ", j.ReqNodes)
	case strings.HasPrefix(name, "Assoc"), strings.HasSuffix(name, "PerAccount"), strings.HasPrefix(name, "InvalidAccount"), strings.HasPrefix(name, "Account"):
		return named("account ", j.Account)
	case strings.Contains(name, "QOS"), strings.HasSuffix(name, "PerUser"):
		return named("QOS ", j.QOS)
	}
	return ""
}

// withNames adds names from the record of j to the words for what they name.
func withNames(sentence string, j *model.Job) string {
	var pairs []string
	for _, p := range [][3]string{
		{"The partition", "The partition ", j.Partition}, {"the partition", "the partition ", j.Partition}, {"The account that the job is charged to", "The account ", j.Account}, {"this account", "the account ", j.Account},
		{"The QOS of the job", "The QOS ", j.QOS}, {"this QOS", "the QOS ", j.QOS}, {"its reservation", "the reservation ", j.Reservation},
		{"The reservation of the job", "The reservation ", j.Reservation},
	} {
		if p[2] != "" {
			pairs = append(pairs, p[0], p[1]+"\""+p[2]+"\"")
		}
	}
	return strings.NewReplacer(pairs...).Replace(sentence)
}

package reason

import (
	"fmt"
	"strings"
)

// sentence says what the limit permits, what is used of it, and what the job asks
// for.
func (l *Limit) sentence() string {
	switch l.measure {
	case jobs:
		return fmt.Sprintf("At most %s may run at a time, and %d %s now.", l.members(plural(l.Allowed, "job")), l.Used.Number, verb(l.Used.Number, "runs", "run"))
	case submitted:
		return fmt.Sprintf("At most %s may wait or run at a time, and there %s %d now.", l.members(plural(l.Allowed, "job")), verb(l.Used.Number, "is", "are"), l.Used.Number)
	case wall:
		return fmt.Sprintf("%s may run for at most %s in total: they have run for %s, and %s.", l.together(), span(l.Allowed), span(l.Used.Number), l.request(span))
	case minutes:
		used := fmt.Sprintf("they have used %d", l.Used.Number)
		if l.Reserved.Number > 0 {
			used += fmt.Sprintf(", those that run may use %d more", l.Reserved.Number)
		}
		return fmt.Sprintf("%s may use at most %s in total: %s, and %s.", l.together(), minutesOf(l.Resource, l.Allowed, "minutes"), used, l.request(digits))
	case runMinutes:
		return fmt.Sprintf("%s together may have at most %s still to run: they have %d now, and %s.", l.members("Running jobs"), minutesOf(l.Resource, l.Allowed, "the minutes until the time limit"), l.Used.Number, l.request(digits))
	case wallPerJob:
		return fmt.Sprintf("%s may run for at most %s, and %s.", l.members("A job"), span(l.Allowed), l.request(span))
	case minutesPerJob:
		return fmt.Sprintf("%s may use at most %s, and %s.", l.members("A job"), minutesOf(l.Resource, l.Allowed, "minutes"), l.request(digits))
	case perJob:
		return fmt.Sprintf("%s may use at most %s, and %s.", l.members("A job"), l.amount(l.Allowed), l.request(l.short))
	case perNode:
		return fmt.Sprintf("%s may use at most %s on each node, and %s.", l.members("A job"), l.amount(l.Allowed), l.request(l.short))
	case perCPU:
		return fmt.Sprintf("%s may use at most %s for each CPU, and %s.", l.members("A job"), l.amount(l.Allowed), l.request(l.short))
	case atLeast:
		return fmt.Sprintf("%s must ask for at least %s, and %s.", l.members("A job"), l.amount(l.Allowed), l.request(l.short))
	}
	return fmt.Sprintf("%s may use at most %s at a time: they use %s, and %s.", l.together(), l.amount(l.Allowed), l.short(l.Used.Number), l.request(l.short))
}

func (l *Limit) amount(n uint64) string { return resourceOf(l.Resource, n) }

// short returns the words for n of the resource, which the sentence has named.
func (l *Limit) short(n uint64) string {
	if unitOf(l.Resource) == "MiB" {
		return size(n)
	}
	return digits(n)
}

// request says what the job asks for.
func (l *Limit) request(words func(n uint64) string) string {
	switch {
	case l.Requested.Infinite:
		return "this job has no time limit"
	case l.Requested.Set:
		return "this job asks for " + words(l.Requested.Number)
	}
	return "this job asks for more"
}

// members returns the words for those jobs to which the limit applies.
func (l *Limit) members(jobs string) string {
	if l.Whose != "" {
		jobs += " of the " + quoted(l.Whose)
	}
	switch kind, _, _ := strings.Cut(l.Of, " "); {
	case kind == "QOS":
		return jobs + " with the " + quoted(l.Of)
	case kind == "partition", l.Whose != "":
		return jobs + " in the " + quoted(l.Of)
	}
	return jobs + " of the " + quoted(l.Of)
}

// quoted puts the name behind a kind, as in "account physics", in quotation marks: many
// names are ordinary words.
func quoted(text string) string {
	kind, name, _ := strings.Cut(text, " ")
	return fmt.Sprintf("%s \"%s\"", kind, name)
}

// together returns the words for the jobs that use what the limit permits.
func (l *Limit) together() string { return l.members("All jobs") + " together" }

// remedy says what would let the job start, if that depends on the numbers.
func (l *Limit) remedy() string {
	kind, _, _ := strings.Cut(l.Of, " ")
	other := "another " + kind
	if kind == "account" {
		other = "another account to charge the job to"
	}
	never := l.Requested.Infinite || l.Requested.Set && l.Requested.Number > l.Allowed
	lead := ""
	if never || l.measure >= perJob {
		lead = "This job can never start. "
	}
	switch l.measure {
	case wallPerJob:
		return fmt.Sprintf("%sLower its time limit to at most %s, or choose %s.", lead, span(l.Allowed), other)
	case wall, minutes:
		if never {
			return fmt.Sprintf("%sLower its time limit, ask for less, choose %s, or ask an administrator.", lead, other)
		}
		return fmt.Sprintf("If the site lets use fade with time, it can start when enough has faded. Otherwise choose %s, or ask an administrator.", other)
	case atLeast:
		return fmt.Sprintf("%sAsk for at least %s, or choose %s.", lead, l.amount(l.Allowed), other)
	case runMinutes, minutesPerJob:
		if never || l.measure == minutesPerJob {
			return fmt.Sprintf("%sLower its time limit or ask for less, so that the %s times the minutes are at most %d; or choose %s.", lead, manyOf(l.Resource), l.Allowed, other)
		}
		return "It can start when these jobs have less time left, or end. With a shorter time limit it may start sooner."
	}
	switch {
	case l.Allowed == 0 && l.measure != jobs && l.measure != submitted:
		return fmt.Sprintf("This job can never start. Choose %s.", other)
	case l.measure == jobs, l.measure == submitted:
		return ""
	case l.Resource == "billing" && lead != "":
		return fmt.Sprintf("%sAsk for fewer resources, so that the job counts as at most %s, or choose %s.", lead, plural(l.Allowed, "billing unit"), other)
	case lead != "":
		return fmt.Sprintf("%sAsk for at most %s%s, or choose %s.", lead, l.amount(l.Allowed), map[measure]string{perNode: " on each node", perCPU: " for each CPU"}[l.measure], other)
	case l.Requested.Number <= 1:
		return fmt.Sprintf("It can start when running jobs free enough %s.", strings.TrimPrefix(manyOf(l.Resource), "MB of "))
	}
	return fmt.Sprintf("It can start when running jobs free enough %s. If it asks for less of that, it may start sooner.", strings.TrimPrefix(manyOf(l.Resource), "MB of "))
}

// resourceWords are the resources in the names of limits, for sentences.
var resourceWords = map[string]string{
	"Cpu": "CPUs", "CPU": "CPUs", "Memory": "memory", "Mem": "memory", "Node": "nodes", "GRES": "GPUs or similar resources", "License": "licenses",
	"Energy": "energy", "BB": "space in the burst buffer", "Billing": "billing units", "Unknown": "of a resource",
}

// explainLimit explains a reason that is a limit of accounting.
func explainLimit(name string) (text, bool) {
	m := limitName.FindStringSubmatch(name)
	if m == nil {
		return text{}, false
	}
	whose, kind, what, time, part := m[1], m[2], m[3], m[4], m[5]
	if whose == "Assoc" && kind == "Max" && (what == "Jobs" || strings.HasPrefix(what, "Submit")) {
		part = "PerUser" // a limit of the association of this user
	}
	all := map[string]string{"Assoc": "The jobs of the account", "QOS": "The jobs of this QOS", "": "The jobs of the account with this QOS"}[whose]
	limit := map[string]string{"Assoc": "the account", "QOS": "the QOS", "": "the QOS"}[whose]
	switch part {
	case "PerUser":
		if all = "The user's jobs with this QOS"; whose == "Assoc" {
			all = "The user's jobs of this account"
		}
	case "PerAccount":
		all = "The jobs of the account with this QOS"
	}
	amount := "as many " + resourceWords[what]
	if what == "Memory" || what == "Mem" || what == "Energy" || what == "BB" || what == "Unknown" {
		amount = "as much " + resourceWords[what]
	}
	more := strings.NewReplacer("as many ", "more ", "as much ", "more ").Replace(amount)
	switch measureOf(kind, what, time, part) {
	case submitted:
		return text{all + " that wait or run are as many as " + limit + " permits.", "It can be submitted when one of them ends."}, true
	case jobs:
		return text{all + " that run are as many as " + limit + " permits.", "It can start when one of them ends."}, true
	case wallPerJob:
		return text{"The job asks for more time than " + limit + " permits.", "Lower the time limit of the job, or choose another account or QOS."}, true
	case wall:
		return text{all + " have used up their time.", "Past use may count less as time passes; or ask an administrator."}, true
	case atLeast:
		return text{fmt.Sprintf("The job asks for too little for the QOS, which requires a minimum of %s.", amountOf(amount)), "Ask for more, or choose another QOS."}, true
	case runMinutes:
		return text{fmt.Sprintf("%s that run have reserved as much time on %s as they may.", all, amountOf(amount)), "It can start when they have less time left, or end. With a shorter time limit it may start sooner."}, true
	case minutesPerJob:
		return text{fmt.Sprintf("The job asks for %s, times its time limit, than %s permits.", more, limit), "Lower the time limit, or ask for less."}, true
	case minutes:
		return text{fmt.Sprintf("%s have used up their time on %s.", all, amountOf(amount)), "Past use may count less as time passes; or ask an administrator."}, true
	case perJob:
		return text{fmt.Sprintf("The job asks for %s than %s permits for a job.", more, limit), askLess}, true
	case perNode:
		return text{fmt.Sprintf("The job asks for %s on a node than %s permits.", more, limit), askLess}, true
	}
	return text{fmt.Sprintf("%s use %s as they may together.", all, amount), waitOrLess}, true
}

// amountOf returns the resource in an amount such as "as many CPUs".
func amountOf(amount string) string {
	name := strings.TrimPrefix(strings.TrimPrefix(amount, "as many "), "as much ")
	return strings.TrimPrefix(strings.Replace(name, "of a resource", "a resource", 1), "of ")
}

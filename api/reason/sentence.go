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
		return fmt.Sprintf("%s may run for %s: they have run for %s, and %s.", l.together(), span(l.Allowed), span(l.Used.Number), l.request(span))
	case minutes:
		used := fmt.Sprintf("they have used %d", l.Used.Number)
		if l.Reserved.Number > 0 {
			used += fmt.Sprintf(", those that run may use %d more", l.Reserved.Number)
		}
		return fmt.Sprintf("%s may use %s: %s, and %s.", l.together(), minutesOf(l.Resource, l.Allowed, "minutes"), used, l.request(digits))
	case runMinutes:
		return fmt.Sprintf("%s together may have %s left: they have %d left, and %s.", l.members("All running jobs"), minutesOf(l.Resource, l.Allowed, "the minutes until their time limits"), l.Used.Number, l.request(digits))
	case wallPerJob:
		return fmt.Sprintf("%s may run for %s, and %s.", l.members("A job"), span(l.Allowed), l.request(span))
	case minutesPerJob:
		return fmt.Sprintf("%s may use %s, and %s.", l.members("A job"), minutesOf(l.Resource, l.Allowed, "minutes"), l.request(digits))
	case perJob:
		return fmt.Sprintf("%s may use %s, and %s.", l.members("A job"), l.amount(l.Allowed), l.request(l.short))
	case perNode:
		return fmt.Sprintf("%s may use %s on each node, and %s.", l.members("A job"), l.amount(l.Allowed), l.request(l.short))
	case perCPU:
		return fmt.Sprintf("%s may use %s for each CPU, and %s.", l.members("A job"), l.amount(l.Allowed), l.request(l.short))
	case atLeast:
		return fmt.Sprintf("%s must ask for %s or more, and %s.", l.members("A job"), l.amount(l.Allowed), l.request(l.short))
	}
	return fmt.Sprintf("%s may use %s at a time: they use %s, and %s.", l.together(), l.amount(l.Allowed), l.short(l.Used.Number), l.request(l.short))
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
		jobs += " of the " + l.Whose
	}
	switch kind, _, _ := strings.Cut(l.Of, " "); {
	case kind == "QOS":
		return jobs + " with the " + l.Of
	case kind == "partition", l.Whose != "":
		return jobs + " in the " + l.Of
	}
	return jobs + " of the " + l.Of
}

// together returns the words for the jobs that use what the limit permits.
func (l *Limit) together() string { return l.members("All jobs") + " together" }

// remedy says what would let the job start, if that depends on the numbers.
func (l *Limit) remedy() string {
	kind, _, _ := strings.Cut(l.Of, " ")
	other := "another " + kind
	never := l.Requested.Infinite || l.Requested.Set && l.Requested.Number > l.Allowed
	switch l.measure {
	case wallPerJob:
		return fmt.Sprintf("Lower the time limit of the job to %s or less, or choose %s.", span(l.Allowed), other)
	case wall, minutes:
		return fmt.Sprintf("Choose %s, or ask an administrator. What jobs have used counts less with time, unless the site has turned this off.", other)
	case atLeast:
		return fmt.Sprintf("Ask for %s or more, or choose %s.", l.amount(l.Allowed), other)
	case resources, perJob, perNode, perCPU:
		switch {
		case l.Allowed == 0:
			return fmt.Sprintf("This job can never start. Choose %s.", other)
		case never || l.measure != resources:
			return fmt.Sprintf("This job can never start. Ask for %s or less, or choose %s.", l.amount(l.Allowed), other)
		}
	case runMinutes, minutesPerJob:
		if never {
			return fmt.Sprintf("This job can never start. Lower its time limit, or ask for less, so that the product is %d or less; or choose %s.", l.Allowed, other)
		}
	}
	return ""
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
		return text{all + " that wait or run are as many as " + limit + " permits.", "It can be submitted when one of them has ended."}, true
	case jobs:
		return text{all + " that run are as many as " + limit + " permits.", "It starts when one of them has ended."}, true
	case wallPerJob:
		return text{"The job asks for more time than " + limit + " permits.", "Lower the time limit of the job, or choose another account or QOS."}, true
	case wall:
		return text{all + " have used up their time.", "The usage counts less with time, or an administrator resets it."}, true
	case atLeast:
		return text{fmt.Sprintf("The job asks for too little for the QOS, which requires a minimum of %s.", amountOf(amount)), "Ask for more, or choose another QOS."}, true
	case runMinutes:
		return text{fmt.Sprintf("%s that run have reserved as much time on %s as they may.", all, amountOf(amount)), "It starts when one of them has ended. Shorter time limits let more of them run."}, true
	case minutesPerJob:
		return text{fmt.Sprintf("The job asks for %s, times its time limit, than %s permits.", more, limit), "Lower the time limit, or ask for less."}, true
	case minutes:
		return text{fmt.Sprintf("%s have used up their time on %s.", all, amountOf(amount)), "The usage counts less with time, or an administrator resets it."}, true
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

package reason

import (
	"fmt"
	"strings"
)

// sentence says what the limit permits, what is used of it, and what the job asks
// for.
func (l *Limit) sentence() string {
	asks := func(words func(n uint64) string) string {
		switch {
		case l.Requested.Infinite:
			return "this job has no time limit"
		case l.Requested.Set:
			return "this job asks for " + words(l.Requested.Number)
		}
		return "this job asks for more"
	}
	amount := func(n uint64) string { return resourceOf(l.Resource, n) }
	inMinutes := func(n uint64) string { return minutesOf(l.Resource, n) }
	switch l.measure {
	case jobs:
		return fmt.Sprintf("%s may run %s at a time, and %d run now.", l.users(), plural(l.Allowed, "job"), l.Used.Number)
	case submitted:
		return fmt.Sprintf("%s may have %s that wait or run, and there are %d now.", l.users(), plural(l.Allowed, "job"), l.Used.Number)
	case wall:
		return fmt.Sprintf("%s may run for %s in all: they have run for %s, and %s.", l.users(), span(l.Allowed), span(l.Used.Number), asks(span))
	case minutes:
		return fmt.Sprintf("%s may use %s in all: they have used %d, and %s.", l.users(), inMinutes(l.Allowed), l.Used.Number, asks(inMinutes))
	case runMinutes:
		return fmt.Sprintf("%s that run at a time may together need %s until they reach their time limits: they need %d, and %s.", l.users(), inMinutes(l.Allowed), l.Used.Number, asks(inMinutes))
	case perJob:
		return fmt.Sprintf("A job %s may use %s, and %s.", l.place(), amount(l.Allowed), asks(amount))
	case perNode:
		return fmt.Sprintf("A job %s may use %s on each node, and %s.", l.place(), amount(l.Allowed), asks(amount))
	case wallPerJob:
		return fmt.Sprintf("A job %s may run for %s, and %s.", l.place(), span(l.Allowed), asks(span))
	case minutesPerJob:
		return fmt.Sprintf("A job %s may use %s, and %s.", l.place(), inMinutes(l.Allowed), asks(inMinutes))
	case atLeast:
		return fmt.Sprintf("A job %s must ask for %s or more, and %s.", l.place(), amount(l.Allowed), asks(amount))
	}
	return fmt.Sprintf("%s may use %s at a time: they use %s, and %s.", l.users(), amount(l.Allowed), amount(l.Used.Number), asks(amount))
}

// place returns what a job belongs to so that the limit applies to it.
func (l *Limit) place() string {
	if strings.HasPrefix(l.Of, "QOS ") {
		return "with the " + l.Of
	}
	return "of the " + l.Of
}

// users returns the jobs that use what the limit permits.
func (l *Limit) users() string {
	if l.Whose == "" {
		return "All jobs " + l.place() + " together"
	}
	return fmt.Sprintf("The jobs of the %s %s", l.Whose, strings.Replace(l.place(), "of the", "in the", 1))
}

// remedy says what would let the job start, if that depends on the numbers.
func (l *Limit) remedy() string {
	other := "another " + strings.ToLower(l.Of[:strings.IndexByte(l.Of, ' ')])
	if strings.HasPrefix(l.Of, "QOS ") {
		other = "another QOS"
	}
	tooMuch := l.Requested.Infinite || l.Requested.Set && l.Requested.Number > l.Allowed
	switch l.measure {
	case wallPerJob:
		return fmt.Sprintf("Lower the time limit of the job to %s or less, or choose %s.", span(l.Allowed), other)
	case perJob, perNode:
		return fmt.Sprintf("Ask for %s or less, or choose %s.", resourceOf(l.Resource, l.Allowed), other)
	case minutesPerJob:
		return fmt.Sprintf("Lower the time limit, or ask for less, so that the product is %s or less; or choose %s.", minutesOf(l.Resource, l.Allowed), other)
	case resources:
		if tooMuch {
			return fmt.Sprintf("This job can never start: ask for %s or less, or choose %s.", resourceOf(l.Resource, l.Allowed), other)
		}
	case runMinutes:
		if tooMuch {
			return fmt.Sprintf("This job can never start: lower its time limit, or ask for less, so that the product is %s or less; or choose %s.", minutesOf(l.Resource, l.Allowed), other)
		}
	case atLeast:
		return fmt.Sprintf("Ask for %s or more, or choose %s.", resourceOf(l.Resource, l.Allowed), other)
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

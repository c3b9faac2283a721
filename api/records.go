package api

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"schedrestd/model"
)

// Records translates the ids in accounting records to names.
type Records struct {
	TRES  map[uint32]model.TRES
	QOS   map[uint32]string
	Users Users
}

// Amounts parses a list of amounts, such as "1=4,2=1000", whose keys are the
// ids of trackable resources. A resource with an unknown id gets no type.
func (r *Records) Amounts(s string) []model.TRES {
	var list []model.TRES
	for part := range strings.SplitSeq(s, ",") {
		id, count, ok := amount(part)
		if !ok {
			continue
		}
		t := r.TRES[id]
		t.ID, t.Count = id, count
		list = append(list, t)
	}
	return list
}

func amount(part string) (id uint32, count uint64, ok bool) {
	number, rest, found := strings.Cut(part, "=")
	n, err := strconv.ParseUint(number, 10, 32)
	if !found || err != nil {
		return 0, 0, false
	}
	count, err = strconv.ParseUint(rest, 10, 64)
	return uint32(n), count, err == nil
}

// qos returns the name of a quality of service. For the id 0 it returns "", and
// for an unknown id the id itself.
func (r *Records) qos(id uint32) string {
	if name := r.QOS[id]; name != "" || id == 0 {
		return name
	}
	return strconv.FormatUint(uint64(id), 10)
}

// qosList returns the names for a list of ids. A sign in front of an id stays
// in front of the name. A "+" means that the name is added to the parent's
// list, and a "-" means that it is removed from that list.
func (r *Records) qosList(ids []string) []string {
	list := make([]string, 0, len(ids))
	for _, s := range ids {
		digits := strings.TrimLeft(s, "+-")
		n, err := strconv.ParseUint(digits, 10, 32)
		if err == nil {
			s = strings.TrimSuffix(s, digits) + r.qos(uint32(n))
		}
		list = append(list, s)
	}
	return list
}

// Limit contains the limits that a client sent for one field of a record of
// type M. They limit trackable resources. At returns the address of the field,
// which stores the limits as text.
type Limit[M any] struct {
	At   func(*M) *string
	List []model.TRES // a resource whose Count is noLimit loses its limit; an empty list removes all limits
}

// noLimit is the count that removes the limit of a trackable resource. Slurm
// calls it INFINITE64.
const noLimit = math.MaxUint64

// SetLimits writes limits into the fields of m, as the text that changes a
// record of the accounting daemon. The daemon keeps the limits of all resources
// that this text does not contain. The argument old is the record before the
// change, or nil if there is none. With replace, a list removes the limits of old
// that it does not name; otherwise only an empty list does. SetLimits returns an
// error if a resource does not exist or is limited twice.
func SetLimits[M any](r *Records, m, old *M, limits []Limit[M], replace bool) error {
	for _, l := range limits {
		var parts []string
		given := map[uint32]bool{}
		for _, t := range l.List {
			id, err := r.tresNumber(t)
			switch {
			case err != nil:
				return err
			case t.Count == noCount:
				return fmt.Errorf("the limit of trackable resource %q has no count", tresName(t))
			}
			if given[id] {
				return fmt.Errorf("trackable resource %q is limited twice", tresName(t))
			}
			given[id] = true
			// The count must have no sign. From Slurm 25.11 on, "=-1" reduces a
			// limit by one. Earlier releases convert it to noLimit.
			parts = append(parts, fmt.Sprintf("%d=%d", id, t.Count))
		}
		if old != nil && (replace || len(l.List) == 0) {
			for _, t := range r.Amounts(*l.At(old)) {
				if !given[t.ID] {
					parts = append(parts, fmt.Sprintf("%d=%d", t.ID, uint64(noLimit)))
				}
			}
		}
		*l.At(m) = strings.Join(parts, ",")
	}
	return nil
}

// tresNumber returns the id of the trackable resource that the client specifies
// by type and name, or by id.
func (r *Records) tresNumber(t model.TRES) (uint32, error) {
	if t.Type == "" {
		if _, known := r.TRES[t.ID]; known {
			return t.ID, nil
		}
		return 0, fmt.Errorf("there is no trackable resource with the number %d", t.ID)
	}
	if t.Type == "memory" { // as slurm.conf and clients of slurmrestd call it
		t.Type = "mem"
	}
	for id, known := range r.TRES {
		if model.SameName(known.Type, t.Type) && model.SameName(known.Name, t.Name) && (t.ID == 0 || t.ID == id) {
			return id, nil
		}
	}
	return 0, noSuch("trackable resource", tresName(t))
}

func tresName(t model.TRES) string {
	if t.Name == "" {
		return t.Type
	}
	return t.Type + "/" + t.Name
}

// QOSNumber returns the id of the quality of service that the client specifies
// by name or id. A number that is also a name is the name.
func (r *Records) QOSNumber(name string) (uint32, error) {
	var found uint32
	for id, known := range r.QOS {
		if known == name {
			return id, nil
		}
		if model.SameName(known, name) && (found == 0 || id < found) {
			found = id
		}
	}
	if found != 0 {
		return found, nil
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil && r.QOS[uint32(n)] != "" {
		return uint32(n), nil
	}
	return 0, noSuch("quality of service", name)
}

// QOSNumbers returns the ids of several qualities of service. A + or - in front
// of a name stays in front of the id.
func (r *Records) QOSNumbers(names []string) ([]string, error) {
	list := []string{}
	for _, name := range names {
		bare := name
		if name != "" && strings.ContainsRune("+-", rune(name[0])) {
			bare = name[1:]
		}
		id, err := r.QOSNumber(bare)
		if err != nil {
			return nil, err
		}
		list = append(list, strings.TrimSuffix(name, bare)+strconv.FormatUint(uint64(id), 10))
	}
	return list, nil
}

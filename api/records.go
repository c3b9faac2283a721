package api

import (
	"strconv"
	"strings"

	"schedrestd/model"
)

// Records has what records of the accounting daemon say by number alone.
type Records struct {
	TRES  map[uint32]model.TRES
	QOS   map[uint32]string
	Users Users
}

// amounts parses "1=4,2=1000": ids of trackable resources with their amounts.
// An unknown id has no type.
func (r *Records) amounts(s string) []model.TRES {
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

// qos returns the name of a quality of service, "" for none, or its id if the
// name is unknown.
func (r *Records) qos(id uint32) string {
	if name := r.QOS[id]; name != "" || id == 0 {
		return name
	}
	return strconv.FormatUint(uint64(id), 10)
}

// qosList names those that are given as "1", or as "+1" and "-1" where they change a parent's.
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

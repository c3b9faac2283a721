package ipc

import "slices"

// OwnerOf returns the user that the subordinate uid belongs to. If no range
// contains uid, OwnerOf returns uid itself. The ranges must be in ascending
// order.
func OwnerOf(ranges []Subuids, uid uint32) uint32 {
	i, found := slices.BinarySearchFunc(ranges, uid, func(r Subuids, uid uint32) int {
		switch {
		case r.Last < uid:
			return -1
		case r.First > uid:
			return 1
		}
		return 0
	})
	if found {
		return ranges[i].Owner
	}
	return uid
}

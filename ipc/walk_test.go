package ipc_test

import (
	"errors"
	"fmt"
	"hash/crc32"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"schedrestd/ipc"
	"schedrestd/ipc/work"
)

// minMessage returns the shortest message of the type that r describes. The
// strings and lists are empty, and every other field has its smallest permitted
// value.
func minMessage(r *ipc.Row) ipc.Message {
	return ipc.WalkFields(r.New(), func(field any, _ string, lo, _ int) {
		if v := reflect.ValueOf(field).Elem(); (v.Kind() == reflect.Uint8 || v.Kind() == reflect.Uint16) && lo > 0 {
			v.SetUint(uint64(lo))
		}
	})
}

// fullMessage returns a message of the type that r describes, with a value in
// each field.
func fullMessage(r *ipc.Row) ipc.Message { return fill(r.New()) }

// fill sets each field of m and returns m. It sets flags to true, enumerations
// to their maximum, lists to two elements, and the other fields to different
// values.
func fill(m ipc.Message) ipc.Message {
	n := 0
	return ipc.WalkFields(m, func(field any, label string, _, hi int) {
		n++
		switch v := reflect.ValueOf(field).Elem(); {
		case v.Type() == reflect.TypeFor[netip.AddrPort]():
			v.Set(reflect.ValueOf(netip.AddrPortFrom(netip.IPv6LinkLocalAllNodes().WithZone("eth0"), uint16(n))))
		case v.Type() == reflect.TypeFor[netip.Addr]():
			v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})))
		case label == "netip":
			v.Set(reflect.ValueOf(netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 32)))
		case label == "span":
			v.SetInt(int64(n) * int64(time.Millisecond))
		case label == "list":
			v.Set(reflect.MakeSlice(v.Type(), min(2, hi), 2))
		case label == "blob":
			v.SetBytes([]byte{byte(n)})
		case label == "bytes":
			v.SetUint(uint64(n))
		case v.Kind() == reflect.Bool:
			v.SetBool(true)
		case v.Kind() == reflect.String:
			v.SetString(fmt.Sprint("t", n))
		case v.CanInt():
			v.SetInt(int64(n))
		case hi > 0:
			v.SetUint(uint64(hi))
		default:
			v.SetUint(uint64(n))
		}
	})
}

// frameOf returns the frame in which m is sent.
func frameOf(t testing.TB, m ipc.Message) []byte {
	t.Helper()
	frame, err := ipc.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

const (
	tableFile   = "testdata/table.txt"
	versionFile = "ipc.go"
)

// TestTableVersion checks that testdata/table.txt and tableVersion match the
// protocol table and the fields of the messages.
func TestTableVersion(t *testing.T) {
	var b strings.Builder
	describe := func(m ipc.Message) {
		ipc.WalkFields(m, func(field any, label string, lo, hi int) {
			if label == "list" {
				v := reflect.ValueOf(field).Elem()
				v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			}
			name, _ := nameOf(reflect.ValueOf(m).Elem(), reflect.ValueOf(field))
			fmt.Fprintf(&b, "\t%s: %s", strings.TrimPrefix(name, "."), label)
			if hi > 0 {
				fmt.Fprintf(&b, " %d–%d", lo, hi)
			}
			b.WriteByte('\n')
		})
	}
	for _, r := range ipc.Table() {
		var routes []string
		for _, route := range r.Routes {
			routes = append(routes, fmt.Sprintf("%s to %s while %s", route.From.Names(), route.To.Names(), route.Phases))
		}
		fmt.Fprintf(&b, "%d %s: %s; %s bytes, %d descriptors; then %s\n", r.Kind, r.Name, strings.Join(routes, ", or "), r.Size(), r.FDs, r.Then)
		describe(r.New())
	}
	b.WriteString("Settings of Setup\n")
	describe(new(work.Setup).Opaque())
	sum := crc32.ChecksumIEEE([]byte(b.String()))
	if *update {
		code, err := os.ReadFile(versionFile)
		if err != nil {
			t.Fatal(err)
		}
		code = regexp.MustCompile(`(?m)^const tableVersion = .*$`).ReplaceAll(code, fmt.Appendf(nil, "const tableVersion = %#08x", sum))
		if err := errors.Join(os.WriteFile(versionFile, code, 0o644), os.WriteFile(tableFile, []byte(b.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(tableFile)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" || sum != ipc.Version {
		t.Errorf("the protocol table or a walk changed: run go test ./ipc -update, which gives it version %#08x (-%s +code):\n%s", sum, tableFile, d)
	}
}

// nameOf returns the path of a field inside v.
func nameOf(v, field reflect.Value) (name string, ok bool) {
	switch {
	case v.UnsafeAddr() == field.Pointer() && (v.Type() == field.Type().Elem() || v.Kind() == reflect.Array):
		return "", true
	case v.Kind() == reflect.Slice && v.Len() > 0:
		name, ok = nameOf(v.Index(0), field)
		return "[]" + name, ok
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if name, ok := nameOf(v.Field(i), field); ok {
				return "." + v.Type().Field(i).Name + name, true
			}
		}
	}
	return "", false
}

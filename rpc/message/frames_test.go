package message

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"schedrestd/rpc/codec"
)

// A capture is a real daemon's answer to a request.
type capture struct {
	ResponseType json.Number     `json:"response_type"`
	Frame        string          `json:"response_frame"` // the complete message, in hex
	Decoded      json.RawMessage `json:"decoded"`        // fields in the order of the wire
}

// bodies maps the message type of each captured answer to a function that
// creates a body of that type.
var bodies = map[string]func() Body{
	"8001": func() Body { return new(RC) },
	"2004": func() Body { return new(JobInfo) },
	"2008": func() Body { return new(NodeInfo) },
	"2010": func() Body { return new(PartitionInfo) },
	"1433": func() Body { return new(PersistRC) },
	"1490": func() Body { return new(AccountingStats) },
}

// TestFrames decodes answers that real daemons of Slurm 22.05, 24.11 and 26.05
// sent at every protocol version. Each field must have the same name and value
// as in the output of an independent decoder. Encoding the result must produce
// the same bytes.
func TestFrames(t *testing.T) {
	files, err := filepath.Glob("testdata/frames/*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	captured := map[codec.Version]int{}
	for _, file := range files {
		captured[protocolOf(t, file)]++
	}
	for v := codec.Oldest; v < codec.V2611; v++ { // TestSnapshot has the answers at V2611
		if captured[v] < 2 {
			t.Errorf("protocol %d: %d files of captured answers, want the controller's and the accounting daemon's", v, captured[v])
		}
	}
	seen := map[string]int{}
	for _, file := range files {
		for name, capture := range readCaptures(t, file) {
			body, known := bodies[capture.ResponseType.String()]
			if !known {
				continue
			}
			seen[capture.ResponseType.String()]++
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz")+"/"+name, func(t *testing.T) {
				checkFrame(t, protocolOf(t, file), capture, body())
			})
		}
	}
	for number := range bodies {
		if seen[number] < 8 {
			t.Errorf("%d captured answers of type %s, want at least one for each protocol", seen[number], number)
		}
	}
}

func checkFrame(t *testing.T, v codec.Version, capture capture, body Body) {
	raw := unhex(t, capture.Frame)
	if got := int(binary.BigEndian.Uint32(raw)); got != len(raw)-4 {
		t.Fatalf("length in front is %d, message has %d bytes", got, len(raw)-4)
	}
	var bodyBytes []byte
	if strings.HasPrefix(capture.ResponseType.String(), "14") {
		bodyBytes = raw[6:] // on a persistent connection: length, number, body
	} else {
		frame, err := ParseFrame(raw[4:])
		if err != nil {
			t.Fatal(err)
		}
		if frame.Header.Version != v {
			t.Fatalf("version %d, want %d", frame.Header.Version, v)
		}
		bodyBytes = frame.Body
	}

	var read []consumed
	c := codec.NewDecoder(v, bodyBytes)
	c.Trace(func(field string, at, n int, _ bool) { read = append(read, consumed{field, bodyBytes[at : at+n]}) })
	body.Walk(c)
	if err := c.Finish(); err != nil {
		t.Fatal(err)
	}
	compareValues(t, inWireOrder(capture.Decoded), read)

	again := codec.NewEncoder(v, nil)
	body.Walk(again)
	if err := again.Finish(); err != nil {
		t.Fatal(err)
	}
	compareBytes(t, bodyBytes, again.Bytes())
}

// A consumed value holds the bytes that were decoded for one field.
type consumed struct {
	field string
	bytes []byte
}

// misplaced matches the last_update of a license. The independent decoder
// prints it where the list's own last_update belongs.
var misplaced = regexp.MustCompile(`(?s)("last_update":\s*\d+),\s*("__i".*?"last_deficit":\s*\d+)`)

func inWireOrder(decoded json.RawMessage) json.RawMessage {
	return misplaced.ReplaceAllFunc(decoded, func(b []byte) []byte {
		part := misplaced.FindSubmatch(b)
		return fmt.Appendf(nil, "%s, %s", part[2], part[1])
	})
}

// compareValues compares the output of the independent decoder, in wire order,
// with the bytes that our package decoded for each field.
func compareValues(t *testing.T, decoded json.RawMessage, fields []consumed) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(decoded))
	dec.UseNumber()
	consume := func(field string) []byte {
		if len(fields) == 0 {
			t.Fatalf("nothing was read for field %s", field)
		}
		if fields[0].field == "container" && field != "container" {
			fields = fields[2:] // sent twice up to protocol 41; the independent decoder prints it once
		}
		if strings.HasSuffix(fields[0].field, "? 1 : 0") && field != fields[0].field {
			fields = fields[1:] // the independent decoder prints this field once, too
		}
		next := fields[0]
		fields = fields[1:]
		// The field is "" if the independent decoder does not name the value.
		// An element of a list, for example, has no name.
		if field != "" && next.field != field {
			t.Fatalf("read field %s where the wire has %s", next.field, field)
		}
		return next.bytes
	}
	var value func(field string, inList bool)
	value = func(field string, inList bool) {
		tok, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		switch tok := tok.(type) {
		case json.Delim:
			switch {
			case tok == '{':
				for dec.More() {
					key, _ := dec.Token()
					switch key {
					case "__i": // index that the independent decoder added
						_, _ = dec.Token()
					case "items": // the records of a loop, whose count was read before
						openList(t, dec)
						for dec.More() {
							value("", true)
						}
						_, _ = dec.Token()
					default:
						value(key.(string), false)
					}
				}
			case tok == '[':
				if peekBitmap(decoded[dec.InputOffset():]) {
					bits, _ := dec.Token()
					checkNumber(t, field, bits.(json.Number), consume(field))
					text, _ := dec.Token()
					checkText(t, field, text.(string), consume(field), consume(field))
					_, _ = dec.Token()
					return
				}
				count := binary.BigEndian.Uint32(consume(field))
				n := uint32(0)
				for ; dec.More(); n++ {
					value("", true)
				}
				if n != count {
					t.Errorf("field %s: %d elements, want %d", field, count, n)
				}
			}
			_, _ = dec.Token() // the closing delimiter
		case json.Number:
			checkNumber(t, field, tok, consume(field))
		case string:
			checkText(t, field, tok, consume(field), consume(field))
		case bool:
			if got := consume(field); (got[0] != 0) != tok {
				t.Errorf("field %s: % x, want %v", field, got, tok)
			}
		case nil: // null text has length 0 and no bytes; a null list or bit string is NO_VAL
			if got := binary.BigEndian.Uint32(consume(field)); got == 0 {
				consume(field)
			} else if got != math.MaxUint32-1 {
				t.Errorf("field %s: %d where null is", field, got)
			}
		}
	}
	value("", false)
	if len(fields) > 0 {
		t.Errorf("the walk read %d fields more than there are, first %s", len(fields), fields[0].field)
	}
}

func openList(t *testing.T, dec *json.Decoder) {
	t.Helper()
	if tok, _ := dec.Token(); tok != json.Delim('[') {
		t.Fatalf("%v where a list begins", tok)
	}
}

var bitmapText = regexp.MustCompile(`^\s*\d+,\s*"0x`)

func peekBitmap(rest []byte) bool { return bitmapText.Match(rest) }

func checkNumber(t *testing.T, field string, want json.Number, got []byte) {
	t.Helper()
	var u uint64
	for _, b := range got {
		u = u<<8 | uint64(b)
	}
	if want.String() == strconv.FormatUint(u, 10) || len(got) == 8 && want.String() == strconv.FormatInt(int64(u), 10) {
		return
	}
	// The independent decoder interprets the bits of a double as an integer,
	// and prints that integer divided by a million.
	if f, err := want.Float64(); err == nil && len(got) == 8 {
		if is := float64(u) / 1e6; math.Abs(f-is) <= 1e-9*math.Abs(f) {
			return
		}
	}
	t.Errorf("field %s: % x, want %s", field, got, want)
}

func checkText(t *testing.T, field, want string, length, text []byte) {
	t.Helper()
	if int(binary.BigEndian.Uint32(length)) != len(text) || string(text) != want+"\x00" {
		t.Errorf("field %s: %q, want %q", field, text, want)
	}
}

// compareBytes compares two encodings. It permits two differences: got may have
// null (00000000) where want has empty text (00000001 00), and the last bit of
// a scaled number may differ.
func compareBytes(t *testing.T, want, got []byte) {
	t.Helper()
	i, j := 0, 0
	for i < len(want) && j < len(got) {
		switch {
		case want[i] == got[j]:
			i, j = i+1, j+1
		case i >= 3 && bytes.Equal(want[i-3:min(i+2, len(want))], []byte{0, 0, 0, 1, 0}) && got[j] == 0:
			i, j = i+2, j+1
		case lastBit(want[:i+1], got[:j+1]):
			i, j = i+1, j+1
		default:
			t.Fatalf("encoded again, byte %d is %02x, want %02x (of %d, %d)", j, got[j], want[i], len(got), len(want))
		}
	}
	if len(want)-i != len(got)-j {
		t.Fatalf("encoded again: %d bytes left over, want %d", len(got)-j, len(want)-i)
	}
}

// lastBit reports whether want and got end in adjacent doubles.
func lastBit(want, got []byte) bool {
	if len(want) < 8 || len(got) < 8 {
		return false
	}
	a := binary.BigEndian.Uint64(want[len(want)-8:])
	b := binary.BigEndian.Uint64(got[len(got)-8:])
	f := math.Float64frombits(a)
	return (a-b == 1 || b-a == 1) && f > 1 && f < 1e30
}

func readCaptures(t *testing.T, file string) map[string]capture {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	captures := map[string]capture{}
	if err := json.NewDecoder(z).Decode(&captures); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return captures
}

func protocolOf(t *testing.T, file string) codec.Version {
	t.Helper()
	var v codec.Version
	name := filepath.Base(file)
	if _, err := fmt.Sscanf(name[strings.LastIndex(name, "-p"):], "-p%d", &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

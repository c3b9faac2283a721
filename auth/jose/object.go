package jose

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Object is a JSON object with unparsed members.
type Object map[string]json.RawMessage

// ParseObject parses data that consists of one JSON object. It refuses an
// object in which a name occurs twice (after unescaping). Parsers disagree
// about which of the two values to use, but the gateway and the daemon must use
// the same one. Unlike encoding/json, ParseObject distinguishes names that
// differ only in case.
func ParseObject(data []byte) (Object, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	o := Object{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, errors.New("not JSON")
		}
		name, ok := t.(string)
		if !ok {
			return nil, errors.New("not JSON")
		}
		if _, duplicate := o[name]; duplicate {
			return nil, errors.New("duplicate member")
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errors.New("not JSON")
		}
		o[name] = value
	}
	if _, err := d.Token(); err != nil {
		return nil, errors.New("not JSON")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("data after the object")
	}
	return o, nil
}

// Text returns the string value of the named member. ok is false if there is no
// such member.
func (o Object) Text(name string) (value string, ok bool, err error) {
	raw, ok := o[name]
	if !ok {
		return "", false, nil
	}
	if raw[0] != '"' {
		return "", true, errors.New("not a string")
	}
	err = json.Unmarshal(raw, &value) // before the return: the order in which Go evaluates its operands is open
	return value, true, err
}

// Texts returns the values of a member that is a text or a list of texts, and none
// if there is no such member.
func (o Object) Texts(name string) (values []string, err error) {
	raw, ok := o[name]
	if !ok {
		return nil, nil
	}
	if raw[0] == '[' {
		err = json.Unmarshal(raw, &values)
		return values, err
	}
	value, _, err := o.Text(name)
	return []string{value}, err
}

// Seconds returns the value of the named member, as Unix time. ok is false if
// there is no such member. RFC 7519 allows any number. Seconds accepts only
// whole numbers from 0 to the end of the year 9999, because parsers disagree
// about other numbers, such as 1e400.
func (o Object) Seconds(name string) (value int64, ok bool, err error) {
	raw, ok := o[name]
	if !ok {
		return 0, false, nil
	}
	const maxTime = 253402300799
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && n >= 0 && n <= maxTime {
		return n, true, nil
	}
	// A value that does not begin with a digit is negative, or not a number.
	if raw[0] < '0' || raw[0] > '9' {
		return 0, true, errors.New("not a time")
	}
	// The number is not parsed as a float. A float could lose a small fraction,
	// and the number would look whole. A large exponent is refused, because the
	// exact number could be too long to store.
	if _, exponent, _ := strings.Cut(strings.ToLower(string(raw)), "e"); exponent != "" {
		if n, err := strconv.Atoi(exponent); err != nil || n < -20 || n > 20 {
			return 0, true, errors.New("not a time")
		}
	}
	r, ok := new(big.Rat).SetString(string(raw))
	if !ok || !r.IsInt() || r.Num().Cmp(big.NewInt(maxTime)) > 0 {
		return 0, true, errors.New("not a time")
	}
	return r.Num().Int64(), true, nil
}

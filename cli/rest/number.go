package rest

import (
	"bytes"
	"encoding/json"
)

// A Number is a number that may be unset or infinite. Its zero value is unset.
type Number struct {
	Set, Infinite bool
	Value         float64
}

// UnmarshalJSON parses null, a plain number, or an object with the members
// "set", "infinite" and "number".
func (n *Number) UnmarshalJSON(text []byte) error {
	*n = Number{}
	if !bytes.HasPrefix(text, []byte("{")) {
		if bytes.Equal(text, []byte("null")) {
			return nil
		}
		n.Set = true
		return json.Unmarshal(text, &n.Value)
	}
	var object struct {
		Set      bool    `json:"set"`
		Infinite bool    `json:"infinite"`
		Number   float64 `json:"number"`
	}
	err := json.Unmarshal(text, &object)
	n.Set, n.Infinite, n.Value = object.Set && !object.Infinite, object.Infinite, object.Number
	return err
}

// Int returns the number, or 0 if it is unset or infinite.
func (n Number) Int() int64 {
	if !n.Set {
		return 0
	}
	return int64(n.Value)
}

// Words is a list of strings. In JSON it is an array, a single string, or null.
type Words []string

func (w *Words) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(text, []byte(`"`)) {
		*w = Words{""}
		return json.Unmarshal(text, &(*w)[0])
	}
	return json.Unmarshal(text, (*[]string)(w))
}

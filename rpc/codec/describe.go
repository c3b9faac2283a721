package codec

// Row is a row in the description of a record. Type is a type or a keyword of
// the protocol's tables. Field is the name of a field, the condition of an "if"
// or "stop_if" row, or the name of the count for a "loop" row.
type Row struct {
	Field string
	Type  string
}

// Rows returns the fields that a describer has recorded, in wire order.
func (c *Codec) Rows() []Row { return c.rows }

func (c *Codec) row(field, typ string) {
	if c.err == nil {
		c.rows = append(c.rows, Row{field, typ})
	}
}

// If reports whether the fields that follow it are present. It returns cond,
// which depends on earlier fields of the record. The caller encodes or decodes
// the fields in the body of an if statement, and calls EndIf after the
// statement. In a description, If adds a row with the condition in words, and
// returns true.
func (c *Codec) If(condition string, cond bool) bool {
	if c.mode == describing {
		c.row(condition, "if")
		return true
	}
	return cond && c.err == nil
}

// Else reports whether the fields that are the alternative to those of the
// preceding If are present.
func (c *Codec) Else(cond bool) bool {
	if c.mode == describing {
		c.row("", "else")
		return true
	}
	return cond && c.err == nil
}

// EndIf ends an If.
func (c *Codec) EndIf() {
	if c.mode == describing {
		c.row("", "endif")
	}
}

// StopIf reports whether the record ends here. It returns cond, which depends
// on earlier fields of the record.
func (c *Codec) StopIf(condition string, cond bool) bool {
	if c.mode == describing {
		c.row(condition, "stop_if")
		return false
	}
	return cond
}

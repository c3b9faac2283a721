package codec

// Row is one line of a walk's description, in the words of the protocol's
// tables: Field is a name, or the condition of an "if", "stop_if" or "loop" row.
type Row struct {
	Field string
	Type  string
}

// Rows is what a describer has seen, in the wire's order.
func (c *Codec) Rows() []Row { return c.rows }

func (c *Codec) row(field, typ string) {
	if c.err == nil {
		c.rows = append(c.rows, Row{field, typ})
	}
}

// If tells whether the fields that follow are there: cond, which depends on
// fields already walked. The fields go into the if's body, and EndIf behind it. A
// description has them always, behind a row with the condition in words.
func (c *Codec) If(condition string, cond bool) bool {
	if c.mode == describing {
		c.row(condition, "if")
		return true
	}
	return cond && c.err == nil
}

// Else is If for the other branch of the condition before.
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

// StopIf tells whether the record ends here: cond, which depends on fields already walked.
func (c *Codec) StopIf(condition string, cond bool) bool {
	if c.mode == describing {
		c.row(condition, "stop_if")
		return false
	}
	return cond
}

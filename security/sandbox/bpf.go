package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// A filter is a classic BPF program. It reads the number, the architecture and
// the six 64-bit arguments of a system call, 32 bits at a time, and returns a
// verdict. Jumps go forward only. A conditional jump reaches at most 255
// instructions, so a longer jump goes through an unconditional jump ("ja").

// Offsets in struct seccomp_data on little-endian machines.
const (
	atNumber = 0
	atArch   = 4
	atArgs   = 16
)

// A label stands for a position in a program. That position may not be known
// yet. The constant next stands for the instruction after the jump.
type label int

const next label = 0

type instruction struct {
	code   uint16
	k      uint32
	jt, jf label // targets of a conditional jump; a "ja" uses only jt
}

// assembler collects instructions. Its method link converts them for the
// kernel.
type assembler struct {
	list      []instruction
	positions []int // position of each label
}

func (a *assembler) emit(i instruction) { a.list = append(a.list, i) }

func (a *assembler) newLabel() label {
	if a.positions == nil {
		a.positions = []int{-1} // label 0 is next
	}
	a.positions = append(a.positions, -1)
	return label(len(a.positions) - 1)
}

// place sets l to the next instruction.
func (a *assembler) place(l label) { a.positions[l] = len(a.list) }

func (a *assembler) load(offset uint32) {
	a.emit(instruction{code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, k: offset})
}

func (a *assembler) and(mask uint32) {
	if mask != ^uint32(0) {
		a.emit(instruction{code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, k: mask})
	}
}

func (a *assembler) equal(k uint32, yes, no label) {
	a.emit(instruction{unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, k, yes, no})
}

func (a *assembler) atLeast(k uint32, yes, no label) {
	a.emit(instruction{unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, k, yes, no})
}

func (a *assembler) jump(to label) {
	a.emit(instruction{code: unix.BPF_JMP | unix.BPF_JA, jt: to})
}

func (a *assembler) ret(verdict uint32) {
	a.emit(instruction{code: unix.BPF_RET | unix.BPF_K, k: verdict})
}

// link replaces labels with distances.
func (a *assembler) link() ([]unix.SockFilter, error) {
	const maxInstructions = 4096 // BPF_MAXINSNS
	if len(a.list) > maxInstructions {
		return nil, fmt.Errorf("a filter of %d instructions: the kernel accepts at most %d", len(a.list), maxInstructions)
	}
	program := make([]unix.SockFilter, len(a.list))
	for pos, i := range a.list {
		yes, no := a.distance(pos, i.jt), a.distance(pos, i.jf)
		out := unix.SockFilter{Code: i.code, K: i.k}
		switch {
		case yes < 0 || no < 0:
			return nil, fmt.Errorf("instruction %d jumps nowhere", pos)
		case i.code == unix.BPF_JMP|unix.BPF_JA:
			out.K = uint32(yes)
		case yes > 255 || no > 255:
			return nil, fmt.Errorf("instruction %d jumps by %d and %d: the maximum is 255", pos, yes, no)
		default:
			out.Jt, out.Jf = uint8(yes), uint8(no)
		}
		program[pos] = out
	}
	return program, nil
}

func (a *assembler) distance(from int, to label) int {
	if to == next {
		return 0
	}
	return a.positions[to] - from - 1
}

package upgrade

import (
	"fmt"
	"strings"
)

const (
	// around a change, this many lines are shown.
	contextLines = 3
	// largestTable bounds the comparison; texts that differ more are shown as replaced.
	largestTable = 16 << 20
)

type op struct {
	kind byte // ' ', '-', '+'
	text string
}

// unified is the difference of two texts in the usual form; empty when they are equal.
func unified(name, before, after string) string {
	if before == after {
		return ""
	}
	ops := compare(lines(before), lines(after))
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s (in the cluster)\n+++ %s (new)\n", name, name)
	for _, h := range hunks(ops) {
		h.write(&b, ops)
	}
	return b.String()
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// compare finds the lines that both have, by the longest common subsequence.
func compare(a, b []string) []op {
	var head, tail []op
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, op{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, op{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	ops := append(head, middle(a, b)...)
	for i := len(tail) - 1; i >= 0; i-- {
		ops = append(ops, tail[i])
	}
	return ops
}

func middle(a, b []string) []op {
	var ops []op
	if len(a)*len(b) > largestTable {
		for _, l := range a {
			ops = append(ops, op{'-', l})
		}
		for _, l := range b {
			ops = append(ops, op{'+', l})
		}
		return ops
	}
	width := len(b) + 1
	common := make([]int32, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			ops = append(ops, op{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || (i < len(a) && common[(i+1)*width+j] >= common[i*width+j+1]):
			ops = append(ops, op{'-', a[i]})
			i++
		default:
			ops = append(ops, op{'+', b[j]})
			j++
		}
	}
	return ops
}

// hunk is a range of operations.
type hunk struct{ from, to int }

func hunks(ops []op) []hunk {
	var out []hunk
	for i, o := range ops {
		if o.kind == ' ' {
			continue
		}
		from, to := max(0, i-contextLines), min(len(ops), i+contextLines+1)
		if n := len(out); n > 0 && from <= out[n-1].to {
			out[n-1].to = to
		} else {
			out = append(out, hunk{from, to})
		}
	}
	return out
}

func (h hunk) write(b *strings.Builder, ops []op) {
	oldLine, newLine := 1, 1
	for _, o := range ops[:h.from] {
		if o.kind != '+' {
			oldLine++
		}
		if o.kind != '-' {
			newLine++
		}
	}
	oldCount, newCount := 0, 0
	for _, o := range ops[h.from:h.to] {
		if o.kind != '+' {
			oldCount++
		}
		if o.kind != '-' {
			newCount++
		}
	}
	fmt.Fprintf(b, "@@ -%d,%d +%d,%d @@\n", oldLine, oldCount, newLine, newCount)
	for _, o := range ops[h.from:h.to] {
		fmt.Fprintf(b, "%c%s\n", o.kind, o.text)
	}
}

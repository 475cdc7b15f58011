package tsql

import (
	"encoding/hex"
	"strings"
	"time"
)

// Ident quotes a name as a bracketed identifier: ] is doubled (FG 1.3).
func Ident(name string) string {
	return "[" + strings.ReplaceAll(name, "]", "]]") + "]"
}

// Literal quotes text as a Unicode string literal: ' is doubled.
func Literal(text string) string {
	return "N'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// Binary writes bytes as a hexadecimal constant; no bytes are 0x.
func Binary(b []byte) string {
	return "0x" + strings.ToUpper(hex.EncodeToString(b))
}

// timeLayout is ISO 8601 with the seven digits of datetime2(7); it does not depend on SET LANGUAGE or DATEFORMAT.
const timeLayout = "2006-01-02T15:04:05.0000000"

// Time writes an instant as the text of a datetime2(7), in UTC, to compare with SYSUTCDATETIME().
func Time(t time.Time) string {
	return "'" + t.UTC().Format(timeLayout) + "'"
}

// date writes the yyyymmdd that certificate options take (FG 2.1).
func date(t time.Time) string {
	return "'" + t.UTC().Format("20060102") + "'"
}

// batch joins statements, one a line, each with its semicolon.
func batch(statements ...string) string {
	size := 0
	for _, s := range statements {
		size += len(s) + len(";\n")
	}
	var b strings.Builder
	b.Grow(size)
	for _, s := range statements {
		if s == "" {
			continue
		}
		b.WriteString(s)
		b.WriteString(";\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// when guards one statement by a condition: IF … BEGIN … END works around ALTER and
// DROP AVAILABILITY GROUP (FG 1.3), not around CREATE.
func when(condition string, statements ...string) string {
	return "IF " + condition + "\nBEGIN\n" + indent(batch(statements...)) + "\nEND"
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}

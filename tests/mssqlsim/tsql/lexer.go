package tsql

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokIdent
	tokQuoted // [name] or "name"
	tokVar    // @name or @@name
	tokNumber
	tokString
	tokNString
	tokBinary // 0x…
	tokOp
)

// token is one lexical unit. text is the source, val the content without quotes, kw the upper-case
// form of an unquoted identifier.
type token struct {
	kind tokenKind
	line int
	pos  int // byte offset of the first character
	end  int
	text string
	val  string
	kw   string
}

func errSyntax(number int32, class, state uint8, line int, format string, args ...any) *stmtError {
	return &stmtError{m: *sqltypes.Errf(number, class, state, format, args...), line: line, abort: true}
}

// lex splits a batch into tokens; the last one is tokEOF.
func lex(src string) ([]token, *stmtError) {
	toks := make([]token, 0, len(src)/5+8)
	line, i := 1, 0
	for {
		// white space and comments
		for i < len(src) {
			c := src[i]
			switch {
			case c == '\n':
				line++
				i++
			case c <= ' ':
				i++
			case c == '-' && strings.HasPrefix(src[i:], "--"):
				n := strings.IndexByte(src[i:], '\n')
				if n < 0 {
					i = len(src)
				} else {
					i += n
				}
			case c == '/' && strings.HasPrefix(src[i:], "/*"):
				depth, j := 1, i+2
				for j < len(src) && depth > 0 {
					switch {
					case strings.HasPrefix(src[j:], "*/"):
						depth--
						j += 2
					case strings.HasPrefix(src[j:], "/*"):
						depth++
						j += 2
					default:
						if src[j] == '\n' {
							line++
						}
						j++
					}
				}
				if depth > 0 {
					return nil, errSyntax(113, 15, 1, line, "Missing end comment mark '*/'.")
				}
				i = j
			case c >= utf8.RuneSelf:
				r, w := utf8.DecodeRuneInString(src[i:])
				if !unicode.IsSpace(r) && r != '\uFEFF' {
					goto token
				}
				i += w
			default:
				goto token
			}
		}
	token:
		t := token{line: line, pos: i, end: i}
		if i >= len(src) {
			return append(toks, t), nil
		}
		c := src[i]
		switch {
		case c == '\'':
			val, n, nl, ok := quoted(src[i:], '\'')
			if !ok {
				return nil, errSyntax(105, 15, 1, line, "Unclosed quotation mark after the character string '%s'.", val)
			}
			t.kind, t.val = tokString, val
			i += n
			line += nl
		case (c == 'N' || c == 'n') && i+1 < len(src) && src[i+1] == '\'':
			val, n, nl, ok := quoted(src[i+1:], '\'')
			if !ok {
				return nil, errSyntax(105, 15, 1, line, "Unclosed quotation mark after the character string '%s'.", val)
			}
			t.kind, t.val = tokNString, val
			i += n + 1
			line += nl
		case c == '[' || c == '"':
			closing := byte('"')
			if c == '[' {
				closing = ']'
			}
			val, n, nl, ok := quoted(src[i:], closing)
			if !ok {
				return nil, errSyntax(105, 15, 1, line, "Unclosed quotation mark after the character string '%s'.", val)
			}
			if val == "" {
				return nil, errSyntax(1038, 15, 4, line, "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name. For other statements, look for empty alias names. Aliases defined as \"\" or [] are not allowed. Change the alias to a valid name.")
			}
			if sqltypes.TextLen(val) > 128 {
				return nil, errSyntax(103, 15, 4, line, "The identifier that starts with '%s' is too long. Maximum length is 128.", sqltypes.CutText(val, 128))
			}
			t.kind, t.val = tokQuoted, val
			i += n
			line += nl
		case c == '@':
			j := i + 1
			for j < len(src) && src[j] == '@' {
				j++
			}
			j = identEnd(src, j)
			t.kind = tokVar
			i = j
		case c == '0' && i+1 < len(src) && (src[i+1] == 'x' || src[i+1] == 'X'):
			j := i + 2
			for j < len(src) && isHex(src[j]) {
				j++
			}
			t.kind = tokBinary
			i = j
		case c >= '0' && c <= '9' || c == '.' && i+1 < len(src) && src[i+1] >= '0' && src[i+1] <= '9':
			t.kind = tokNumber
			i = numberEnd(src, i)
		case isIdentStart(src[i:]):
			t.kind = tokIdent
			i = identEnd(src, i)
		default:
			t.kind = tokOp
			i += opLen(src[i:])
		}
		t.end = i
		t.text = src[t.pos:i]
		switch t.kind {
		case tokIdent:
			t.val = t.text
			t.kw = strings.ToUpper(t.text)
			if len(t.text) > 128 && sqltypes.TextLen(t.text) > 128 {
				return nil, errSyntax(103, 15, 4, t.line, "The identifier that starts with '%s' is too long. Maximum length is 128.", sqltypes.CutText(t.text, 128))
			}
		case tokVar, tokNumber, tokBinary:
			t.val = t.text
		case tokOp:
			t.val = t.text
			t.kw = t.text
		}
		toks = append(toks, t)
	}
}

// quoted reads a quoted run that starts at s[0]; the closing character is doubled inside it.
func quoted(s string, closing byte) (val string, n, newlines int, ok bool) {
	start, i := 1, 1
	var b strings.Builder
	for i < len(s) {
		c := s[i]
		if c == '\n' {
			newlines++
		}
		if c != closing {
			i++
			continue
		}
		if i+1 < len(s) && s[i+1] == closing {
			b.WriteString(s[start : i+1])
			i += 2
			start = i
			continue
		}
		if b.Len() == 0 {
			return s[start:i], i + 1, newlines, true
		}
		b.WriteString(s[start:i])
		return b.String(), i + 1, newlines, true
	}
	b.WriteString(s[start:])
	return b.String(), len(s), newlines, false
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func isIdentStart(s string) bool {
	c := s[0]
	if c < utf8.RuneSelf {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '#'
	}
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsLetter(r)
}

func identEnd(s string, i int) int {
	for i < len(s) {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '#' || c == '$' || c == '@' {
				i++
				continue
			}
			return i
		}
		r, w := utf8.DecodeRuneInString(s[i:])
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) {
			return i
		}
		i += w
	}
	return i
}

func numberEnd(s string, i int) int {
	digits := func() {
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
	}
	digits()
	if i < len(s) && s[i] == '.' {
		i++
		digits()
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && s[j] >= '0' && s[j] <= '9' || j >= len(s) || !isIdentStart(s[j:]) {
			i = j
			digits()
		}
	}
	return i
}

func opLen(s string) int {
	if len(s) >= 2 {
		switch s[:2] {
		case "<=", ">=", "<>", "!=", "!<", "!>", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "::":
			return 2
		}
	}
	if s[0] < utf8.RuneSelf {
		return 1
	}
	_, w := utf8.DecodeRuneInString(s)
	return w
}

// reserved tells whether an unquoted identifier is a reserved keyword: it cannot be a name, and a
// syntax error near it is 156 rather than 102.
func reserved(kw string) bool {
	switch kw {
	case "ADD", "ALL", "ALTER", "AND", "ANY", "AS", "ASC", "AUTHORIZATION", "BACKUP", "BEGIN", "BETWEEN", "BREAK",
		"BROWSE", "BULK", "BY", "CASCADE", "CASE", "CHECK", "CHECKPOINT", "CLOSE", "CLUSTERED", "COALESCE",
		"COLLATE", "COLUMN", "COMMIT", "COMPUTE", "CONSTRAINT", "CONTAINS", "CONTAINSTABLE", "CONTINUE",
		"CONVERT", "CREATE", "CROSS", "CURRENT", "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP",
		"CURRENT_USER", "CURSOR", "DATABASE", "DBCC", "DEALLOCATE", "DECLARE", "DEFAULT", "DELETE", "DENY",
		"DESC", "DISTINCT", "DISTRIBUTED", "DOUBLE", "DROP", "ELSE", "END", "ERRLVL", "ESCAPE", "EXCEPT",
		"EXEC", "EXECUTE", "EXISTS", "EXIT", "EXTERNAL", "FETCH", "FILE", "FILLFACTOR", "FOR", "FOREIGN",
		"FREETEXT", "FREETEXTTABLE", "FROM", "FULL", "FUNCTION", "GOTO", "GRANT", "GROUP", "HAVING", "HOLDLOCK",
		"IDENTITY", "IDENTITY_INSERT", "IDENTITYCOL", "IF", "IN", "INDEX", "INNER", "INSERT", "INTERSECT",
		"INTO", "IS", "JOIN", "KEY", "KILL", "LEFT", "LIKE", "LINENO", "MERGE", "NATIONAL", "NOCHECK",
		"NONCLUSTERED", "NOT", "NULL", "NULLIF", "OF", "OFF", "OFFSETS", "ON", "OPEN", "OPENDATASOURCE",
		"OPENQUERY", "OPENROWSET", "OPENXML", "OPTION", "OR", "ORDER", "OUTER", "OVER", "PERCENT", "PIVOT",
		"PLAN", "PRIMARY", "PRINT", "PROC", "PROCEDURE", "PUBLIC", "RAISERROR", "READ", "READTEXT",
		"RECONFIGURE", "REFERENCES", "REPLICATION", "RESTORE", "RESTRICT", "RETURN", "REVERT", "REVOKE",
		"RIGHT", "ROLLBACK", "ROWCOUNT", "ROWGUIDCOL", "RULE", "SAVE", "SCHEMA", "SELECT", "SESSION_USER",
		"SET", "SETUSER", "SHUTDOWN", "SOME", "STATISTICS", "SYSTEM_USER", "TABLE", "TABLESAMPLE", "TEXTSIZE",
		"THEN", "TO", "TOP", "TRAN", "TRANSACTION", "TRIGGER", "TRUNCATE", "TRY_CONVERT", "TSEQUAL", "UNION",
		"UNIQUE", "UNPIVOT", "UPDATE", "UPDATETEXT", "USE", "USER", "VALUES", "VARYING", "VIEW", "WAITFOR",
		"WHEN", "WHERE", "WHILE", "WITH", "WITHIN", "WRITETEXT":
		return true
	}
	return false
}

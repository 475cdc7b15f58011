package logs

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Line of a log, from anywhere.
type Line struct {
	At     time.Time
	Source string // replica, "replica/container", or "operator"
	Level  string // error, warn, info, debug; empty when unknown
	Text   string
	// Server: SQL Server itself wrote it; it is a line of its error log.
	Server bool
}

// Parse reads one line as the API server gives it with time stamps. Lines of our own
// processes are JSON; everything else is text of SQL Server.
func Parse(source, raw string) Line {
	l := Line{Source: source, Text: strings.TrimRight(raw, "\r\n")}
	if stamp, rest, ok := strings.Cut(l.Text, " "); ok {
		if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
			l.At, l.Text = at, rest
		}
	}
	m, msg := document(l.Text)
	if m == nil {
		l.Server = true
		return l
	}
	level, _ := m["level"].(string)
	l.Level = strings.ToLower(level)
	for _, skip := range []string{"msg", "level", "ts", "time", "stacktrace", "caller", "logger"} {
		delete(m, skip)
	}
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		switch v := m[k].(type) {
		case string:
			msg += fmt.Sprintf(" %s=%s", k, v)
		default:
			b, err := json.Marshal(v)
			if err == nil {
				msg += fmt.Sprintf(" %s=%s", k, b)
			}
		}
	}
	l.Text = msg
	return l
}

// document is a JSON line with a message; nil for anything else.
func document(text string) (m map[string]any, msg string) {
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &m) != nil {
		return nil, ""
	}
	if msg, _ = m["msg"].(string); msg == "" {
		return nil, ""
	}
	return m, msg
}

// severity orders levels; a line without one is information.
func severity(level string) int {
	switch level {
	case "error", "fatal", "dpanic", "panic":
		return 3
	case "warn", "warning":
		return 2
	case "debug", "trace":
		return 0
	}
	return 1
}

// Keep tells whether a line passes --level.
func Keep(l Line, least string) bool { return severity(l.Level) >= severity(least) }

// classifier gives lines of SQL Server's error log a level: one line names an error
// number and a severity, and the next one of the same session is its text.
type classifier struct{ session string }

// errorLine: severities from 11 on are errors (those below are information).
const leastErrorSeverity = 11

func (c *classifier) classify(l Line, pattern *regexp.Regexp) Line {
	if !l.Server {
		return l
	}
	session := sessionOf(l.Text)
	if m := pattern.FindStringSubmatch(l.Text); m != nil {
		c.session = ""
		if n, err := strconv.Atoi(m[1]); err == nil && n >= leastErrorSeverity {
			l.Level, c.session = "error", session
		}
		return l
	}
	if c.session != "" && c.session == session {
		l.Level = "error"
	}
	c.session = ""
	return l
}

// errorPattern finds "Error: 35262, Severity: 17, State: 1.".
func errorPattern() *regexp.Regexp {
	return regexp.MustCompile(`Error: \d+, Severity: (\d+), State: \d+`)
}

// sessionOf is the third word of an error log's line: "spid9s".
func sessionOf(text string) string {
	words := strings.Fields(text)
	if len(words) < 3 {
		return ""
	}
	return words[2]
}

// withoutTime takes SQL Server's own time away, where ours stands before it.
func withoutTime(text string) string {
	const layout = "2006-01-02 15:04:05.00"
	if len(text) > len(layout) && text[len(layout)] == ' ' {
		if _, err := time.Parse(layout, text[:len(layout)]); err == nil {
			return strings.TrimLeft(text[len(layout):], " ")
		}
	}
	return text
}

// Concerns tells whether a line of the operator is about this group or instance: one of
// its values is the name, namespace/name or a replica, and it names no other namespace.
func Concerns(raw, namespace, name string, replicas ...string) bool {
	at := strings.IndexByte(raw, '{')
	if at < 0 {
		return false
	}
	m, _ := document(strings.TrimRight(raw[at:], "\r\n"))
	if m == nil {
		return false
	}
	if ns, ok := m["namespace"].(string); ok && ns != "" && ns != namespace {
		return false
	}
	return mentions(m, func(s string) bool {
		if s == name || s == namespace+"/"+name || slices.Contains(replicas, s) || slices.Contains(replicas, strings.TrimPrefix(s, namespace+"/")) {
			return true
		}
		rest, ok := strings.CutPrefix(s, name+"-")
		return ok && len(replicas) == 0 && number(rest)
	})
}

func number(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

func mentions(v any, is func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return is(v)
	case map[string]any:
		for k, x := range v {
			if k != "msg" && mentions(x, is) {
				return true
			}
		}
	case []any:
		for _, x := range v {
			if mentions(x, is) {
				return true
			}
		}
	}
	return false
}

package logs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Line of a log, from anywhere.
type Line struct {
	At     time.Time
	Source string // replica, or "operator"
	Level  string // error, info, debug; empty when unknown
	Text   string
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
	var m map[string]any
	if !strings.HasPrefix(l.Text, "{") || json.Unmarshal([]byte(l.Text), &m) != nil {
		return l
	}
	msg, _ := m["msg"].(string)
	if msg == "" {
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

// severity orders levels; a line without one is information.
func severity(level string) int {
	switch level {
	case "error", "fatal", "dpanic", "panic":
		return 2
	case "debug", "trace":
		return 0
	}
	return 1
}

// Keep tells whether a line passes --level.
func Keep(l Line, least string) bool { return severity(l.Level) >= severity(least) }

// Concerns tells whether a line of the operator is about this group.
func Concerns(raw, namespace, name string) bool {
	return strings.Contains(raw, `"`+name+`"`) || strings.Contains(raw, namespace+"/"+name) ||
		strings.Contains(raw, `"`+name+"-")
}

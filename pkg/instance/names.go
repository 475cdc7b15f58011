//go:build linux

package instance

import "strings"

// equalName compares names of servers and pods, whose case may differ (FG 7.4).
func equalName(a, b string) bool { return strings.EqualFold(a, b) }

func lower(s string) string { return strings.ToLower(s) }

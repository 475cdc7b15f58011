package reasons

import "strings"

// Names lists who share a trouble, so that its cause is told once: "a", "a and b", "a, b
// and c".
func Names(names []string) string {
	n := len(names)
	if n < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
}

package reasons

import (
	"fmt"
	"strings"
)

// Runbook is docs/runbooks/README.md.
func Runbook() string {
	var b strings.Builder
	b.WriteString(`# Runbooks

One section for each reason that a condition, an event, ` + "`status` or `check`" + ` can show. Start with
` + "`kubectl mssql status NAME -v`" + `; the message names replicas and numbers. ` + "`NAME`" + ` is the availability group.
The same text without a browser: ` + "`kubectl mssql explain CODE`" + ` (or the reason, or a rule such as R12).

This page is generated from pkg/reasons; ` + "`make golden`" + ` writes it.
`)
	titles := []struct {
		area  Area
		title string
	}{
		{AreaFailover, "Nobody can write, or nobody could be promoted"},
		{AreaReplica, "A replica does not come back"},
		{AreaEnvironment, "Input and environment"},
		{AreaCheck, "Checks"},
		{AreaPlugin, "The plugin"},
		{AreaRule, "Rules that refuse a replica"},
		{AreaCalm, "Nothing to do"},
	}
	all := All()
	for _, t := range titles {
		first := true
		for _, e := range all {
			if e.Area() != t.area {
				continue
			}
			if first {
				fmt.Fprintf(&b, "\n## %s\n", t.title)
				first = false
			}
			fmt.Fprintf(&b, "\n### %s\n%s · %s\n", e.Name, e.Code, e.Summary)
			bullets(&b, "Look", e.Look)
			bullets(&b, "Do", e.Do)
		}
	}
	return b.String()
}

func bullets(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	if len(lines) == 1 {
		fmt.Fprintf(b, "**%s:** %s\n", title, code(lines[0]))
		return
	}
	fmt.Fprintf(b, "**%s:**\n\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "- %s\n", code(l))
	}
}

// code sets commands apart: a command is what follows the last ": kubectl" or is the whole line.
func code(line string) string {
	if strings.Contains(line, "`") {
		return line
	}
	at := strings.Index(line, "kubectl ")
	if at < 0 || (at > 0 && !strings.HasSuffix(line[:at], ": ")) || strings.Contains(line[at:], ". ") {
		return line
	}
	for _, end := range []string{" shows ", " names ", " lists ", " makes ", ", then ", ", or "} {
		if i := strings.Index(line[at:], end); i > 0 {
			return line[:at] + "`" + line[at:at+i] + "`" + line[at+i:]
		}
	}
	return line[:at] + "`" + line[at:] + "`"
}

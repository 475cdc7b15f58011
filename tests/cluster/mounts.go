package cluster

import "strings"

// parseMountsBelow reads the fifth field of proc_pid_mountinfo(5), in which
// blanks are written in octal.
func parseMountsBelow(mountinfo, root string) []string {
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var out []string
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		if point := unescape.Replace(f[4]); within(point, root) {
			out = append(out, point)
		}
	}
	return out
}

package instance

import (
	"fmt"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// settingName is section.key of mssql.conf (FG 7.3).
var settingName = regexp.MustCompile(`^[A-Za-z]+\.[A-Za-z0-9]+$`)

// ownedSettings are written by the manager alone.
func ownedSettings() map[string]bool {
	return map[string]bool{
		"hadr.hadrenabled": true, "network.tcpport": true, "network.tlscert": true,
		"network.tlskey": true, "eula.accepteula": true,
	}
}

func validateSetting(key, value string) error {
	switch {
	case !settingName.MatchString(key):
		return fmt.Errorf("mssqlConf: %q is not of the form section.key", key)
	case ownedSettings()[strings.ToLower(key)]:
		return fmt.Errorf("mssqlConf: %q is owned by the operator", key)
	case strings.ContainsAny(value, "\r\n\x00"):
		return fmt.Errorf("mssqlConf: the value of %q holds a line break", key)
	}
	return nil
}

// renderConf is the whole of mssql.conf: the user's settings, and over them the
// manager's own. Sections and keys are sorted, so that equal input gives equal text.
// Microsoft's file has its licence section in capitals, [EULA]; all others are lower case.
func renderConf(c Config, tls tlsPaths) string {
	settings := map[string]string{}
	for key, value := range c.MSSQLConf {
		settings[key] = value
	}
	settings["EULA.accepteula"] = "Y"
	settings["network.tcpport"] = strconv.Itoa(int(c.Port))
	if c.Kind == KindAvailabilityGroup {
		settings["hadr.hadrenabled"] = "1"
	}
	if tls.Cert != "" {
		settings["network.tlscert"], settings["network.tlskey"] = tls.Cert, tls.Key
	}
	if _, set := settings["memory.memorylimitmb"]; !set && c.MemoryLimitMB > 0 {
		settings["memory.memorylimitmb"] = strconv.FormatInt(c.MemoryLimitMB, 10)
	}
	if _, set := settings["telemetry.customerfeedback"]; !set {
		settings["telemetry.customerfeedback"] = "false"
	}
	sections := map[string][]string{}
	for key, value := range settings {
		section, name, _ := strings.Cut(key, ".")
		sections[section] = append(sections[section], name+" = "+value)
	}
	names := make([]string, 0, len(sections))
	for name := range sections {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	b.WriteString("# Written by kubectl-mssql at every start. Change spec.mssqlConf of the resource instead.\n")
	for _, name := range names {
		lines := sections[name]
		sort.Strings(lines)
		fmt.Fprintf(&b, "[%s]\n%s\n", name, strings.Join(lines, "\n"))
	}
	return b.String()
}

// tlsPaths are the TDS certificate and key as sqlservr sees them; empty when there are none.
type tlsPaths struct{ Cert, Key string }

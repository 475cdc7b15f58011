package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// version reads a product year or a full version number; 0 means that it is neither.
func version(s string) (major int, full string) {
	switch s {
	case "2017":
		return 14, ""
	case "2019":
		return 15, ""
	case "2022":
		return 16, ""
	case "2025":
		return 17, ""
	}
	parts := strings.Split(s, ".")
	if len(parts) != 4 {
		return 0, ""
	}
	for _, p := range parts {
		if n, err := strconv.Atoi(p); err != nil || n < 0 {
			return 0, ""
		}
	}
	if major, _ = strconv.Atoi(parts[0]); major < 14 || major > 17 {
		return 0, ""
	}
	return major, s
}

// edition maps MSSQL_PID to SERVERPROPERTY('Edition') (field guide §7.2, §8).
func edition(pid string, major int) (string, error) {
	switch strings.ToLower(pid) {
	case "", "developer":
		return "Developer Edition (64-bit)", nil
	case "evaluation":
		return "Enterprise Evaluation Edition (64-bit)", nil
	case "express":
		return "Express Edition (64-bit)", nil
	case "standard":
		return "Standard Edition (64-bit)", nil
	case "enterprise":
		return "Enterprise Edition (64-bit)", nil
	case "enterprisecore":
		return "Enterprise Edition: Core-based Licensing (64-bit)", nil
	case "web":
		if major < 17 {
			return "Web Edition (64-bit)", nil
		}
	case "standarddeveloper":
		if major >= 17 {
			return "Standard Developer Edition (64-bit)", nil
		}
	case "enterprisedeveloper":
		if major >= 17 {
			return "Enterprise Developer Edition (64-bit)", nil
		}
	}
	if groups := strings.Split(pid, "-"); len(groups) == 5 && len(pid) == 29 {
		return "Enterprise Edition (64-bit)", nil
	}
	return "", settingsError(fmt.Sprintf("MSSQL_PID %q is neither an edition of this version nor a product key", pid))
}

// passwordProblem applies the policy of field guide §7.6 and says what is wrong.
func passwordProblem(password string) string {
	n := len([]rune(password))
	var upper, lower, digit, symbol int
	for _, r := range password {
		switch {
		case unicode.IsUpper(r):
			upper = 1
		case unicode.IsLower(r):
			lower = 1
		case unicode.IsDigit(r):
			digit = 1
		default:
			symbol = 1
		}
	}
	switch {
	case n == 0:
		return "no password was given; set MSSQL_SA_PASSWORD"
	case n < 8:
		return "the password is too short: it must be at least 8 characters"
	case n > 128:
		return "the password is too long: it must be at most 128 characters"
	case upper+lower+digit+symbol < 3:
		return "the password is not complex enough: it needs characters of three of the four sets upper case, lower case, digits and symbols"
	default:
		return ""
	}
}

// maxServerName is the NetBIOS limit (field guide §7.4).
const maxServerName = 15

// serverName derives @@SERVERNAME from the host name: its first label, cut to 15
// characters.
func serverName(host string) (name string, cut bool) {
	name, _, _ = strings.Cut(host, ".")
	if len(name) > maxServerName {
		return name[:maxServerName], true
	}
	return name, false
}

// timings scales the engine's defaults and then sets single ones.
func timings(scale, list string) (engine.Timings, error) {
	t := engine.DefaultTimings()
	f, err := strconv.ParseFloat(scale, 64)
	if err != nil || f < 0 || f > 1000 {
		return t, settingsError(fmt.Sprintf("MSSQLSIM_TIME_SCALE is %q, want a factor from 0 to 1000", scale))
	}
	v := reflect.ValueOf(&t).Elem()
	for i := range v.NumField() {
		if d, ok := v.Field(i).Interface().(time.Duration); ok {
			v.Field(i).SetInt(max(int64(float64(d)*f), int64(time.Millisecond)))
		}
	}
	return t, assign("MSSQLSIM_TIMINGS", list, &t)
}

// assign sets fields of a struct of bools, durations and small numbers from Name=value,….
// Names are compared without case.
func assign(what, list string, target any) error {
	v := reflect.ValueOf(target).Elem()
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		name, value, ok := strings.Cut(item, "=")
		if !ok {
			value = "true"
		}
		f := v.FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, strings.TrimSpace(name)) })
		if !f.IsValid() {
			return settingsError(fmt.Sprintf("%s: there is no %q", what, name))
		}
		if err := setField(f, strings.TrimSpace(value)); err != nil {
			return settingsError(fmt.Sprintf("%s: %s: %v", what, name, err))
		}
	}
	return nil
}

func setField(f reflect.Value, value string) error {
	switch x := f.Addr().Interface().(type) {
	case *bool:
		b, err := strconv.ParseBool(value)
		*x = b
		return err
	case *time.Duration:
		d, err := time.ParseDuration(value)
		*x = d
		return err
	case *engine.PlannedMode:
		n, err := choose(value, "inplace", "sticky")
		*x = engine.PlannedMode(n)
		return err
	case *engine.JoinRole:
		n, err := choose(value, "secondary", "resolving")
		*x = engine.JoinRole(n)
		return err
	default:
		return fmt.Errorf("cannot be set")
	}
}

func choose(value string, names ...string) (int, error) {
	for i, n := range names {
		if strings.EqualFold(value, n) || value == strconv.Itoa(i) {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%q is none of %s", value, strings.Join(names, ", "))
}

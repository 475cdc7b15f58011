package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// options are the command line after parsing.
type options struct {
	server, user, password, database string
	query                            string
	hasQuery                         bool
	inputs                           []string
	output                           string
	trust                            bool
	encrypt                          string // true, false, strict
	exitOnError                      bool
	headers                          int // rows between headers; 0 once per result, -1 none
	trim                             bool
	separator                        string
	width                            int
	fixedWidth, maxWidth             int // -Y and -y; -1 not given
	loginTimeout, queryTimeout       time.Duration
	variables                        map[string]string
	noVariables                      bool
	severity                         int // -V; 0 not given
	minLevel                         int // -m: messages below are not shown; -1 shows headers of all
	errorsTo                         int // -r: -1 stdout, 0 errors of severity 11 and above, 1 all messages
	echo                             bool
	readOnly                         bool
	workstation, app                 string
	help                             bool
}

// usageError is a mistake on the command line.
type usageError string

func (e usageError) Error() string { return string(e) }

// parseOptions reads the arguments as sqlcmd does: one dash, one letter, case counts, and
// the value attached or in the next argument.
func parseOptions(args []string, env func(string) string) (options, error) {
	o := options{
		server: env("SQLCMDSERVER"), user: env("SQLCMDUSER"), password: env("SQLCMDPASSWORD"), database: env("SQLCMDDBNAME"),
		encrypt: "true", separator: " ", fixedWidth: -1, maxWidth: -1, loginTimeout: 8 * time.Second,
		variables: map[string]string{}, errorsTo: -1, width: 80, app: "SQLCMD",
	}
	if o.server == "" {
		o.server = "."
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if len(arg) < 2 || arg[0] != '-' && arg[0] != '/' {
			return o, usageError(fmt.Sprintf("'%s': Unexpected argument. Enter '-?' for help.", arg))
		}
		letter, attached := arg[1], arg[2:]
		value := func() (string, error) {
			if attached != "" {
				return attached, nil
			}
			if i+1 >= len(args) {
				return "", usageError(fmt.Sprintf("'-%c': Missing argument. Enter '-?' for help.", letter))
			}
			i++
			return args[i], nil
		}
		number := func(low, high int) (int, error) {
			s, err := value()
			if err != nil {
				return 0, err
			}
			n, err := strconv.Atoi(s)
			if err != nil || n < low || n > high {
				return 0, usageError(fmt.Sprintf("'-%c %s': value must be greater than or equal to %d and less than or equal to %d.", letter, s, low, high))
			}
			return n, nil
		}
		var err error
		var n int
		switch letter {
		case 'S':
			o.server, err = value()
		case 'U':
			o.user, err = value()
		case 'P':
			o.password, err = value()
		case 'd':
			o.database, err = value()
		case 'Q', 'q':
			// -q stays for more input; with a script's stdin that is the same as -Q.
			o.query, err = value()
			o.hasQuery = true
		case 'i':
			var s string
			if s, err = value(); err == nil {
				o.inputs = append(o.inputs, strings.Split(s, ",")...)
				for i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
					i++
					o.inputs = append(o.inputs, args[i])
				}
			}
		case 'o':
			o.output, err = value()
		case 'C':
			o.trust = true
		case 'N':
			err = o.setEncrypt(attached)
		case 'b':
			o.exitOnError = true
		case 'h':
			o.headers, err = number(-1, 1<<31-1)
		case 'W':
			o.trim = true
		case 's':
			o.separator, err = value()
		case 'w':
			o.width, err = number(8, 65535)
		case 'Y':
			o.fixedWidth, err = number(0, 8000)
		case 'y':
			o.maxWidth, err = number(0, 8000)
		case 'l':
			n, err = number(0, 65534)
			o.loginTimeout = time.Duration(n) * time.Second
		case 't':
			n, err = number(0, 65534)
			o.queryTimeout = time.Duration(n) * time.Second
		case 'v':
			var s string
			if s, err = value(); err == nil {
				err = o.setVariable(s)
			}
			for err == nil && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				err = o.setVariable(args[i])
			}
		case 'x':
			o.noVariables = true
		case 'V':
			o.severity, err = number(0, 25)
		case 'm':
			o.minLevel, err = number(-1, 25)
		case 'r':
			o.errorsTo = 0
			if attached == "1" {
				o.errorsTo = 1
			}
		case 'e':
			o.echo = true
		case 'K':
			var s string
			s, err = value()
			o.readOnly = strings.EqualFold(s, "ReadOnly")
		case 'H':
			o.workstation, err = value()
		case 'a', 'c', 'D', 'f', 'g', 'z', 'Z':
			_, err = value() // no effect on a connection by TCP
		case 'E', 'I', 'k', 'M', 'R', 'u', 'X', 'j', 'G', 'A', 'p', 'L':
			if letter == 'E' || letter == 'G' {
				err = usageError(fmt.Sprintf("'-%c': only SQL Server authentication is available here.", letter))
			}
		case '?':
			o.help = true
			return o, nil
		default:
			err = usageError(fmt.Sprintf("'%s': Unknown Option. Enter '-?' for help.", arg))
		}
		if err != nil {
			return o, err
		}
	}
	if o.hasQuery && len(o.inputs) > 0 {
		return o, usageError("The i and the Q/q options are mutually exclusive.")
	}
	if o.trim && (o.fixedWidth >= 0 || o.maxWidth >= 0) {
		return o, usageError("The -W and the -y/-Y options are mutually exclusive.")
	}
	return o, nil
}

func (o *options) setEncrypt(mode string) error {
	switch mode {
	case "", "m", "M", "true":
		o.encrypt = "true"
	case "o", "O", "false", "disable":
		o.encrypt = "false"
	case "s", "S", "strict":
		o.encrypt = "strict"
	default:
		return usageError(fmt.Sprintf("'-N%s': Unknown encryption mode.", mode))
	}
	return nil
}

func (o *options) setVariable(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return usageError(fmt.Sprintf("'-v %s': Missing value of a scripting variable.", s))
	}
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		value = value[1 : len(value)-1]
	}
	o.variables[strings.ToLower(name)] = value
	return nil
}

// address splits -S: [tcp:]host[\instance][,port]. admin: asks for the dedicated
// administrator connection.
func (o *options) address() (host string, port int, err error) {
	s := o.server
	port = 1433
	if rest, ok := cutPrefixFold(s, "admin:"); ok {
		s, port = rest, 1434
	}
	if rest, ok := cutPrefixFold(s, "tcp:"); ok {
		s = rest
	}
	if h, p, ok := strings.Cut(s, ","); ok {
		s = h
		if port, err = strconv.Atoi(strings.TrimSpace(p)); err != nil || port < 1 || port > 65535 {
			return "", 0, usageError(fmt.Sprintf("'-S %s': the port is not a number from 1 to 65535.", o.server))
		}
	}
	s, _, _ = strings.Cut(s, `\`)
	if s = strings.TrimSpace(s); s == "." || s == "" || strings.EqualFold(s, "(local)") {
		s = "localhost"
	}
	return s, port, nil
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
		return s[len(prefix):], true
	}
	return s, false
}

const usage = `Usage: sqlcmd [-S server[,port]] [-U login] [-P password] [-d database]
  [-Q "query"] [-i file[,file...]] [-o file] [-C] [-N[s|m|o]] [-K ReadOnly]
  [-b] [-V severity] [-m level] [-r[0|1]] [-h rows] [-W] [-s separator] [-w width]
  [-y width] [-Y width] [-l login timeout] [-t query timeout] [-v name=value...] [-x] [-e]
Stand-in of the simulated SQL Server, for tests.
`

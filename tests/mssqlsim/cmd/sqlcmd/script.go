package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// batch is what lies between two GO lines.
type batch struct {
	text  string
	times int
}

// scriptError ends the script: a bad command or an undefined variable.
type scriptError string

func (e scriptError) Error() string { return string(e) }

// script reads input line by line, follows the commands of sqlcmd and hands batches out.
type script struct {
	variables   map[string]string
	noVariables bool
	echo        io.Writer // nil: no echo
	run         func(batch) (stop bool, err error)
	onErrorExit func(bool)
	lines       []string
	state       scanState
	depth       int
}

const maxIncludes = 16

// read runs all batches of r. Input that does not end in GO is run at its end, as sqlcmd
// does with -Q and -i. stop tells that the script ended itself.
func (s *script) read(r io.Reader) (stop bool, err error) {
	if stop, err = s.consume(r); stop || err != nil {
		return stop, err
	}
	return s.flush(1)
}

var goLine = regexp.MustCompile(`(?i)^\s*go(?:\s+(\d+))?\s*;?\s*(?:--.*)?$`)

func (s *script) consume(r io.Reader) (stop bool, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), 16<<20)
	for in.Scan() {
		line := strings.TrimSuffix(in.Text(), "\r")
		line = strings.TrimPrefix(line, "\ufeff")
		if s.echo != nil {
			fmt.Fprintln(s.echo, line)
		}
		if !s.state.inside() {
			if m := goLine.FindStringSubmatch(line); m != nil {
				times := 1
				if m[1] != "" {
					if times, err = strconv.Atoi(m[1]); err != nil {
						return true, scriptError("A fatal scripting error occurred. Incorrect syntax was encountered while parsing GO.")
					}
				}
				if stop, err = s.flush(times); stop || err != nil {
					return stop, err
				}
				continue
			}
			if handled, stop, err := s.command(line); handled {
				if stop || err != nil {
					return true, err
				}
				continue
			}
		}
		if line, err = s.substitute(line); err != nil {
			return true, err
		}
		s.state.scan(line)
		s.lines = append(s.lines, line)
	}
	if err := in.Err(); err != nil {
		return true, fmt.Errorf("read script: %w", err)
	}
	return false, nil
}

func (s *script) flush(times int) (stop bool, err error) {
	text := strings.Join(s.lines, "\n")
	s.lines, s.state = nil, scanState{}
	if strings.TrimSpace(text) == "" {
		return false, nil
	}
	return s.run(batch{text: text, times: times})
}

// command follows a line that starts with a colon, or the bare words that sqlcmd knows.
func (s *script) command(line string) (handled, stop bool, err error) {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return false, false, nil
	}
	word := strings.ToLower(fields[0])
	switch word {
	case "exit", "quit", ":exit", ":quit":
		if len(fields) > 1 {
			return false, false, nil
		}
		s.lines = nil
		return true, true, nil
	case "reset", ":reset":
		s.lines = nil
		return true, false, nil
	case ":setvar":
		if len(fields) < 2 {
			return true, true, scriptError("A fatal scripting error occurred. Incorrect syntax was encountered while parsing :setvar.")
		}
		value := strings.TrimSpace(strings.TrimSpace(line[strings.Index(strings.ToLower(line), ":setvar")+len(":setvar"):])[len(fields[1]):])
		if len(fields) == 2 {
			delete(s.variables, strings.ToLower(fields[1]))
			return true, false, nil
		}
		if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
			value = value[1 : len(value)-1]
		}
		s.variables[strings.ToLower(fields[1])] = value
		return true, false, nil
	case ":on":
		if len(fields) == 3 && strings.EqualFold(fields[1], "error") {
			s.onErrorExit(strings.EqualFold(fields[2], "exit"))
			return true, false, nil
		}
	case ":r":
		if len(fields) == 2 {
			stop, err := s.include(strings.Trim(fields[1], `"`))
			return true, stop, err
		}
	}
	if strings.HasPrefix(word, ":") && !strings.HasPrefix(word, "::") {
		return true, true, scriptError(fmt.Sprintf("Syntax error at line near command '%s'.", fields[0]))
	}
	return false, false, nil
}

func (s *script) include(name string) (stop bool, err error) {
	if s.depth >= maxIncludes {
		return true, scriptError(fmt.Sprintf("'%s': files are nested too deeply.", name))
	}
	f, err := os.Open(name)
	if err != nil {
		return true, scriptError(fmt.Sprintf("'%s': Invalid filename.", name))
	}
	defer func() { _ = f.Close() }()
	s.depth++
	defer func() { s.depth-- }()
	return s.consume(f)
}

var variable = regexp.MustCompile(`\$\(([A-Za-z0-9_-]+)\)`)

// substitute puts the values of scripting variables into a line.
func (s *script) substitute(line string) (string, error) {
	if s.noVariables || !strings.Contains(line, "$(") {
		return line, nil
	}
	var missing string
	out := variable.ReplaceAllStringFunc(line, func(m string) string {
		name := m[2 : len(m)-1]
		if v, ok := s.variables[strings.ToLower(name)]; ok {
			return v
		}
		if v, ok := os.LookupEnv(name); ok {
			return v
		}
		missing = name
		return m
	})
	if missing != "" {
		return "", scriptError(fmt.Sprintf("'%s' scripting variable not defined.", missing))
	}
	return out, nil
}

// scanState knows whether a line starts inside a string, a quoted name or a comment,
// where GO is just text.
type scanState struct {
	quote    byte // ' " or ] while inside
	comments int
}

func (s *scanState) inside() bool { return s.quote != 0 || s.comments > 0 }

func (s *scanState) scan(line string) {
	for i := 0; i < len(line); i++ {
		c, next := line[i], byte(0)
		if i+1 < len(line) {
			next = line[i+1]
		}
		switch {
		case s.comments > 0:
			if c == '*' && next == '/' {
				s.comments--
				i++
			} else if c == '/' && next == '*' {
				s.comments++
				i++
			}
		case s.quote != 0:
			if c == s.quote {
				if next == s.quote {
					i++
				} else {
					s.quote = 0
				}
			}
		case c == '-' && next == '-':
			return
		case c == '/' && next == '*':
			s.comments++
			i++
		case c == '\'' || c == '"':
			s.quote = c
		case c == '[':
			s.quote = ']'
		}
	}
}

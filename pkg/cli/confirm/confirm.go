// Package confirm asks before something happens that a person would miss.
package confirm

import (
	"bufio"
	"fmt"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// YesNo asks y/N. Without a terminal it says what to repeat; a piped "y" is never read.
func YesNo(s *iostreams.IOStreams, yes bool, repeat string) error {
	if yes {
		return nil
	}
	if !s.CanPrompt() {
		return notAsked(repeat)
	}
	return ask(s, "Proceed? [y/N] ", "y", "Y", "yes")
}

// Typed asks for a word. Without a terminal, given must hold the word and yes must be set.
func Typed(s *iostreams.IOStreams, yes bool, given, word, question, repeat string) error {
	if given != "" && given != word {
		return exit.Errorf(exit.NotConfirmed, "repeat "+repeat, "--confirm is %q, it must be %q", given, word)
	}
	if yes && given == word {
		return nil
	}
	if !s.CanPrompt() {
		return notAsked(repeat)
	}
	return ask(s, question, word)
}

func notAsked(repeat string) error {
	return exit.Errorf(exit.NotConfirmed, "repeat with "+repeat, "not confirmed, and there is no terminal to ask on")
}

func ask(s *iostreams.IOStreams, question string, accepted ...string) error {
	fmt.Fprint(s.ErrOut, question)
	answer, _ := bufio.NewReader(s.In).ReadString('\n') // the end of input is a no
	answer = strings.TrimSpace(answer)
	for _, a := range accepted {
		if answer == a {
			return nil
		}
	}
	return exit.Errorf(exit.NotConfirmed, "", "not confirmed; nothing was changed")
}

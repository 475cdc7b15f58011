//go:build linux

package instance

import (
	"fmt"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"
)

// readPassword reads a mounted Secret's key. One line feed at its end, as editors
// leave it, does not count.
func readPassword(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	p := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if p == "" {
		return "", fmt.Errorf("read the password: %s is empty", path)
	}
	return p, nil
}

// checkPolicy is SQL Server's password policy on Linux (FG 7.6): at its first start
// the server ends without a readable word when the password of sa breaks it.
func checkPolicy(password string) error {
	var upper, lower, digit, other int
	for _, r := range password {
		switch {
		case unicode.IsUpper(r):
			upper = 1
		case unicode.IsLower(r):
			lower = 1
		case unicode.IsDigit(r):
			digit = 1
		default:
			other = 1
		}
	}
	switch n := utf8.RuneCountInString(password); {
	case n < 8 || n > 128:
		return fmt.Errorf("the password of sa has %d characters: SQL Server wants 8 to 128", n)
	case upper+lower+digit+other < 3:
		return fmt.Errorf("the password of sa is too simple: SQL Server wants three of upper case, lower case, digits and symbols")
	}
	return nil
}

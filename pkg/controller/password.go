package controller

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of SQL Server's password policy (FG 7.6).
const (
	minPassword        = 8
	maxPassword        = 128
	minPasswordClasses = 3
)

// trimPassword takes away one line end, as the instance manager does: what
// `echo … | kubectl create secret` leaves behind.
func trimPassword(b []byte) string {
	return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
}

// passwordWeakness says why SQL Server would refuse the password of sa, without
// telling anything of it; empty when it would be accepted.
func passwordWeakness(password string) string {
	if !utf8.ValidString(password) {
		return "it is not valid UTF-8"
	}
	n := utf8.RuneCountInString(password)
	switch {
	case n == 0:
		return "it is empty"
	case n < minPassword:
		return "it has fewer than 8 characters"
	case n > maxPassword:
		return "it has more than 128 characters"
	}
	var upper, lower, digit, symbol bool
	for _, r := range password {
		switch {
		case unicode.IsControl(r):
			return "it contains a control character, such as a line end"
		case unicode.IsUpper(r):
			upper = true
		case unicode.IsLower(r):
			lower = true
		case unicode.IsDigit(r):
			digit = true
		default:
			symbol = true
		}
	}
	classes := 0
	for _, has := range []bool{upper, lower, digit, symbol} {
		if has {
			classes++
		}
	}
	if classes < minPasswordClasses {
		return "it has characters of fewer than three of the classes upper case, lower case, digits and symbols"
	}
	return ""
}

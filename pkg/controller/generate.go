package controller

import (
	"crypto/rand"
	"fmt"
	"math/big"
)

// newPassword makes a password of 32 letters and digits that SQL Server's policy
// accepts: with about 190 bits there is no need for characters that shells dislike.
func newPassword() (string, error) {
	const (
		length   = 32
		alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789"
	)
	for {
		b := make([]byte, length)
		for i := range b {
			n, err := rand.Int(rand.Reader, big.NewInt(int64(len(alphabet))))
			if err != nil {
				return "", fmt.Errorf("make a password: %w", err)
			}
			b[i] = alphabet[n.Int64()]
		}
		// All of one class missing is possible, if unlikely: 1 in 300.
		if passwordWeakness(string(b)) == "" {
			return string(b), nil
		}
	}
}

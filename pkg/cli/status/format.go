package status

import (
	"fmt"
	"strings"
	"time"
)

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// size prints bytes as people say them: 512B, 12KB, 1.2GB.
func size(v int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	f, i := float64(v), 0
	for f >= 1000 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 || f >= 10 {
		return fmt.Sprintf("%.0f%s", f, units[i])
	}
	return fmt.Sprintf("%.1f%s", f, units[i])
}

// ofSize prints a part and a whole in the unit of the whole: "1.1 / 1.8 TB".
func ofSize(part, whole int64) string {
	units := []string{"B", "KB", "MB", "GB", "TB"}
	p, w, i := float64(part), float64(whole), 0
	for w >= 1000 && i < len(units)-1 {
		p, w, i = p/1024, w/1024, i+1
	}
	one := func(f float64) string {
		if i == 0 || w >= 10 {
			return fmt.Sprintf("%.0f", f)
		}
		return fmt.Sprintf("%.1f", f)
	}
	return one(p) + " / " + one(w) + " " + units[i]
}

func fraction(a, b int) string { return fmt.Sprintf("%d/%d", a, b) }

func seconds(v int64) string { return age(time.Duration(v) * time.Second) }

// age prints a duration as people say it: 8s, 5m10s, 3h12m, 41d.
func age(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d/time.Second))
	case d < 10*time.Minute:
		return fmt.Sprintf("%dm%ds", int(d/time.Minute), int(d%time.Minute/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d/time.Minute))
	case d < 24*time.Hour:
		if m := int(d % time.Hour / time.Minute); m > 0 {
			return fmt.Sprintf("%dh%dm", int(d/time.Hour), m)
		}
		return fmt.Sprintf("%dh", int(d/time.Hour))
	}
	return fmt.Sprintf("%dd", int(d/(24*time.Hour)))
}

// headline is the first sentence: what follows stands among the problems.
func headline(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	line, _, _ = strings.Cut(line, ". ")
	return line
}

// middle cuts a text to n runes in its middle.
func middle(s string, n int) string {
	r := []rune(s)
	if len(r) <= n || n < 3 {
		return s
	}
	head := n / 2
	return string(r[:head]) + "…" + string(r[len(r)-(n-head-1):])
}

// end cuts a text to n runes at its end.
func end(s string, n int) string {
	r := []rune(s)
	if len(r) <= n || n < 3 {
		return s
	}
	return string(r[:n-1]) + "…"
}

package sqltypes

import (
	"strings"
	"time"
)

const (
	tickSecond = 10_000_000 // 100 ns ticks per second
	tickDay    = 86_400 * tickSecond
	unixOrigin = 62_135_596_800 // seconds from 0001-01-01 to 1970-01-01
	maxTicks   = 3_652_059 * tickDay
	// datetime starts in 1753, smalldatetime spans 1900-01-01 to 2079-06-06.
	dateTimeMin   = 639_905 * tickDay
	origin1900    = 693_595 * tickDay
	smallLastDays = 65_535
)

// Origin1900 is day zero of datetime and smalldatetime.
func Origin1900() time.Time { return timeOfTicks(origin1900) }

// ticksOf reads the wall clock of t, whatever its zone.
func ticksOf(t time.Time) (int64, bool) {
	y := t.Year()
	if y < 1 || y > 9999 {
		return 0, false
	}
	_, off := t.Zone()
	return (t.Unix()+int64(off)+unixOrigin)*tickSecond + int64(t.Nanosecond())/100, true
}

func timeOfTicks(n int64) time.Time {
	return time.Unix(n/tickSecond-unixOrigin, n%tickSecond*100).UTC()
}

// roundTicks brings lo to the accuracy of the type; it keeps the range.
func (v *Value) roundTicks() {
	n := int64(v.lo)
	switch v.typ.ID {
	case Date:
		n -= n % tickDay
	case Time, DateTime2, DateTimeOffset:
		if v.typ.ID == Time {
			n %= tickDay
		}
		unit := int64(1)
		for i := int(v.typ.Scale); i < 7; i++ {
			unit *= 10
		}
		up := (n + unit/2) / unit * unit
		if up >= maxTicks || v.typ.ID == Time && up >= tickDay {
			up -= unit
		}
		n = up
	case DateTime:
		// 1/300 s, shown as .000, .003 and .007
		day, in := n/tickDay*tickDay, n%tickDay
		t300 := (in*3 + 50_000) / 100_000
		ms := (t300*10 + 1) / 3
		n = day + ms*10_000
		if n >= maxTicks {
			n -= 3 * 10_000
		}
	case SmallDateTime:
		m := int64(60 * tickSecond)
		n = (n + m/2) / m * m
	}
	v.lo = uint64(n)
}

// Ticks300 splits a datetime into days since 1900-01-01 and 1/300 s ticks, the wire form.
func (v Value) Ticks300() (days int32, ticks uint32) {
	n := int64(v.lo) - origin1900
	d := n / tickDay
	in := n % tickDay
	if in < 0 {
		d--
		in += tickDay
	}
	return int32(d), uint32((in*3 + 50_000) / 100_000)
}

// DayTicks splits a temporal value into days since 0001-01-01 and 100 ns ticks in the day, and
// gives the zone offset in minutes of a datetimeoffset.
func (v Value) DayTicks() (days int32, ticks int64, offset int16) {
	n := int64(v.lo)
	return int32(n / tickDay), n % tickDay, int16(v.hi)
}

// parseTemporal reads the literal forms SQL Server takes under us_english, DATEFORMAT mdy.
// offset is in minutes, hasZone tells whether the text names one.
func parseTemporal(s string) (ticks int64, offset int, hasZone, ok bool) {
	s = strings.TrimSpace(s)
	if s == "" {
		return origin1900, 0, false, true
	}
	p := &timeParser{s: s}
	date, okd := p.date()
	if !okd {
		p.i = 0
		date = origin1900
	}
	p.sep()
	tod := int64(0)
	if p.i < len(p.s) {
		var okt bool
		tod, okt = p.clock()
		if !okt {
			return 0, 0, false, false
		}
		p.spaces()
		offset, hasZone = p.zone()
		p.spaces()
	} else if !okd {
		return 0, 0, false, false
	}
	if p.i != len(p.s) {
		return 0, 0, false, false
	}
	return date + tod, offset, hasZone, true
}

type timeParser struct {
	s string
	i int
}

func (p *timeParser) spaces() {
	for p.i < len(p.s) && p.s[p.i] == ' ' {
		p.i++
	}
}

func (p *timeParser) sep() {
	if p.i < len(p.s) && (p.s[p.i] == 'T' || p.s[p.i] == 't') {
		p.i++
		return
	}
	p.spaces()
}

// digits reads a number and its width; width 0 means none.
func (p *timeParser) digits(limit int) (n, width int) {
	for p.i < len(p.s) && width < limit && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
		n = n*10 + int(p.s[p.i]-'0')
		p.i++
		width++
	}
	return n, width
}

func (p *timeParser) eat(c byte) bool {
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

func (p *timeParser) month() int {
	if len(p.s)-p.i < 3 {
		return 0
	}
	k := strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(p.s[p.i:p.i+3]))
	if k < 0 || k%3 != 0 {
		return 0
	}
	for p.i < len(p.s) && (p.s[p.i]|0x20) >= 'a' && (p.s[p.i]|0x20) <= 'z' {
		p.i++
	}
	return k/3 + 1
}

func (p *timeParser) date() (int64, bool) {
	var y, m, d, w int
	if m = p.month(); m > 0 {
		// Mon dd[,] yyyy
		p.spaces()
		d, w = p.digits(2)
		if w == 0 {
			return 0, false
		}
		p.spaces()
		p.eat(',')
		p.spaces()
		if y, w = p.digits(4); w != 4 {
			return 0, false
		}
		return ymd(y, m, d)
	}
	a, wa := p.digits(8)
	switch {
	case wa == 8:
		return ymd(a/10000, a/100%100, a%100)
	case wa == 6:
		return ymd(century(a/10000), a/100%100, a%100)
	case wa == 0 || wa > 4 || p.i >= len(p.s):
		return 0, false
	}
	c := p.s[p.i]
	if c == ' ' {
		// dd Mon yyyy
		p.spaces()
		if m = p.month(); m == 0 {
			return 0, false
		}
		p.spaces()
		if y, w = p.digits(4); w != 4 {
			return 0, false
		}
		return ymd(y, m, a)
	}
	if c != '-' && c != '/' && c != '.' {
		return 0, false
	}
	p.i++
	b, wb := p.digits(2)
	if wb == 0 || !p.eat(c) {
		return 0, false
	}
	e, we := p.digits(4)
	if we == 0 {
		return 0, false
	}
	if wa == 4 {
		return ymd(a, b, e)
	}
	if we == 2 {
		e = century(e)
	} else if we != 4 {
		return 0, false
	}
	return ymd(e, a, b)
}

// century applies the default two-digit year cut-off of 2049.
func century(y int) int {
	if y < 50 {
		return 2000 + y
	}
	return 1900 + y
}

func ymd(y, m, d int) (int64, bool) {
	if y < 1 || y > 9999 || m < 1 || m > 12 || d < 1 || d > 31 {
		return 0, false
	}
	t := time.Date(y, time.Month(m), d, 0, 0, 0, 0, time.UTC)
	if t.Day() != d {
		return 0, false
	}
	n, ok := ticksOf(t)
	return n, ok
}

func (p *timeParser) clock() (int64, bool) {
	h, w := p.digits(2)
	if w == 0 {
		return 0, false
	}
	var m, s, frac int
	unit := tickSecond
	colons := 0
	if p.eat(':') {
		colons++
		if m, w = p.digits(2); w == 0 {
			return 0, false
		}
		if p.eat(':') {
			if s, w = p.digits(2); w == 0 {
				return 0, false
			}
			if p.eat('.') || p.eat(':') {
				var fw int
				frac, fw = p.digits(7)
				if fw == 0 {
					return 0, false
				}
				for range fw {
					unit /= 10
				}
			}
		}
	}
	p.spaces()
	pm, am := p.word("pm"), false
	if !pm {
		am = p.word("am")
	}
	switch {
	case pm && (h < 1 || h > 12), am && h > 12, colons == 0 && !am && !pm:
		return 0, false
	case pm && h < 12:
		h += 12
	case am && h == 12:
		h = 0
	}
	if h > 23 || m > 59 || s > 59 {
		return 0, false
	}
	return int64(h*3600+m*60+s)*tickSecond + int64(frac)*int64(unit), true
}

func (p *timeParser) word(w string) bool {
	if len(p.s)-p.i >= len(w) && strings.EqualFold(p.s[p.i:p.i+len(w)], w) {
		p.i += len(w)
		return true
	}
	return false
}

func (p *timeParser) zone() (int, bool) {
	if p.eat('Z') || p.eat('z') {
		return 0, true
	}
	sign := 1
	switch {
	case p.eat('+'):
	case p.eat('-'):
		sign = -1
	default:
		return 0, false
	}
	h, w := p.digits(2)
	if w == 0 || h > 14 {
		p.i = 0
		return 0, false
	}
	m := 0
	if p.eat(':') {
		m, w = p.digits(2)
		if w != 2 || m > 59 {
			p.i = 0
			return 0, false
		}
	}
	return sign * (h*60 + m), true
}

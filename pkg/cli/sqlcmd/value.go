package sqlcmd

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// text of one value as people read it; NULL is for the caller, an empty string is not NULL.
func text(v any, typ string) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case []byte:
		return "0x" + strings.ToUpper(hex.EncodeToString(v))
	case time.Time:
		return v.Format(layout(typ, ' '))
	case bool:
		if v {
			return "1"
		}
		return "0"
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case json.Number:
		return v.String()
	}
	return fmt.Sprint(v)
}

// layout shows what a type has and nothing that it has not: a date has no time, only
// datetimeoffset has a zone.
func layout(typ string, between rune) string {
	const date, clock = "2006-01-02", "15:04:05.9999999"
	switch typ {
	case "DATE":
		return date
	case "TIME":
		return clock
	case "DATETIMEOFFSET":
		return date + string(between) + clock + "-07:00"
	}
	return date + string(between) + clock
}

// jsonValue is what encoding/json may write for a value.
func jsonValue(v any, typ string) any {
	switch v := v.(type) {
	case []byte:
		return text(v, typ)
	case time.Time:
		return v.Format(layout(typ, 'T'))
	}
	return v
}

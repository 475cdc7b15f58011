package tsql

import (
	"math"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

func mathFuncs(m map[string]builtin) {
	same := func(a []bexpr) sqltypes.Type {
		t := a[0].typ
		switch {
		case t.ID == sqltypes.Bit || t.IsString() || t.ID == sqltypes.Unknown || t.ID == sqltypes.Real:
			return sqltypes.TFloat
		case t.ID == sqltypes.TinyInt || t.ID == sqltypes.SmallInt:
			return sqltypes.TInt
		}
		return t
	}
	asNumber := func(v value) (value, error) {
		t := v.Type()
		switch {
		case t.ID == sqltypes.Bit || t.IsString() || t.ID == sqltypes.Real:
			return sqltypes.Cast(v, sqltypes.TFloat, 0)
		case t.ID == sqltypes.TinyInt || t.ID == sqltypes.SmallInt:
			return sqltypes.Cast(v, sqltypes.TInt, 0)
		case !t.IsNumber():
			return v, errNum(8116, 16, 1, "Argument data type %s is invalid for argument 1 of the function.", t.ID.Name())
		}
		return v, nil
	}
	number := func(name string, fn func(v value) (value, error)) {
		m[name] = builtin{min: 1, max: 1, typ: same, strict: true, eval: func(_ *frame, a []value) (value, error) {
			v, err := asNumber(a[0])
			if err != nil {
				return v, err
			}
			return fn(v)
		}}
	}
	number("abs", func(v value) (value, error) {
		if sqltypes.Order(v, sqltypes.NewInt(0)) < 0 {
			return sqltypes.Negate(v)
		}
		return v, nil
	})
	number("sign", func(v value) (value, error) {
		return sqltypes.Cast(sqltypes.NewInt(int32(sqltypes.Order(v, sqltypes.NewInt(0)))), v.Type(), 0)
	})
	whole := func(up bool) func(v value) (value, error) {
		return func(v value) (value, error) {
			t := v.Type()
			switch {
			case t.IsFloat() && up:
				return sqltypes.NewFloat(math.Ceil(v.Float64())), nil
			case t.IsFloat():
				return sqltypes.NewFloat(math.Floor(v.Float64())), nil
			case !t.IsDecimal():
				return v, nil
			}
			to := sqltypes.Type{ID: t.ID, Prec: 38}
			n, err := sqltypes.Cast(v, sqltypes.Type{ID: t.ID, Prec: 38, Scale: t.Scale}, 0)
			if err != nil {
				return n, err
			}
			r, err := sqltypes.Cast(n, to, 0)
			if err != nil {
				return r, err
			}
			c := sqltypes.Order(r, v)
			if up && c < 0 {
				return sqltypes.Arith('+', r, sqltypes.NewInt(1))
			}
			if !up && c > 0 {
				return sqltypes.Arith('-', r, sqltypes.NewInt(1))
			}
			return r, nil
		}
	}
	number("ceiling", whole(true))
	number("floor", whole(false))
	m["round"] = builtin{min: 2, max: 3, typ: same, strict: true, eval: func(_ *frame, a []value) (value, error) {
		v, err := asNumber(a[0])
		if err != nil {
			return v, err
		}
		n, err := num(a[1])
		if err != nil {
			return value{}, err
		}
		cut := false
		if len(a) == 3 {
			c, err := num(a[2])
			if err != nil {
				return value{}, err
			}
			cut = c != 0
		}
		return round(v, n, cut)
	}}
	float := func(name string, fn func(x float64) float64) {
		m[name] = builtin{min: 1, max: 1, fixed: sqltypes.TFloat, strict: true, eval: func(_ *frame, a []value) (value, error) {
			v, err := sqltypes.Cast(a[0], sqltypes.TFloat, 0)
			if err != nil {
				return v, err
			}
			r := fn(v.Float64())
			if math.IsNaN(r) || math.IsInf(r, 0) {
				return value{}, errNum(3623, 16, 1, "An invalid floating point operation occurred.")
			}
			return sqltypes.NewFloat(r), nil
		}}
	}
	float("sqrt", math.Sqrt)
	float("square", func(x float64) float64 { return x * x })
	float("exp", math.Exp)
	float("log10", math.Log10)
	m["log"] = builtin{min: 1, max: 2, fixed: sqltypes.TFloat, strict: true, eval: func(_ *frame, a []value) (value, error) {
		v, err := sqltypes.Cast(a[0], sqltypes.TFloat, 0)
		if err != nil {
			return v, err
		}
		r := math.Log(v.Float64())
		if len(a) == 2 {
			b, err := sqltypes.Cast(a[1], sqltypes.TFloat, 0)
			if err != nil {
				return b, err
			}
			r /= math.Log(b.Float64())
		}
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return value{}, errNum(3623, 16, 1, "An invalid floating point operation occurred.")
		}
		return sqltypes.NewFloat(r), nil
	}}
	m["pi"] = builtin{fixed: sqltypes.TFloat, eval: func(*frame, []value) (value, error) { return sqltypes.NewFloat(math.Pi), nil }}
	m["power"] = builtin{min: 2, max: 2, typ: same, strict: true, eval: func(_ *frame, a []value) (value, error) {
		v, err := asNumber(a[0])
		if err != nil {
			return v, err
		}
		x, err := sqltypes.Cast(v, sqltypes.TFloat, 0)
		if err != nil {
			return x, err
		}
		y, err := sqltypes.Cast(a[1], sqltypes.TFloat, 0)
		if err != nil {
			return y, err
		}
		r := math.Pow(x.Float64(), y.Float64())
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return value{}, errNum(3623, 16, 1, "An invalid floating point operation occurred.")
		}
		return sqltypes.Cast(sqltypes.NewFloat(r), v.Type(), 0)
	}}
	m["rand"] = builtin{min: 0, max: 1, fixed: sqltypes.TFloat, eval: func(f *frame, _ []value) (value, error) {
		return sqltypes.NewFloat(float64(f.ex.s.random64()>>11) / (1 << 53)), nil
	}}
	extreme := func(sign int) builtin {
		return builtin{min: 1, max: 254, typ: func(args []bexpr) sqltypes.Type {
			var t sqltypes.Type
			for _, a := range args {
				t = sqltypes.Unify(t, a.typ)
			}
			return wireType(t)
		}, eval: func(_ *frame, a []value) (value, error) {
			best := a[0]
			for _, v := range a[1:] {
				if !v.IsNull() && (best.IsNull() || sqltypes.Order(v, best)*sign > 0) {
					best = v
				}
			}
			return best, nil
		}}
	}
	m["greatest"], m["least"] = extreme(1), extreme(-1)
}

// round is ROUND: half away from zero, or cut.
func round(v value, n int64, cut bool) (value, error) {
	t := v.Type()
	n = max(min(n, 38), -38)
	if t.IsFloat() {
		p := math.Pow(10, float64(n))
		x := v.Float64() * p
		if cut {
			x = math.Trunc(x)
		} else {
			x = math.Round(x)
		}
		return sqltypes.NewFloat(x / p), nil
	}
	scale := int64(0)
	if t.IsDecimal() {
		scale = int64(t.Scale)
	}
	if n >= scale {
		return v, nil
	}
	// shift the kept digits in front of the point, cut or round there, shift back
	d, err := sqltypes.Cast(v, sqltypes.TNumeric(38, int(scale)), 0)
	if err != nil {
		return d, err
	}
	u := d.Unscaled()
	unit := pow10(scale - n)
	half := pow10(scale - n)
	half.Rsh(half, 1)
	if !cut {
		if u.Sign() < 0 {
			u.Sub(u, half)
		} else {
			u.Add(u, half)
		}
	}
	u.Quo(u, unit)
	u.Mul(u, unit)
	r, err := sqltypes.NewDecimal(sqltypes.TNumeric(38, int(scale)), u)
	if err != nil {
		return r, err
	}
	return sqltypes.Cast(r, t, 0)
}

package cli_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestFlags_EachIsReadByItsVerb finds flags that are declared and then forgotten: the
// variable behind every flag must be read somewhere else in its package.
func TestFlags_EachIsReadByItsVerb(t *testing.T) {
	t.Parallel()
	seen := 0
	err := filepath.WalkDir("../../pkg/cli", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		fset := token.NewFileSet()
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return err
		}
		flags := map[string]string{} // variable → flag
		uses := map[string]int{}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, name, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if variable, flag, ok := flagCall(n); ok {
						flags[variable] = flag
						uses[variable]-- // its declaration is no reading
					}
				case *ast.SelectorExpr:
					uses[n.Sel.Name]++
				case *ast.Ident:
					if n.Obj != nil && n.Obj.Kind == ast.Var {
						uses[n.Name]++
					}
				}
				return true
			})
		}
		for variable, flag := range flags {
			seen++
			if uses[variable] < 1 {
				t.Errorf("%s: nothing reads %s, the variable of --%s", dir, variable, flag)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 30 {
		t.Fatalf("only %d flags were found", seen)
	}
}

// flagCall recognises fl.StringVarP(&o.Output, "output", …).
func flagCall(n *ast.CallExpr) (variable, flag string, ok bool) {
	sel, is := n.Fun.(*ast.SelectorExpr)
	if !is || len(n.Args) < 3 || !strings.HasSuffix(strings.TrimSuffix(sel.Sel.Name, "P"), "Var") {
		return "", "", false
	}
	ref, is := n.Args[0].(*ast.UnaryExpr)
	if !is || ref.Op != token.AND {
		return "", "", false
	}
	lit, is := n.Args[1].(*ast.BasicLit)
	if !is || lit.Kind != token.STRING {
		return "", "", false
	}
	flag, err := strconv.Unquote(lit.Value)
	if err != nil {
		return "", "", false
	}
	switch x := ref.X.(type) {
	case *ast.SelectorExpr:
		if parent, nested := x.X.(*ast.SelectorExpr); nested {
			return parent.Sel.Name, flag, true // a struct that is handed on as a whole
		}
		return x.Sel.Name, flag, true
	case *ast.Ident:
		return x.Name, flag, true
	}
	return "", "", false
}

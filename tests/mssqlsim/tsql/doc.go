// Package tsql runs the T-SQL subset of the simulated SQL Server: lexer, parser, binder and
// executor over user tables and over the catalog and management views of one [engine.Instance].
//
// A [Session] is one login. Its methods block: they park in the [engine.Host], so the same code
// serves real time (goroutines) and virtual time (coroutines). What is outside the subset is an
// error with the product's number (102, 156, 207, 208, 2812 …), never a silent success, and no
// answer is keyed on the text of a query.
package tsql

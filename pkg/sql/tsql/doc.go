// Package tsql is the only place where T-SQL is written. Every function is pure:
// names and numbers in, the text of one batch out. Batches run in master (35208),
// carry no GO and no parameters (the DDL takes literals only, FG 1.3).
//
// Identifiers go through [Ident], text through [Literal], bytes through [Binary];
// nothing else may put a caller's text into a statement.
package tsql

// Package tsql runs the T-SQL subset of the simulated SQL Server: lexer, parser, binder and
// executor over user tables and over the catalog and management views of one [engine.Instance].
//
// A [Session] is one login. Its methods block: they park in the [engine.Host], so the same code
// serves real time (goroutines) and virtual time (coroutines). What is outside the subset is an
// error with the product's number (102, 156, 207, 208, 2812 …) or 40515, never a silent success,
// and no answer is keyed on the text of a query.
//
// In the subset: queries with joins, APPLY, grouping, window functions, set operations and
// (recursive) common table expressions; INSERT, UPDATE, DELETE with OUTPUT; tables, indexes, keys,
// CHECK and FOREIGN KEY constraints, views, procedures, table variables and #temporary tables;
// variables, control flow, TRY and CATCH, transactions, dynamic text; and the statements about
// availability groups, databases, logins, rights, certificates, endpoints and backups.
//
// Outside: MERGE, cursors, triggers, user-defined functions and schemas, FOR XML and FOR JSON,
// RESTORE WITH STANDBY, cascading foreign keys, distributed groups, money and text types. #Temporary tables and
// table variables are not rolled back.
//
// A statement runs inside one Host.Do: it sees one state of the instance. A name that cannot be
// resolved (207, 208 …) ends the level that it stands in, as a failed compilation does; conversion
// errors end the batch; other errors end their statement only.
package tsql

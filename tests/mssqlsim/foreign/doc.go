// Package foreign checks the simulated server with clients that nobody here wrote:
// FreeTDS's tsql and node's tedious. Both must be installed; a test that cannot run says
// so loudly, and fails where CI is set.
package foreign

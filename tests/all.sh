#!/usr/bin/env bash
# All tests that this machine can run, in one go: unit, golden, scenario, simulator,
# envtest, foreign clients, and end to end on the local cluster.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf '\n== %s (%ss)\n' "$*" "$SECONDS"; }

say "Kubernetes binaries for envtest (compiled once, then cached)"
KUBEBUILDER_ASSETS=$(go run ./tests/cluster/cmd/cluster assets)
export KUBEBUILDER_ASSETS

say "Unit, golden, scenario, simulator and envtest tests, race detector on"
go test -race -shuffle=on -timeout 20m $(go list ./... | grep -v -e /tests/e2e$ -e /tests/simulation$)

say "The whole system in virtual time, by seeds (its runs are single-threaded: no race detector)"
go test -count=1 -timeout 20m -v ./tests/simulation

say "End-to-end tests on the local cluster"
tests/images.sh bin
KUBECTL_MSSQL_E2E=1 go test -count=1 -timeout 40m -v ./tests/e2e
say "all passed"

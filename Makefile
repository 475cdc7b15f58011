# kubectl-mssql. `make` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

BIN        := bin
VERSION    ?= 0.1.0
COMMIT     := $(shell git rev-parse --short HEAD 2>/dev/null)
DATE       := $(shell git log -1 --format=%cI 2>/dev/null)
PKG        := github.com/kubectl-mssql/kubectl-mssql
LDFLAGS    := -s -w -X $(PKG)/pkg/version.version=$(VERSION) -X $(PKG)/pkg/version.commit=$(COMMIT) -X $(PKG)/pkg/version.date=$(DATE)
GOBUILD    := CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)'
CACHE      ?= $(or $(KUBECTL_MSSQL_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kubectl-mssql)
FUZZ_TIME  ?= 20s
CONTROLLER_GEN := go tool -modfile=tools.mod controller-gen
GOLANGCI_VERSION := v2.15.0
export KUBECTL_MSSQL_CACHE := $(CACHE)

##@ Everyday
.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*##"} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*##/ {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/kubectl-mssql: plugin, operator and instance manager
	@mkdir -p $(BIN)
	$(GOBUILD) -o $(BIN)/kubectl-mssql ./cmd/kubectl-mssql

.PHONY: deps
deps:
	@tests/deps.sh

.PHONY: demo
demo: deps ## Local cluster, operator and a three-replica availability group on simulated servers
	@tests/demo/demo.sh up

.PHONY: walkthrough
walkthrough: deps ## Run every command of docs/walkthrough.md on a local cluster and record its output
	@tests/demo/walkthrough.sh docs/walkthrough.md

.PHONY: demo-down
demo-down: ## Remove everything that demo made
	@tests/demo/demo.sh down

##@ Tests
.PHONY: test
test: deps ## All tests that this machine can run: unit, golden, envtest, simulator, local cluster
	@tests/all.sh

.PHONY: test-fast
test-fast: ## Unit and golden tests only; no cluster, no network
	go test -shuffle=on $$(go list ./... | grep -v -e /tests/e2e -e /tests/cluster)

.PHONY: e2e
e2e: deps build image ## End-to-end tests on the local cluster (CLUSTER=local|kind|current)
	KUBECTL_MSSQL_E2E=1 go test -count=1 -timeout 40m -v ./tests/e2e

.PHONY: e2e-faults
e2e-faults: deps image ## Faults of processes, pods, nodes, networks and control plane on the local cluster (about 40 minutes)
	KUBECTL_MSSQL_E2E=1 KUBECTL_MSSQL_FAULTS=1 go test -count=1 -timeout 90m -v -run TestFaults ./tests/e2e

.PHONY: e2e-changes
e2e-changes: deps build image ## Fence, resize, restart and a move without an operator under a writing client (about fifteen minutes)
	KUBECTL_MSSQL_E2E=1 KUBECTL_MSSQL_CHANGES=1 go test -count=1 -timeout 60m -v -run TestChanges ./tests/e2e

OUTAGE_RUNS ?= 5
.PHONY: bench-outage
bench-outage: deps image ## What clients notice of each kind of loss of the primary, OUTAGE_RUNS (5) times: the table of docs/concepts/failover.md
	KUBECTL_MSSQL_E2E=1 KUBECTL_MSSQL_OUTAGES=$(OUTAGE_RUNS) go test -count=1 -timeout 90m -v -run TestOutages ./tests/e2e

.PHONY: simulate
SEEDS ?= 1..500
simulate: ## Schedules of the whole system in virtual time (SEEDS=1..10000; TRACE=1 to read them, SHRINK=1 to shorten failing ones)
	SIM_SEEDS='$(SEEDS)' SIM_TRACE='$(TRACE)' SIM_KEEP='$(KEEP)' SIM_SHRINK='$(SHRINK)' go test -count=1 -timeout 24h -v -run '^TestSeeds$$' ./tests/simulation

.PHONY: safety-rules
RULES ?= all
TRIES ?= 200
safety-rules: ## What each safety rule prevents: docs/contributing/safety-rules.md (RULES="R9;R20", TRIES=200)
	SIM_RULES='$(RULES)' SIM_TRIES='$(TRIES)' SIM_FIRST='$(FIRST)' go test -count=1 -timeout 24h -v -run '^TestRuleRemoval$$' ./tests/simulation

.PHONY: bench
bench: ## Benchmarks
	go test -run '^$$' -bench . -benchmem ./pkg/... ./tests/mssqlsim/... ./tests/cli | grep -v -e 'no test files'

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZ_TIME (20s)
	@for pkg in $$(go list ./pkg/... ./tests/mssqlsim/... ./api/...); do \
	  for f in $$(go test -list '^Fuzz' $$pkg 2>/dev/null | grep '^Fuzz' || true); do \
	    echo "== $$pkg $$f"; go test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZ_TIME) $$pkg; \
	  done; done

##@ Code
.PHONY: generate
generate: ## Deepcopy, CRDs, deploy/install.yaml, chart and rbac, reference of the commands
	$(CONTROLLER_GEN) object paths=./api/... crd output:crd:dir=pkg/manifests/crd
	go run ./pkg/manifests/gen
	go run ./pkg/cli/docgen/gen

.PHONY: verify
verify: generate ## Fail when a generated file is not up to date
	go mod tidy -diff
	@git diff --exit-code -- api pkg/manifests deploy docs && test -z "$$(git ls-files --others --exclude-standard -- api pkg/manifests deploy docs)" || \
	  { git ls-files --others --exclude-standard -- api pkg/manifests deploy docs; echo "run make generate and commit the result"; exit 1; }

HELM_VERSION := v3.22.0
.PHONY: chart-test
chart-test: $(CACHE)/helm-$(HELM_VERSION) ## The chart as Helm itself renders it, beside what install applies
	KUBECTL_MSSQL_HELM=$< go test -count=1 -v ./pkg/manifests/chart

$(CACHE)/helm-$(HELM_VERSION):
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE)/.gobin go install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
	mv $(CACHE)/.gobin/helm $@

.PHONY: golden
golden: ## Rewrite golden files; read the diff
	go test ./pkg/reasons ./pkg/sql/tsql ./pkg/controller/desired ./pkg/cli/status ./pkg/cli/check ./tests/cluster -args -update
	go test ./pkg/sql/decide ./tests/mssqlsim/tsql ./pkg/cli/report/scenario -run 'TestScenarios|TestCaptured|Script' -args -rewrite
	git diff --stat

.PHONY: lint
lint: $(CACHE)/golangci-lint-$(GOLANGCI_VERSION) ## golangci-lint with the reasons in .golangci.yml
	$(CACHE)/golangci-lint-$(GOLANGCI_VERSION) run ./...

$(CACHE)/golangci-lint-$(GOLANGCI_VERSION):
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE)/.gobin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(CACHE)/.gobin/golangci-lint $@

##@ Images
.PHONY: image
image: ## Image archives of the product and of the simulated server in bin/
	@tests/images.sh $(BIN)

.PHONY: clean
clean: ## Remove build output (the cache outside the tree stays)
	rm -rf $(BIN) dist

##@ Release
GORELEASER_VERSION := v2.14.3
GORELEASER := $(CACHE)/goreleaser-$(GORELEASER_VERSION)

.PHONY: release-snapshot
release-snapshot: $(GORELEASER) ## Everything that a release has, for all six platforms, in dist/; publishes and signs nothing
	VERSION=$(VERSION) $(GORELEASER) release --snapshot --clean --skip=sign,publish
	go run ./tests/mssqlsim/cmd/mkimage oci -amd64 dist/kubectl-mssql_linux_amd64_v1/kubectl-mssql \
	  -arm64 dist/kubectl-mssql_linux_arm64_v8.0/kubectl-mssql -o dist/kubectl-mssql_image.oci.tar
	go run ./tests/release/cmd/verify dist

.PHONY: release-check
release-check: $(GORELEASER) ## The release's configuration, as its tool reads it
	VERSION=$(VERSION) $(GORELEASER) check

$(GORELEASER):
	@mkdir -p $(CACHE)
	GOBIN=$(CACHE)/.gobin go install github.com/goreleaser/goreleaser/v2@$(GORELEASER_VERSION)
	mv $(CACHE)/.gobin/goreleaser $@

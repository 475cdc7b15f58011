#!/usr/bin/env bash
# The main job on one machine: a local Kubernetes, the operator, and a three-replica
# availability group. The servers are SIMULATED (tests/mssqlsim): Microsoft's image is
# not needed. To run the same with it, see docs/getting-started.md.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=$PWD/bin
cluster() { "$bin/cluster" "$@"; }
say() { printf '\n== %s\n' "$*"; }

up() {
  local begin=$SECONDS
  echo "Demo with SIMULATED SQL Servers; docs/getting-started.md shows the same with Microsoft's image."
  say "Building the plugin, the operator and the simulated server"
  mkdir -p "$bin"
  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$bin/cluster" ./tests/cluster/cmd/cluster
  tests/images.sh "$bin"

  say "Starting a Kubernetes cluster of three nodes (the first time its parts are compiled)"
  cluster up
  KUBECONFIG=$(cluster kubeconfig)
  export KUBECONFIG
  export PATH="$bin:$PATH"
  cluster load-image "$bin/kubectl-mssql.tar"
  cluster load-image "$bin/mssqlsim.tar"

  say "Installing the operator with the plugin"
  kubectl-mssql install

  say "Creating the availability group demo: three replicas, one database"
  kubectl-mssql create ag demo --replicas 3 --database orders --accept-eula \
    --image "$("$bin/image/mkimage" tag server)" --image-pull-policy IfNotPresent --storage 1Gi

  say "Ready after $((SECONDS - begin)) s"
  kubectl-mssql status demo
  cat <<EOF

Try next
  export KUBECONFIG=$KUBECONFIG PATH=$bin:\$PATH
  kubectl-mssql status demo -w
  kubectl-mssql failover demo --to demo-1 --yes
  kubectl-mssql sql demo -Q "SELECT @@SERVERNAME"
  make demo-down        # removes everything
EOF
}

down() {
  mkdir -p "$bin"
  [ -x "$bin/cluster" ] || CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$bin/cluster" ./tests/cluster/cmd/cluster
  cluster down
}

case "${1:-}" in
up) up ;;
down) down ;;
*) echo "usage: $0 up|down" >&2; exit 2 ;;
esac

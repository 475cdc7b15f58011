#!/usr/bin/env bash
# A new user's first hour on a local cluster with SIMULATED servers, recorded as text:
# every command of docs/walkthrough.md is run and its real output written below it.
# Usage: tests/demo/walkthrough.sh [OUTPUT]   (make walkthrough)
set -euo pipefail
cd "$(dirname "$0")/../.."

root=$PWD
out=$(realpath -m "${1:-docs/walkthrough.md}")
bin=$PWD/bin
name=kmswalk
cluster() { "$bin/cluster" --name "$name" "$@"; }

mkdir -p "$bin"
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$bin/cluster" ./tests/cluster/cmd/cluster
tests/images.sh "$bin"
work=$(mktemp -d)
trap 'cluster down >&2 || true; rm -rf "$work"' EXIT
cluster up >&2
cluster load-image "$bin/kubectl-mssql.tar" >&2
cluster load-image "$bin/mssqlsim.tar" >&2
KUBECONFIG=$(cluster kubeconfig)
export KUBECONFIG
ln -s "$bin/kubectl-mssql" "$work/kubectl-mssql"
ln -s "$(cluster assets)/kubectl" "$work/kubectl"
export PATH="$work:$PATH"
image=$("$bin/image/mkimage" tag server)
cd "$work"

text=$work/walkthrough.md
say() { printf '\n%s\n' "$*" >>"$text"; }
# run records a command, its output (both streams, as a terminal of 100 columns would
# show them without colour) and its exit code when that is not 0.
run() {
  printf '\n```console\n$ %s\n' "$*" >>"$text"
  local code=0
  COLUMNS=100 NO_COLOR=1 bash -c "$*" >"$work/output" 2>&1 </dev/null || code=$?
  cat "$work/output" >>"$text"
  [ "$code" = 0 ] || printf '(exit code %s)\n' "$code" >>"$text"
  printf '```\n' >>"$text"
  if [ "$code" != "${expect:-0}" ]; then
    echo "walkthrough: exit code $code of: $*" >&2
    cat "$work/output" >&2
    exit 1
  fi
}

cat >"$text" <<'EOF'
# A first hour

Every command below was run by `make walkthrough` on a local cluster of three nodes, and its real output stands
under it. The servers are simulated: times and sizes are theirs, everything else is what you will see with
Microsoft's image.
EOF

say "## Install"
run kubectl mssql check --pre
run kubectl mssql install
run kubectl mssql version

say "## Create"
run kubectl mssql create ag demo --replicas 3 --database orders --accept-eula --storage 1Gi --image "$image" --image-pull-policy IfNotPresent
run kubectl mssql status demo
run kubectl mssql list
run kubectl mssql check demo

say "## Use"
run kubectl mssql sql demo -d orders -Q "'CREATE TABLE invoice (id int PRIMARY KEY, amount decimal(10,2)); INSERT invoice VALUES (1, 12.50), (2, 7.25)'"
run kubectl mssql sql demo -d orders -Q "'SELECT id, amount FROM invoice ORDER BY id'"
run kubectl mssql sql demo -d orders -o json -Q "'SELECT COUNT(*) AS invoices FROM invoice'"

say "## Move the primary"
run kubectl mssql failover demo --to demo-1 --dry-run
run kubectl mssql failover demo --to demo-1 --yes
run kubectl mssql sql demo -d orders -Q "'SELECT @@SERVERNAME AS server, COUNT(*) AS invoices FROM invoice'"
run kubectl mssql history demo
run kubectl mssql status demo -w --until healthy --timeout 2m

say "## Hold a replica still"
run kubectl mssql fence on demo demo-2 --reason "'disk of its node is slow'" --yes
run kubectl mssql status demo
run kubectl mssql explain ReplicaFenced
run kubectl mssql fence off demo demo-2

say "## Make the operator wait"
run kubectl mssql maintenance on demo --reason "'the storage is moved'"
run kubectl mssql status demo
expect=4 run kubectl mssql failover demo --yes
run kubectl mssql maintenance off demo

say "## Grow"
run kubectl mssql resize demo --storage 2Gi --yes
run kubectl mssql restart demo --yes
run kubectl mssql status demo -vv

say "## Look behind it"
run kubectl mssql logs demo --since 2m --tail 12
run "kubectl mssql events demo | tail -n 12"
run kubectl mssql report demo -f report.tar.gz
run "tar tzf report.tar.gz | head -30"

say "## Remove"
run kubectl mssql uninstall --yes
run kubectl mssql status demo
run kubectl get pods,pvc

cp "$text" "$out"
echo "written: $out" >&2

# The README shows the first status of the recording (tests/arch compares them).
if [ "$out" = "$root/docs/walkthrough.md" ]; then
  awk -v recording="$text" '
    $0 == "$ kubectl mssql status demo" {
      while ((getline line < recording) > 0 && line != $0) {}
      do print line; while ((getline line < recording) > 0 && line != "```")
      skip = 1
    }
    $0 == "```" { skip = 0 }
    !skip' "$root/README.md" >"$work/README.md"
  cp "$work/README.md" "$root/README.md"
fi

#!/usr/bin/env bash
# Builds the image archives of the product and of the simulated server. Usage: tests/images.sh DIR
set -euo pipefail
dir=${1:?directory}
mkdir -p "$dir/image"
make --no-print-directory build >/dev/null
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$dir/image/" \
  ./tests/mssqlsim/cmd/sqlservr ./tests/mssqlsim/cmd/sqlcmd ./tests/mssqlsim/cmd/mkimage
"$dir/image/mkimage" product -binary "$dir/kubectl-mssql" -o "$dir/kubectl-mssql.tar"
"$dir/image/mkimage" server -sqlservr "$dir/image/sqlservr" -sqlcmd "$dir/image/sqlcmd" -o "$dir/mssqlsim.tar"

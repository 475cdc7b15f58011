#!/usr/bin/env bash
# Installs what the tests and the demo need on a bare Debian machine, and says so.
set -euo pipefail

packages=(etcd-server containerd runc containernetworking-plugins nftables iproute2 iptables conntrack socat util-linux
  busybox-static freetds-bin nodejs npm gcc libc6-dev zsh fish bash-completion)
commands=(etcd containerd runc nft ip iptables conntrack socat nsenter busybox tsql node npm gcc)

if ! command -v go >/dev/null; then
  echo "error: Go is not installed; version $(awk '$1=="go"{print $2}' go.mod) or newer is needed (https://go.dev/dl)" >&2
  exit 1
fi
missing=()
for c in "${commands[@]}"; do
  PATH="$PATH:/usr/sbin:/sbin" command -v "$c" >/dev/null || missing+=("$c")
done
[ -x /usr/lib/cni/bridge ] || missing+=(cni-plugins)
# Without these shells the tests of their completion are skipped: no reason to stop.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  for c in zsh fish; do
    command -v "$c" >/dev/null || missing+=("$c")
  done
  [ -e /usr/share/bash-completion/bash_completion ] || missing+=(bash-completion)
fi
if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
  echo "error: missing: ${missing[*]}; install the Debian packages ${packages[*]}, or run this as root on Debian" >&2
  exit 1
fi
# Install only what is missing: a machine may have a newer node than Debian's.
want=()
for p in "${packages[@]}"; do
  case "$p" in
    nodejs) command -v node >/dev/null && continue ;;
    npm) command -v npm >/dev/null && continue ;;
    gcc | libc6-dev) command -v gcc >/dev/null && continue ;;
  esac
  dpkg -s "$p" >/dev/null 2>&1 || want+=("$p")
done
echo "Installing Debian packages: ${want[*]} (missing: ${missing[*]})"
export DEBIAN_FRONTEND=noninteractive
# Debian's services must not start: the tests run their own, with their own files.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod +x "$policy"
  trap 'rm -f "$policy"' EXIT
fi
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${want[@]}" >/dev/null

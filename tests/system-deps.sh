#!/usr/bin/env bash
# System packages that some test groups need; Debian and its children, as root. Elsewhere: nothing.
set -euo pipefail
command -v apt-get >/dev/null 2>&1 || { echo "no apt-get: test groups that need system packages are left out"; exit 0; }
[ "$(id -u)" = 0 ] || { echo "not root: test groups that need system packages are left out"; exit 0; }
need=()
command -v g++ >/dev/null 2>&1 || need+=(g++)
command -v gcc >/dev/null 2>&1 || need+=(gcc)
[ -x /usr/sbin/sshd ] || need+=(openssh-server openssh-client)
command -v sbatch >/dev/null 2>&1 || need+=(slurm-wlm)
[ ${#need[@]} = 0 ] && exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends "${need[@]}"

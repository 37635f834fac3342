#!/usr/bin/env bash
# System packages that some test groups need; Debian and its children, as root. Elsewhere: nothing.
set -euo pipefail
command -v apt-get >/dev/null 2>&1 || { echo "no apt-get: test groups that need system packages are left out"; exit 0; }
[ "$(id -u)" = 0 ] || { echo "not root: test groups that need system packages are left out"; exit 0; }
need=()
wants() { command -v "$1" >/dev/null 2>&1 || [ -x "/usr/sbin/$1" ] || need+=("$2"); }
wants g++ g++
wants gcc gcc
wants slurmctld slurm-wlm
wants munged munge
wants sshd openssh-server
wants ssh openssh-client
wants pdsh pdsh
wants ip iproute2
wants ps procps
wants chromium chromium
wants groff groff-base
wants kubectl kubernetes-client
wants promtool prometheus
[ ${#need[@]} = 0 ] && exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -y -q --no-install-recommends "${need[@]}"

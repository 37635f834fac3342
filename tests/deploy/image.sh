#!/usr/bin/env bash
# Builds the image and starts it where podman can run; tests/run.sh calls this. Elsewhere it says why
# not, and the rules in test_image.py are all.
#   DSDOCTOR_IMAGE_BASE=…     another base than that of the Dockerfile
#   DSDOCTOR_IMAGE_OPTIONS=…  further options of `podman build`
#   DSDOCTOR_IMAGE_RUN=…      and of `podman run`
#   DSDOCTOR_PODMAN=…         another podman
set -euo pipefail
cd "$(dirname "$0")/../.."
podman=${DSDOCTOR_PODMAN:-podman}
base=${DSDOCTOR_IMAGE_BASE:-$(sed -n 's/^ARG BASE=//p' deploy/Dockerfile)}
read -ra options <<<"${DSDOCTOR_IMAGE_OPTIONS:-}"
read -ra more <<<"${DSDOCTOR_IMAGE_RUN:-}"
left_out() { echo "left out: the image ($1)"; exit 0; }
wrong() { echo "image: $1" >&2; exit 1; }

command -v "$podman" >/dev/null 2>&1 || left_out "no podman"
timeout 60 "$podman" info >/dev/null 2>&1 || left_out "podman does not run here"
"$podman" image inspect "$base" >/dev/null 2>&1 || timeout 120 "$podman" pull -q "$base" >/dev/null 2>&1 ||
  left_out "$base is neither here nor in a registry that can be reached"
start=(run --rm ${more[@]+"${more[@]}"})
timeout 60 "$podman" "${start[@]}" "$base" true >/dev/null 2>&1 || left_out "podman starts no container here"

image=localhost/dsdoctor-test:$$
trap '"$podman" image rm -f "$image" >/dev/null 2>&1 || true' EXIT
"$podman" build --layers=false ${options[@]+"${options[@]}"} -q -f deploy/Dockerfile --build-arg "BASE=$base" -t "$image" . >/dev/null ||
  wrong "it does not build"
# as the DaemonSet runs it: no root, no capabilities, nothing to write
start+=(--read-only --cap-drop=ALL --network=none)
version=$(sed -n 's/^ARG VERSION=//p' deploy/Dockerfile)
said=$("$podman" "${start[@]}" "$image" --version) || wrong "it does not start"
[ "$said" = "dsdoctor $version" ] || wrong "it says \`$said\`, expected \`dsdoctor $version\`"
account=$("$podman" "${start[@]}" --entrypoint id "$image" -u)
[ "$account" = 65532 ] || wrong "it runs as account $account, expected 65532"
label=$("$podman" image inspect --format '{{index .Config.Labels "org.opencontainers.image.version"}}' "$image")
[ "$label" = "$version" ] || wrong "its label says version \`$label\`, expected \`$version\`"
status=0
"$podman" "${start[@]}" "$image" check --quick >/dev/null || status=$?
case $status in 0 | 1 | 3) ;; *) wrong "\`check --quick\` ended with status $status" ;; esac
echo "image: built on $base, started as account $account: $said"

#!/usr/bin/env bash
# Collects the wheels that a GPU machine without a network needs beside torch: dsdoctor, DeepSpeed and the test dependencies.
#
#   bash tests/gpu/wheels.sh DIR [PYTHON_VERSION]
#
# Run it where there is a package index, with a python3 that has torch (DeepSpeed's build imports it; any build will do).
# PYTHON_VERSION is that of the GPU machine (3.12). tests/gpu/all.sh installs DIR if DSDOCTOR_GPU_WHEELS is set to it.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=${1:?usage: bash tests/gpu/wheels.sh DIR [PYTHON_VERSION]}
version=${2:-3.12}
mkdir -p "$dir"
python3 -m pip wheel -q --no-deps -w "$dir" .
# compiled for nothing: its ops are built on the GPU machine
DS_BUILD_OPS=0 python3 -m pip wheel -q --no-deps --no-build-isolation -w "$dir" "deepspeed==$(sed -n 's/^deepspeed==//p' constraints-train.txt)"
needed=$(python3 -c '
import importlib.metadata as m, re
wanted = [line for line in m.requires("dsdoctor") + m.requires("deepspeed") if "extra ==" not in line]
names = {re.match(r"[\w.-]+", line)[0].lower() for line in wanted}
# what any environment with torch has, and what torch itself is
print(*sorted(names - {"torch", "numpy", "tomli"} | {"pytest", "pytest-timeout", "hypothesis"}))')
platforms=()
for glibc in 2_17 2_24 2_27 2_28 2_31 2_34 2_35; do platforms+=(--platform "manylinux_${glibc}_x86_64"); done
# shellcheck disable=SC2086  # words without blanks
python3 -m pip download -q --only-binary=:all: --python-version "$version" --implementation cp \
  "${platforms[@]}" --platform manylinux2014_x86_64 -d "$dir" $needed
rm -f "$dir"/torch-*.whl "$dir"/numpy-*.whl
du -sh "$dir"

#!/usr/bin/env bash
# Tests on a real CUDA build of torch and real DeepSpeed, over stand-in libraries: `bash tests/run.sh standin [pytest arguments]`.
# The environment is built once in $DSDOCTOR_STANDIN_VENV (default: .venv-standin) and used again; delete it to build it anew.
# STANDIN_TORCH chooses the release of torch (default 2.9.1, CUDA 12.8).
set -euo pipefail
cd "$(dirname "$0")/../.."
torch=${STANDIN_TORCH:-2.9.1}
venv=${DSDOCTOR_STANDIN_VENV:-$PWD/.venv-standin}
python=$venv/bin/python
for tool in g++ nm readelf; do
  command -v "$tool" >/dev/null || { echo "$tool is needed: install g++ and binutils"; exit 2; }
done
unset PYTHONPATH CONDA_PREFIX DSDOCTOR_PYTHON VIRTUAL_ENV || true
src=tests/standin/src
# What each part is compiled from: it is built anew when that changes
declare -A sources=(
  [libraries]="tests/standin/hook.py $src/cuda.cpp $src/cudart.cpp $src/cudnn.cpp $src/nccl.cpp $src/errors.h $src/scenario.h"
  [operators]="$src/operators.cpp"
  [fused_adam]="$src/fused_adam.cpp"
)
build() {
  # shellcheck disable=SC2086  # words without blanks
  local now && now=$(cat tests/standin/build.py ${sources[$1]} | sha256sum)
  [ "$(cat "$venv/standin/$1.sources" 2>/dev/null)" != "$now" ] || return 0
  "$python" tests/standin/build.py "$1"
  echo "$now" >"$venv/standin/$1.sources"
}
if [ "$(cat "$venv/standin/torch" 2>/dev/null)" != "$torch" ]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q -U pip setuptools wheel ninja py-cpuinfo
  # without NVIDIA's wheels: the stand-ins take their place
  "$venv/bin/pip" install -q --no-deps "torch==$torch"
  build libraries
  "$python" tests/standin/build.py requirements >"$venv/standin/requirements.txt"
  "$venv/bin/pip" install -q -r "$venv/standin/requirements.txt"
  # DeepSpeed notes at its build which torch it meets, so it is not taken from a cache
  deepspeed=$(sed -n 's/^deepspeed==//p' constraints-train.txt)
  DS_BUILD_OPS=0 "$venv/bin/pip" install -q --no-cache-dir --no-build-isolation "deepspeed==$deepspeed"
  grep -q "'cuda_version': '1" "$venv"/lib/python3*/site-packages/deepspeed/git_version_info_installed.py
  "$venv/bin/pip" install -q -e ".[fleet,dev]"
  echo "$torch" >"$venv/standin/torch"
fi
for part in libraries operators fused_adam; do build "$part"; done
suite=("$python" -m pytest -m standin -p no:cacheprovider)
if [ $# -gt 0 ]; then
  exec "${suite[@]}" tests/standin "$@"
fi
# Both cores are used: most tests wait for one process at a time. The runs of `smoke` take as long as all others.
printed=$(mktemp)
trap 'rm -f "$printed"' EXIT
"${suite[@]}" tests/standin/test_smoke.py >"$printed" 2>&1 &
failed=0
"${suite[@]}" tests/standin --ignore=tests/standin/test_smoke.py || failed=$?
wait $! || failed=$?
cat "$printed"
exit "$failed"

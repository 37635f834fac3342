#!/usr/bin/env bash
# Installs dsdoctor with all that its tests need into .venv-tests and runs the whole suite, or what
# its arguments name to pytest. `tests/run.sh standin`: the tests on a CUDA build of torch (tests/standin).
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "${1:-}" = standin ]; then # a CUDA build of torch over stand-in libraries: an environment of its own
  shift
  exec bash tests/standin/run.sh "$@"
fi
bash tests/system-deps.sh
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "Python 3.10 or newer is needed"; exit 2; }
venv=${DSDOCTOR_TEST_VENV:-.venv-tests}
rm -rf "$venv"
python3 -m venv "$venv"
"$venv/bin/pip" install -q -U pip
"$venv/bin/pip" install -q -c constraints-train.txt -e ".[train,fleet,dev]"
export PATH="$PWD/$venv/bin:$PATH" VIRTUAL_ENV="$PWD/$venv"
unset PYTHONPATH CONDA_PREFIX DSDOCTOR_PYTHON || true
# pyenv's python3.8 starts only where it is named: the children are tried on the oldest Python
if command -v pyenv >/dev/null 2>&1; then
  PYENV_VERSION=$(pyenv versions --bare 2>/dev/null | sort -rV | paste -sd: -)
  export PYENV_VERSION
fi
# DeepSpeed's ops are compiled once for all runs of the suite
export TORCH_EXTENSIONS_DIR="${TORCH_EXTENSIONS_DIR:-$PWD/$venv/torch_extensions}"
ruff check .
ruff format --check .
mypy
left_out=""
marks="not gpu and not standin"
if ! command -v gcc >/dev/null 2>&1; then
  marks="$marks and not system"
  left_out="system (no C compiler)"
fi
failed=0
if [ $# -gt 0 ]; then
  python -m pytest -m "$marks" "$@" || failed=$?
else
  # A test that fails is tried once more, and named in the summary as RERUN: one that then passes
  # depends on the speed of the machine, which is a bug to fix (CONTRIBUTING.md)
  python -m tests.support.suite -m "$marks" --reruns 1 -rfER || failed=$?
  [ "$failed" != 2 ] || exit 2  # Ctrl-C, or tests that cannot be collected
  bash tests/deploy/image.sh || failed=$?
fi
[ "$failed" = 0 ] || exit "$failed"
if [ -n "$left_out" ]; then
  echo "left out: gpu, standin, $left_out"
  [ "${CI:-}" = "" ] || [ "${CI:-}" = 0 ] || exit 1
else
  echo "left out: gpu, standin"
fi

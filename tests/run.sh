#!/usr/bin/env bash
# Installs dsdoctor with all that its tests need into .venv-tests and runs the whole suite.
set -euo pipefail
cd "$(dirname "$0")/.."
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
marks="not gpu"
if ! command -v gcc >/dev/null 2>&1; then
  marks="$marks and not system"
  left_out="system (no C compiler)"
fi
python -m pytest -m "$marks" "$@"
if [ -n "$left_out" ]; then
  echo "left out: gpu, $left_out"
  [ "${CI:-}" = "" ] || [ "${CI:-}" = 0 ] || exit 1
else
  echo "left out: gpu"
fi

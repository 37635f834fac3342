#!/usr/bin/env bash
# A CUDA build of torch from the package index, on a machine whose toolkit is of another CUDA:
# DeepSpeed's own error before, `dsdoctor fix --install-cuda-toolkit`, and the compiled op after.
#
#   bash tests/real/toolkit_of_another_version.sh [FOLDER]
#
# Takes about 15 GB in FOLDER and 10 to 20 minutes; needs a package index, a C++ compiler and any
# toolkit with nvcc at $CUDA_HOME (default /usr/local/cuda). No GPU is needed or used.
set -euo pipefail
here=$(cd "$(dirname "$0")/../.." && pwd)
work=${1:-$(mktemp -d)}
torch=${TORCH:-2.15.0}
deepspeed=${DEEPSPEED:-0.19.8}
export CUDA_HOME=${CUDA_HOME:-/usr/local/cuda} TORCH_CUDA_ARCH_LIST=${TORCH_CUDA_ARCH_LIST:-9.0}
export HOME="$work/home" DS_ACCELERATOR=cuda MAX_JOBS=${MAX_JOBS:-2}
unset DSDOCTOR_PYTHON TORCH_EXTENSIONS_DIR PYTHONPATH || true
mkdir -p "$HOME"
say() { printf '\n== %s\n' "$*"; }

doctor=${DSDOCTOR:-}
if [ -z "$doctor" ]; then
  python3 -m venv "$work/doctor"
  "$work/doctor/bin/pip" install -q "$here"
  doctor="$work/doctor/bin/dsdoctor"
fi
say "the patient: torch $torch from the package index"
python3 -m venv "$work/env"
"$work/env/bin/pip" install -q "torch==$torch" ninja setuptools wheel packaging psutil py-cpuinfo \
  msgpack hjson einops tqdm pydantic numpy
export PATH="$work/env/bin:$PATH" VIRTUAL_ENV="$work/env"
"$work/env/bin/python" -c 'import torch; print("torch", torch.__version__, "CUDA", torch.version.cuda)'
"$CUDA_HOME/bin/nvcc" --version | grep release

build() {
  DS_BUILD_FUSED_ADAM=1 "$work/env/bin/pip" install --no-build-isolation --no-deps --no-cache-dir \
    --force-reinstall --no-binary deepspeed "deepspeed==$deepspeed"
}
say "before: DeepSpeed pre-builds fused_adam with $CUDA_HOME"
if build > "$work/before.log" 2>&1; then
  echo "it built: the toolkit at $CUDA_HOME fits torch $torch; choose another TORCH=..."
  exit 1
fi
grep -m1 -E 'does not match the version torch was compiled with|Exception: ' "$work/before.log"
"$work/env/bin/pip" install -q --no-build-isolation --no-deps "deepspeed==$deepspeed"
"$work/env/bin/pip" freeze --all | grep -v '^deepspeed' > "$work/before.txt"

say "fix"
DS_BUILD_FUSED_ADAM=1 "$doctor" fix --install-cuda-toolkit --yes
"$work/env/bin/pip" freeze --all | grep -v '^deepspeed' | diff "$work/before.txt" - && echo "pip freeze: the same list"

say "after: the same command, in a shell that sourced the snippet"
# shellcheck disable=SC1091
. "$work/env/opt/dsdoctor/activate.sh"
echo "CUDA_HOME=$CUDA_HOME"
build > "$work/after.log" 2>&1 || { tail -5 "$work/after.log"; exit 1; }
"$work/env/bin/python" - <<'PY'
import glob, os, deepspeed
from deepspeed.ops.op_builder import FusedAdamBuilder
op = FusedAdamBuilder().load()
text = open(op.__file__, "rb").read()
assert b".nv_fatbin" in text, "no CUDA code in it"
print("loaded", os.path.relpath(op.__file__, os.path.dirname(deepspeed.__file__)), "with CUDA code")
PY
DS_BUILD_FUSED_ADAM=1 "$doctor" check --quick --select cuda -v | grep -E 'cuda-toolkit-(missing|mismatch|incomplete)'

say "undo"
"$doctor" fix --undo
[ ! -e "$work/env/opt/dsdoctor" ] && echo "the folder is gone"

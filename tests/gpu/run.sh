#!/usr/bin/env bash
# Everything that needs a GPU, unattended: `bash tests/gpu/run.sh [PYTHON]`. The interpreter must hold torch (CUDA),
# deepspeed and the test dependencies; figures of the memory prediction are printed. One GPU is enough.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-python3}
"$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' || { echo "no GPU that torch can use"; exit 2; }
export TORCH_EXTENSIONS_DIR=${TORCH_EXTENSIONS_DIR:-$PWD/.gpu-extensions}
exec "$python" -m pytest -m gpu -rA -p no:cacheprovider tests/gpu "${@:2}"

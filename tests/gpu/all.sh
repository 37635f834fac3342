#!/usr/bin/env bash
# Everything that a machine with NVIDIA GPUs can prove, in one unattended call:
#
#   bash tests/gpu/all.sh OUTPUT_DIR [PYTHON]
#
# PYTHON must have torch (CUDA), deepspeed, this package and the test dependencies. No network is needed. Leaves in OUTPUT_DIR:
# what each command printed and its exit status, a redacted snapshot and the collector's recording (to become fixtures),
# and `summary.txt`, which goes into docs/verified.md. One GPU is enough; with two or more, pairs are tried as well.
set -u
cd "$(dirname "$0")/../.."
out=${1:?usage: bash tests/gpu/all.sh OUTPUT_DIR [PYTHON]}
python=${2:-python3}
mkdir -p "$out"
out=$(cd "$out" && pwd)
"$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' || { echo "no GPU that torch can use"; exit 2; }
gpus=$("$python" -c 'import torch; print(torch.cuda.device_count())')
export TORCH_EXTENSIONS_DIR=${TORCH_EXTENSIONS_DIR:-$out/extensions}
export DSDOCTOR_RUNS=$out/runs XDG_STATE_HOME=$out/state
: >"$out/summary.txt"
step() { # NAME SECONDS COMMAND…
  local name=$1 limit=$2 begun status
  shift 2
  begun=$(date +%s)
  timeout -k 30 "$limit" "$@" >"$out/$name.txt" 2>"$out/$name.err"
  status=$?
  printf '%-22s exit %-3s %5s s\n' "$name" "$status" "$(($(date +%s) - begun))" | tee -a "$out/summary.txt"
}
{
  date -u +%FT%TZ
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
  "$python" -c 'import torch, deepspeed; print("torch", torch.__version__, "deepspeed", deepspeed.__version__)'
} >>"$out/summary.txt" 2>&1
step check 300 "$python" -m dsdoctor check -v --python "$python"
step check-quick 60 "$python" -m dsdoctor check --quick --json --python "$python"
step check-deep 600 "$python" -m dsdoctor check --deep --json --python "$python"
step snapshot 300 "$python" -m dsdoctor snapshot --redact -o "$out/snapshot.json" --python "$python"
step collector 300 bash -c "'$python' -m dsdoctor fleet bundle -o '$out/collector.py' && '$python' '$out/collector.py' >'$out/recording.json'"
step recommend 120 "$python" -m dsdoctor recommend --model gpt2-xl --seq-len 1024 --json
step prove 600 "$python" -m dsdoctor recommend --model gpt2 --gpus 0 --prove -o "$out/proven"
for stage in 0 1 2 3; do
  printf '{"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}, "zero_optimization": {"stage": %s}}' "$stage" >"$out/zero$stage.json"
  step "smoke-zero$stage" 600 "$python" -m dsdoctor smoke --gpus 0 --config "$out/zero$stage.json" --json --python "$python"
done
[ "$gpus" -lt 2 ] || step smoke-pair 600 "$python" -m dsdoctor smoke --gpus 0,1 --json --python "$python"
step fix-toolkit-plan 120 "$python" -m dsdoctor fix --install-cuda-toolkit --dry-run --python "$python"
step run 300 "$python" -m dsdoctor run --every 1s -- "$python" -c 'import time, torch; x = torch.randn(4096, 4096, device="cuda"); [((x @ x).sum().item(), print(f"step {n} loss: 1.0", flush=True), time.sleep(0.1)) for n in range(50)]'
step oom 300 "$python" -m dsdoctor run -- "$python" -c 'import torch; kept = [torch.empty(1 << 30, device="cuda") for _ in range(4096)]'
step pytest-gpu 1500 bash tests/gpu/run.sh "$python"
echo "written to $out"

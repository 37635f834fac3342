#!/usr/bin/env bash
# Everything that a machine with NVIDIA GPUs can prove, in one unattended call:
#
#   bash tests/gpu/all.sh OUTPUT_DIR [PYTHON]
#
#   DSDOCTOR_GPU_SECONDS   the whole ends within this time (3600); 600 is enough for what matters most
#   DSDOCTOR_GPU_RESULTS   archive of all results, written anew after every step (OUTPUT_DIR/results.tar.gz)
#   DSDOCTOR_GPU_WHEELS    folder of wheels (tests/gpu/wheels.sh) for what PYTHON does not have
#
# PYTHON must have torch (CUDA). No network is needed. The steps come by their value: a step that does not fit into the time
# that is left is cut off or left out, and summary.txt says so. OUTPUT_DIR gets what each command printed and its exit
# status, a redacted snapshot and the collector's recording (to become fixtures), and summary.txt, which goes into
# docs/verified.md. The archive is there whenever the machine is taken away.
# One GPU is enough; with two or more, pairs are tried as well.
set -u
cd "$(dirname "$0")/../.."
out=${1:?usage: bash tests/gpu/all.sh OUTPUT_DIR [PYTHON]}
python=$(command -v "${2:-python3}") || { echo "\`${2:-python3}\` is not an interpreter"; exit 2; }
begun=$(date +%s)
end=$((begun + ${DSDOCTOR_GPU_SECONDS:-3600}))
mkdir -p "$out"
out=$(cd "$out" && pwd)
: >"$out/summary.txt"
results=${DSDOCTOR_GPU_RESULTS:-$out/results.tar.gz}
export TORCH_EXTENSIONS_DIR=${TORCH_EXTENSIONS_DIR:-$out/extensions} PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
export DSDOCTOR_RUNS=$out/runs XDG_STATE_HOME=$out/state
say() { echo "$*" | tee -a "$out/summary.txt"; }
pack() { # what there is so far; complete whenever the machine is taken away
  tar -czf "$results.new" -C "$out" --exclude=./extensions --exclude=./site --exclude=./results.tar.gz\* . 2>/dev/null
  mv "$results.new" "$results"
}
step() { # NAME SECONDS COMMAND…
  local name=$1 limit=$2 left started status
  shift 2
  left=$((end - $(date +%s) - 10)) # what is cut off gets ten seconds to say what it knows
  if [ "$left" -lt 15 ]; then
    say "$(printf '%-22s not run: no time left' "$name")"
    return
  fi
  [ "$left" -ge "$limit" ] || limit=$left
  started=$(date +%s)
  timeout -k 10 "$limit" "$@" >"$out/$name.txt" 2>"$out/$name.err" </dev/null
  status=$?
  say "$(printf '%-22s exit %-3s %5s s%s' "$name" "$status" "$(($(date +%s) - started))" "$([ $status != 124 ] || echo ' (cut off)')")"
  pack
}
if [ -n "${DSDOCTOR_GPU_WHEELS:-}" ]; then
  # in a folder of its own, before the interpreter's packages: its torch stays
  "$python" -m pip install -q --no-index --no-deps --no-compile --target "$out/site" "$DSDOCTOR_GPU_WHEELS"/*.whl || exit 2
  export PYTHONPATH=$out/site${PYTHONPATH:+:$PYTHONPATH}
fi
"$python" - <<'PYTHON' >>"$out/summary.txt" 2>"$out/start.err" || { cat "$out/start.err" "$out/summary.txt"; exit 2; }
import importlib.util, sys, time
lacking = [n for n in ("torch", "deepspeed", "dsdoctor", "pytest", "pytest_timeout") if importlib.util.find_spec(n) is None]
if lacking:
    sys.exit("not installed: " + ", ".join(lacking) + " (DSDOCTOR_GPU_WHEELS, tests/gpu/wheels.sh)")
import torch
if not torch.cuda.is_available():
    sys.exit("no GPU that torch can use")
import deepspeed
print(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "python", sys.version.split()[0], "torch", torch.__version__, "deepspeed", deepspeed.__version__)
for gpu in range(torch.cuda.device_count()):
    p = torch.cuda.get_device_properties(gpu)
    print(f"GPU {gpu}: {p.name}, {p.total_memory >> 20} MiB, compute capability {p.major}.{p.minor}")
PYTHON
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader >>"$out/summary.txt" 2>&1
cat "$out/summary.txt"
gpus=$(grep -c '^GPU [0-9]' "$out/summary.txt")
doctor() { local name=$1 limit=$2; shift 2; step "$name" "$limit" "$python" -m dsdoctor "$@"; }
suite() { # NAME SECONDS [pytest arguments]: what passed is printed at once, with the memory that was measured
  local name=$1 limit=$2; shift 2
  step "$name" "$limit" "$python" -m pytest -m gpu -v -s -p no:cacheprovider tests/gpu "$@"
}
zero() {
  printf '{"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": true}, "zero_optimization": {"stage": %s}}' "$1" >"$out/zero$1.json"
  doctor "smoke-zero$1" 300 smoke --gpus 0 --config "$out/zero$1.json" --no-bisect --format json --python "$python"
}
# a sound machine has no findings, and its ranks train
doctor check 180 check -v --python "$python"
zero 2
# what a plan says that it takes, and what it takes
doctor fits 300 smoke --gpus 0 --model llama-3.2-1b --full-size --steps 3 --no-bisect --format json
suite memory 900 -k "memory_is_what"
doctor check-deep 300 check --deep --format json --python "$python"
doctor snapshot 120 snapshot --redact -o "$out/snapshot.json" --python "$python"
step collector 120 bash -c "'$python' -m dsdoctor fleet bundle -o '$out/collector.py' && '$python' '$out/collector.py' >'$out/recording.json'"
[ "$gpus" -lt 2 ] || doctor smoke-pair 300 smoke --gpus 0,1 --format json --python "$python"
for stage in 3 1 0; do zero "$stage"; done
step run 120 "$python" -m dsdoctor run --every 1s -- "$python" -c 'import time, torch; x = torch.randn(4096, 4096, device="cuda"); [((x @ x).sum().item(), print(f"step {n} loss: 1.0", flush=True), time.sleep(0.1)) for n in range(50)]'
step oom 120 "$python" -m dsdoctor run -- "$python" -c 'import torch; kept = [torch.empty(1 << 30, device="cuda") for _ in range(4096)]'
suite pytest 1500 -k "not memory_is_what"
doctor check-quick 60 check --quick --format json --python "$python"
doctor recommend 120 recommend --model gpt2-xl --seq-len 1024 --format json
doctor prove 300 recommend --model gpt2 --gpus 0 --prove -o "$out/proven"
doctor fix-toolkit-plan 120 fix --install-cuda-toolkit --dry-run --python "$python"
say "$(($(date +%s) - begun)) s in all"
pack
echo "written to $out, all of it in $results"

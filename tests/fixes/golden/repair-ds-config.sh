# repair-ds-config: write a corrected copy, `/job/ds.fixed.json`
# because the optimizer is renamed to `AdamW`
# because `gradient_cliping` is renamed to `gradient_clipping`
# because `zero_optimization.offload_param` is removed: it has no effect
(set -e
# --- /job/ds.json
# +++ /job/ds.fixed.json
# @@ -4,9 +4,6 @@
#    "train_micro_batch_size_per_gpu": 1, // small
# -  "optimizer": {"type": "AdamWW", "params": {"lr": 1e-5}},
# -  "gradient_cliping": 1.0, # typo
# +  "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
# +  "gradient_clipping": 1.0, # typo
#    "zero_optimization": {
#      "stage": 2,
# -    "offload_param": {
# -      "device": "cpu" /* } not here */
# -    },
#      "overlap_comm": true
mkdir -p /job
cat > /job/ds.fixed.json <<'DSDOCTOR_END'
{
  // ZeRO-2, as the guide has it
  "train_batch_size": 32,
  "train_micro_batch_size_per_gpu": 1, // small
  "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
  "gradient_clipping": 1.0, # typo
  "zero_optimization": {
    "stage": 2,
    "overlap_comm": true
  },
  "fp16": {"enabled": "True"}
}
DSDOCTOR_END
)

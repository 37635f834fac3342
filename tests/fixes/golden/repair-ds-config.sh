# repair-ds-config: a corrected copy, `/job/ds.fixed.json`, to start the job with
# because the optimizer is called `AdamW`
# because `gradient_cliping` is called `gradient_clipping`
# because `zero_optimization.offload_param` is taken out: it does nothing there
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

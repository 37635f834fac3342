# remove-stale-builds: remove built ops of another torch
(set -e
# its torch is gone
rm -rf -- /x/fused_adam
)

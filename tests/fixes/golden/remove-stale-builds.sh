# remove-stale-builds: remove ops that were built for another torch
(set -e
# its torch is gone
rm -rf -- /x/fused_adam
)

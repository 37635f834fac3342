# remove-stale-shm: remove stale shared-memory segments from /dev/shm
(set -e
# no process maps it, and it holds 66 MiB
rm -rf -- /dev/shm/deepspeed_allreduce_buffer_1000_127.0.0.1_29500_0
)

# raise-limits: raise the limits of the job
# a process may lock 0.0625 MiB of memory, but the job needs an unlimited memlock: `NCCL_IB_HCA`
# selects InfiniBand, which locks its buffers
#   in /etc/security/limits.d/90-dsdoctor.conf, then log in again:
#   * soft memlock unlimited
#   * hard memlock unlimited

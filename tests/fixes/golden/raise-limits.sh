# raise-limits: raise the limits of the job
# a process may lock 0.0625 MiB, but `NCCL_IB_HCA` makes the job lock its buffers, which needs an
# unlimited memlock
#   in /etc/security/limits.d/90-dsdoctor.conf, then log in again:
#   * soft memlock unlimited
#   * hard memlock unlimited

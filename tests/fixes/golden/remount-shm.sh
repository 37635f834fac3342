# remount-shm: /dev/shm of 32 GiB instead of 64 MiB
# the shared memory at `/dev/shm` holds 64 MiB, but a job of 2 ranks needs 512 MiB or more
#   sudo mount -o remount,size=32G /dev/shm

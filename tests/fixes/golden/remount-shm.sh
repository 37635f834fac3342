# remount-shm: enlarge /dev/shm from 64 MiB to 32 GiB
# `/dev/shm` is 64 MiB in size, but a job of 2 ranks needs 512 MiB or more
#   sudo mount -o remount,size=32G /dev/shm

"""Generic sentences in which products list what may have happened: they are not evidence."""

from __future__ import annotations

from dsdoctor.api import Boilerplate

BOILERPLATE = (
    Boilerplate(
        pattern=r"NCCL INFO dlv?sym failed on .*",
        source="nccl 2.18-2.28 src/misc/ibvsymbols.cc: symbols that it can do without",
        examples=(
            "h:1:2 [1] NCCL INFO dlvsym failed on f - /lib/libmlx5.so: undefined symbol: f, version MLX5_1.25",
            "h:1:2 [1] NCCL INFO dlsym failed on f - undefined symbol: f",
        ),
    ),
    Boilerplate(
        pattern=r"\bras/\w{1,40}\.(?:cc|h):\d{1,6} NCCL WARN .*",
        source="nccl 2.24-2.32 src/ras: the service that ncclras asks, which NCCL does without",
        examples=(
            "h:1:2 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address already in use",
        ),
    ),
    Boilerplate(
        pattern=r"\(1\) The process is killed by SIGKILL by OOM killer due to high memory usage.*",
        source="ray 2.0-2.50 src/ray/gcs/gcs_server, python/ray/exceptions.py",
        examples=(
            "Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called.",
        ),
    ),
    Boilerplate(
        pattern=r"System call \((?:e\.g\. )?socket, malloc[^)]{0,20}\)(?: or external library call)? failed(?: or device error)?",
        source="torch 1.8-2.13 csrc/distributed/c10d/NCCLUtils.cpp",
        examples=(
            "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
            "ncclSystemError: System call (socket, malloc, munmap, etc) failed.",
        ),
    ),
    Boilerplate(
        pattern=r"It can be also caused by unexpected exit of a remote peer[^.]{0,120}\.?",
        source="torch 1.13-2.13 csrc/distributed/c10d/NCCLUtils.cpp",
        examples=(
            "ncclSystemError: System call failed. It can be also caused by unexpected exit of a remote peer, you can check NCCL warnings for failure reason and see if there is connection closure by a peer.",
        ),
    ),
    Boilerplate(
        pattern=r"This (?:typically indicates|usually reflects an invalid usage or a bug) .{0,300}",
        source="torch 1.8-2.13, NCCL 2: hints behind an error",
        examples=(
            "ncclInternalError: Internal check failed. This usually reflects an invalid usage or a bug of NCCL",
            "[Rank 3] Watchdog got stuck for 480 seconds. This typically indicates a NCCL/CUDA API hang blocking the watchdog",
        ),
    ),
    Boilerplate(
        pattern=r"(?:[Tt]his can|[Pp]ossible (?:causes|reasons)|[Cc]ommon causes) (?:be|are|include)\b.{0,400}",
        source="torch 2.0-2.13 and transformers 4-5: hints behind an error",
        examples=(
            "Possible causes include an out of memory kill of a worker, a slow disk, or a hang",
        ),
    ),
    Boilerplate(
        pattern=r"Failed to load image Python extension: .*",
        source="torchvision 0.16.2 io/image.py: a warning, reading of images by torchvision.io is off",
        examples=(
            "/env/torchvision/io/image.py:13: UserWarning: Failed to load image Python extension: libtorch_cuda_cu.so: cannot open shared object file: No such file or directory",
        ),
    ),
    Boilerplate(
        pattern=r"Failed to import \w{1,40} plugin due to: .*",
        source="nvidia-modelopt torch/utils/import_utils.py: a warning, the plugin is off",
        examples=(
            "UserWarning: Failed to import diffusers plugin due to: ImportError('peft>=0.17.0 is required for a normal functioning of this module')",
        ),
    ),
    Boilerplate(
        pattern=r"mkdir -p failed for path .*",
        source="matplotlib 3.4-3.10 __init__.py: a warning, a temporary folder is used",
        examples=(
            "mkdir -p failed for path /home/u/.config/matplotlib: [Errno 13] Permission denied: '/home/u/.config/matplotlib'",
        ),
    ),
    Boilerplate(
        pattern=r"To disable this warning, you can either:.*|If reserved but unallocated memory is large.*",
        source="tokenizers 0.10-0.22, torch 1.11-2.13 c10/cuda/CUDACachingAllocator.cpp",
        examples=(
            "To disable this warning, you can either: avoid using `tokenizers` before the fork",
            "If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.",
        ),
    ),
)

"""Messages of `disk-full`, one signature for each."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        pattern="No space left on device|StorageFull|[Dd]isk quota exceeded",
        source="glibc 2.36 libc.so.6; safetensors 0.8.0 _safetensors_rust.abi3.so",
        examples=(
            "OSError: [Errno 28] No space left on device: 'out/x.pt'",
            "OSError: [Errno 122] Disk quota exceeded",
            "StorageFull",
        ),
        not_near=(
            # not a row of `df` that shows room there
            "/dev/shm/",
            "'/dev/shm'",
            "`/dev/shm`",
            "100% /dev/shm",
            "shm)",
            "multiprocessing/queues",
            "multiprocessing/synchronize",
            "multiprocessing/heap",
            "multiprocessing/context",
            "</torch_",
            "/torch_shm",
            "ctx.Lock",
            "_rlock",
            "SemLock",
            "NCCL WARN",
            "shm_open",
            "joblib",
            "shared memory",
            # inotify_add_watch(2): the limit of watches is reached, and no file system is full
            "inotify_add_watch",
            # a limit of the kernel, not of a disk
            "unable to create cgroup",
            "user namespace",
        ),
    ),
    Signature(
        pattern=r"No space left on device: '(?P<path>(?!/dev/shm)[/.~][^']{0,300})'",
        source="CPython 3.8-3.14 OSError",
        message="the file system of `{path}` is full",
        examples=(
            "OSError: [Errno 28] No space left on device: '/tmp/pymp-a'",
            "OSError: [Errno 28] No space left on device: './out/x.pt'",
            "OSError: [Errno 28] No space left on device: '~/x'",
        ),
        not_examples=("OSError: [Errno 28] No space left on device: '/dev/shm/x'",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="[Dd]isk quota exceeded",
        source="glibc 2.36 libc.so.6",
        examples=(
            "OSError: [Errno 122] Disk quota exceeded",
            "cp: error writing 'out/x.pt': Disk quota exceeded",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="StorageFull",
        source="safetensors 0.8.0 _safetensors_rust.abi3.so",
        examples=(
            "IoError(Os { code: 28, kind: StorageFull })",
            "safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, kind: StorageFull })",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="(?:Cannot|cannot|can't|fatal error|error writing|write|Error closing|assembler).{0,200}No space left on device",
        source="glibc 2.17-2.41 strerror (ENOSPC), as gcc, tar, cp, bash and ld print it",
        examples=(
            "/tmp/x.s: fatal error: error writing to /tmp/x.s: No space left on device",
            "tar: x/y.bin: Cannot write: No space left on device",
            "cannot ... No space left on device",
            "can't ... No space left on device",
            "Error closing ... No space left on device",
            "assembler ... No space left on device",
        ),
        not_examples=("No space left on device (28) in shm",),
        level=Level.STRONG,
        not_near=("/dev/shm", "shm)", "NCCL WARN"),
    ),
    Signature(
        pattern=r"inline_container\.cc:\d+\][ .]*unexpected pos|basic_ios::clear: iostream error|ios_base::badbit set: iostream stream error|PytorchStreamWriter failed writing file",
        source=(
            "torch 1.0-2.13 caffe2/serialize/inline_container.cc; GCC 5-14 libstdc++-v3 "
            "ios_base::failure; MSVC 14 STL xiosbase"
        ),
        examples=(
            "RuntimeError: [enforce fail at inline_container.cc:659] . unexpected pos 704 vs 598",
            "RuntimeError: PytorchStreamWriter failed writing file data/418: file write failed",
            "RuntimeError: basic_ios::clear: iostream error",
            "RuntimeError: ios_base::badbit set: iostream stream error",
        ),
        not_examples=("RuntimeError: [enforce fail at inline_container.cc:659] . unexpected",),
        # torch says neither how much was written nor why it was not more
        message="a file could not be written completely",
        hint="compare `df -h` and `ulimit -f` with the size of the file: free up space, or run `ulimit -f unlimited` before the job starts",
    ),
    Signature(
        pattern=r"\[Errno 27\] File too large",
        source="python 3.3-3.14 Objects/exceptions.c, with glibc's words for EFBIG",
        examples=(
            "OSError: [Errno 27] File too large",
            "RuntimeError: [Errno 27] File too large: 'out/model.pt'",
        ),
        message="A file is larger than the limit of the process or of the file system",
        hint="run `ulimit -f unlimited` before the job starts, or use a file system that allows files of that size",
    ),
    Signature(
        pattern=r"File size limit exceeded|\bSIGXFSZ\b",
        source="glibc 2.17-2.41 strsignal (SIGXFSZ), as bash prints it; Python itself ignores the signal",
        examples=(
            "bash: line 1: 1234 File size limit exceeded(core dumped) ./worker",
            "exitcode: -25 (SIGXFSZ)",
        ),
        message="A file is larger than the limit of the process or of the file system",
        hint="run `ulimit -f unlimited` before the job starts, or use a file system that allows files of that size",
    ),
    Signature(
        pattern="low on resource: ephemeral-storage",
        source="kubernetes 1.15-1.34 pkg/kubelet/eviction/helpers.go; 1.7 says nodefs",
        examples=("The node was low on resource: ephemeral-storage.",),
        level=Level.STRONG,
        masks=("pod-evicted",),
    ),
    Signature(
        pattern=r"\bContainer (?P<container>\S{1,63}) exceeded its local ephemeral storage limit \x22(?P<limit>[^\x22\s]{1,20})\x22",
        source="kubernetes 1.15-1.34 pkg/kubelet/eviction/helpers.go",
        message="The container {container} wrote more than its limit of {limit} of ephemeral storage, and its pod was evicted",
        hint="raise `limits.ephemeral-storage` of the container, or write checkpoints and caches to a mounted volume",
        examples=('Container train exceeded its local ephemeral storage limit "20Gi". ',),
        not_examples=("what ' exceeded its local ephemeral storage limit \"' means",),
        level=Level.STRONG,
        masks=("pod-evicted",),
    ),
    Signature(
        pattern=r"\bUsage of EmptyDir volume \x22(?P<volume>[^\x22\s]{1,63})\x22 exceeds the limit \x22(?P<limit>[^\x22\s]{1,20})\x22",
        source="kubernetes 1.15-1.34 pkg/kubelet/eviction/helpers.go",
        message="The `emptyDir` volume {volume} holds more than its limit of {limit}, and the pod was evicted",
        hint="raise the `sizeLimit` of that volume, or write less to it; with `medium: Memory` its files take the node's memory",
        examples=('Usage of EmptyDir volume "scratch" exceeds the limit "8Gi". ',),
        not_examples=('Usage of EmptyDir volume "" exceeds the limit "".',),
        level=Level.STRONG,
        masks=("pod-evicted",),
    ),
    Signature(
        pattern="OutOfDiskError: ",
        source="ray 2.3-2.54 python/ray/exceptions.py",
        message="Ray could not spill objects, because the disk of its session is full",
        hint="free up space below `/tmp/ray`, or start Ray with `--temp-dir` on a larger file system",
        examples=("ray.exceptions.OutOfDiskError: Local disk is full",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="database or disk is full",
        source="sqlite 3 src/main.c",
        examples=("sqlite3.OperationalError: database or disk is full",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Not enough free disk space to download",
        source="huggingface_hub 2.4.0 file_download.py",
        examples=("Not enough free disk space to download",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Not enough disk space",
        source="datasets 3.6.0 builder.py",
        examples=(
            "OSError: Not enough disk space. Needed: 90.12 GiB (download: 30 GiB, generated: 60.12 GiB)",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="not enough space on the disk",
        source="Windows 10-11 ERROR_DISK_FULL (112), printed by python 3.3-3.14 Objects/exceptions.c",
        examples=("not enough space on the disk",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"(?i)\b(?:error|exception|failed|fatal|cannot|could not)\b.{0,160}\bout of disk space|^out of disk space",
        source="ray 2.35.0 raylet",
        examples=(
            "wandb: ERROR Unable to write the file: out of disk space",
            "Out of disk space",
        ),
        not_examples=("The next biggest issue is running out of disk space.",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=": no space left on device",
        source="go 1.0-1.24 syscall/zerrors_linux_amd64.go",
        examples=("failed to register layer: write /usr/lib/libx.so: no space left on device",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bENOSPC\b",
        source="libuv 1 include/uv.h, as node and npm print it",
        examples=("ENOSPC",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\[WinError 112\]",
        source="Windows 10-11 ERROR_DISK_FULL (112), printed by python 3.3-3.14 Objects/exceptions.c",
        examples=("[WinError 112]",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"write\(\): fd \d{1,9} failed with",
        source="torch 1.0-2.13 csrc/serialization.cpp",
        examples=(
            "RuntimeError: write(): fd 31 failed with Input/output error",
            "RuntimeError: write(): fd 9 failed with No space left on device",
        ),
        not_examples=("write(): fd 9 done",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"OSError: \[Errno 5\] Input/output error",
        source="python 3.3-3.14 Objects/exceptions.c, with glibc's words for EIO",
        examples=(
            "OSError: [Errno 5] Input/output error",
            "OSError: [Errno 5] Input/output error: 'out/step3/x.pt'",
        ),
        level=Level.HINT,
        near=("aving", "checkpoint", "save"),
    ),
    Signature(
        pattern="Pod ephemeral local storage usage exceeds the total limit of containers",
        source="kubernetes 1.15-1.34 pkg/kubelet/eviction/helpers.go",
        message="The pod wrote more than its limit of ephemeral storage, and was evicted",
        hint="raise `limits.ephemeral-storage` of its containers, or write checkpoints and caches to a mounted volume",
        examples=(
            "Pod ephemeral local storage usage exceeds the total limit of containers 50Gi. ",
        ),
        level=Level.STRONG,
        masks=("pod-evicted",),
    ),
    Signature(
        pattern=r"\bENOSPC\b: no space",
        source="node.js 8-24 (libuv)",
        examples=("ENOSPC: no space",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"FileStream\.Write incomplete",
        source="dmlc-core src/io/local_filesys.cc, in dgl 0.4-2.4",
        examples=(
            "Check failed: std::fwrite(ptr, 1, size, fp_) == size FileStream.Write incomplete",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Error writing \(tmp\) checkpoint file",
        source="tensorflow 1.0-2.20 core/util/tensor_bundle, core/kernels/save_op.cc",
        examples=("Error writing (tmp) checkpoint file: /x/model.ckpt-3.tempstate12",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"Resource exhausted: [^;]{0,300}(?:\.tempstate|\.ckpt)",
        source="tensorflow 1.0-2.20 core/util/tensor_bundle",
        examples=(
            "Resource exhausted: .tempstate",
            "Resource exhausted: .ckpt",
        ),
        not_examples=("Resource exhausted: OOM when allocating tensor",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"fwrite\([^)]{0,80}\) == size",
        source="dmlc-core src/io/local_filesys.cc, in dgl 0.4-2.4",
        examples=(
            "Check failed: std::fwrite(ptr, 1, size, fp_) == size FileStream.Write incomplete",
        ),
        not_examples=("1, size, fp_) == size FileStream.Write incomplete",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"\bshort write\b",
        source="go 1 io (ErrShortWrite), as docker and containerd print it; HDF5, tensorboard",
        examples=("short write",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"is over \d{2,3}% full, available space: 0(?:\.0\d*)?(?: [KMG]?B)?;",
        source="ray 1.9-2.50 src/ray/common/file_system_monitor.cc",
        examples=(
            "file_system_monitor.cc:111: /tmp/ray/session_1 is over 95% full, available space: 0; capacity: 9. Object creation will fail if spilling is required.",
            "(raylet) /scratch/ray is over 97% full, available space: 0 GB; capacity: 400 GB.",
        ),
        not_examples=(
            "(raylet) /scratch/ray is over 95% full, available space: 0.5 GB; capacity: 400 GB.",
        ),
        level=Level.WEAK,
    ),
)

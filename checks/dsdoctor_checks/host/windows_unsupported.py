"""This DeepSpeed feature or build is not to be had on Windows.

## Why it matters
On Windows DeepSpeed has no NCCL and no async_io, and its ops must be built beforehand.

## What to do
Use WSL2 or Linux, or a prebuilt wheel.

## References
- torch.distributed: backends (NCCL is built for Linux alone)
- DeepSpeed: blogs/windows/08-2024, features that its Windows build has
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    OsInfo,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
)

from ._util import ranks

CONDITION = Condition("windows-unsupported", id="DSD1051", scope=Scope.NODE, since="0.1")

_PARTS = ("offload_optimizer", "offload_param")


@check(CONDITION)
def windows_can_do_it(
    os: OsInfo, run: RunNeeds, gpus: Gpus | Missing, env: Environment | Missing
) -> Iterator[Finding]:
    """What the run asks for against what there is on Windows: one GPU works, without NVMe."""
    if os.system != "Windows":
        yield skip("not Windows")
        return
    count = ranks(run, gpus, env)
    zero = (run.config or {}).get("zero_optimization")
    sections = [zero.get(part) for part in _PARTS] if isinstance(zero, dict) else []
    nvme = any(isinstance(s, dict) and s.get("device") == "nvme" for s in sections)
    if count > 1:
        yield fail(
            f"the run has {count} GPUs, but torch has no NCCL on Windows",
            effect="`init_process_group` ends with an error, or gloo moves every gradient by the CPU",
            hint="choose one GPU (`--gpus 0`), or use WSL 2",
            ranks=count,
        )
    if nvme:
        yield fail(
            "the config offloads to NVMe, but `async_io` is not built on Windows",
            effect="the run ends when it loads the op",
            hint="offload to `cpu`, or use WSL 2",
            nvme=True,
        )
    if count == 1 and not nvme:
        yield ok(ranks=count)


HINT = "use WSL2 or Linux, or a prebuilt wheel"

SIGNATURES = (
    Signature(
        anchor="cannot import name '",
        pattern=(
            r"cannot import name '(?:\w{0,20}Store|ProcessGroup\w{0,20}|Reducer|Work|ReduceOp)'"
            r" from 'torch\.(?:distributed|_C)[\w.]{0,40}' \([A-Za-z]:\\"
        ),
        examples=(
            "ImportError: cannot import name 'HashStore' from 'torch.distributed' (D:\\py\\torch\\distributed\\__init__.py)",
            "ImportError: cannot import name 'ProcessGroup' from 'torch._C._distributed_c10d' (C:\\x\\torch\\_C.pyd)",
        ),
        not_examples=(
            "ImportError: cannot import name 'HashStore' from 'torch.distributed' (/x/torch/distributed/__init__.py)",
        ),
        weight=66,
        masks=("deepspeed-torch-incompatible", "rendezvous-timeout"),
    ),
    Signature(
        anchor=(
            "symbolic link privilege",
            "libuv",
            "async_io",
            "WinError",
            "have NCCL built in",
            "MSVC",
            "cl.exe",
            "Visual C++",
            "'where'",
            "'cl']",
            "No such file or directory: 'cl'",
            "'cl' is not recognized",
            " returned non-zero",
        ),
        pattern=(
            r"symbolic link privilege|(?:not built with|buil[dt] without) libuv|WinError 1314"
            r"|have NCCL built in|Microsoft Visual C\+\+ .{0,20}(?:is )?required"
            r"|'cl' is not recognized|'cl'\S* returned non-zero|No such file or directory: 'cl'"
            r"|\['where', 'cl'\]"
        ),
        examples=(
            "OSError: symbolic link privilege not held",
            "torch.distributed.DistStoreError: use_libuv was requested but PyTorch was built without libuv support",
            "subprocess.CalledProcessError: Command '['where', 'cl']' returned non-zero exit status 1.",
            "RuntimeError: use_libuv was requested but PyTorch was not built with libuv support",
        ),
        not_examples=("libuv ok",),
        weight=70,
        requires=(
            "Windows",
            "win32",
            ":\\",
            "WinError",
            "symbolic link privilege",
            "libuv",
            "cl.exe",
            "Visual C++",
            "'cl'",
        ),
    ),
    Signature(
        anchor="Unable to pre-compile async_io",
        pattern=r"Unable to pre-compile async_io",
        examples=(
            "AssertionError: Unable to pre-compile async_io",
            " [ERROR]  Unable to pre-compile async_io",
        ),
        not_examples=("async_io",),
        weight=72,
        requires=("C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32"),
        masks=("libaio-missing",),
    ),
    Signature(
        anchor=(
            "LNK1181",
            "LNK1104",
            "WinError 2]",
            "WinError 3]",
            "No module named 'fcntl'",
            "No module named 'resource'",
            "No module named 'termios'",
            "No module named 'grp'",
            "No module named 'pwd'",
            "has no attribute 'SIGKILL'",
            "has no attribute 'getuid'",
            "has no attribute 'killpg'",
            "has no attribute 'setsid'",
            "recognized as an internal or external command",
            "distribution found for triton",
            "have NCCL built in",
            "error C",
            "'deepspeed' is not recognized as an internal",
            "'which' is not recognized as an internal",
            "'bash' is not recognized as an internal",
            "'ls' is not recognized as an internal",
            "has no attribute 'SIGUSR1'",
        ),
        pattern=(
            r"fatal error LNK1(?:181|104): cannot open (?:input )?file '(?:aio"
            r"|cublas|curand|cuda\w*|libaio|c10\w*|torch\w*)"
            r"|\[WinError [23]\] The system cannot find the (?:file"
            r"|path)|No module named '(?:fcntl|resource|termios"
            r"|grp|pwd)'|has no attribute '(?:SIGKILL|SIGUSR1"
            r"|getuid|killpg|setsid)'|No matching distribution found for triton"
            r"|have NCCL built in|'(?:bash|ls|which|deepspeed)' is not recognized as an internal"
            r"|\.(?:cpp|h|cu)\(\d+\): error C\d{4}"
        ),
        examples=(
            "LINK : fatal error LNK1181: cannot open input file 'aio.lib'",
            "FileNotFoundError: [WinError 2] The system cannot find the file specified",
            "ModuleNotFoundError: No module named 'fcntl'",
            "RuntimeError: Distributed package doesn't have NCCL built in",
        ),
        not_examples=(
            "ModuleNotFoundError: No module named 'deepspeed'",
            "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
            "warning LNK1181 was turned off",
        ),
        weight=67,
        masks=("libaio-missing", "cpu-adam-unbuilt"),
        requires=("LNK1", "C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32", "Windows"),
    ),
    Signature(
        anchor="system error: 10049",
        pattern="system error: 10049",
        examples=(
            "[W socket.cpp:663] [c10d] The client socket has failed to connect to [host.docker.internal]:29500 (system error: 10049 - x).",
            "[W socket.cpp:558] [c10d] The client socket has failed to connect to [pc]:29500 (system error: 10049 - y).",
        ),
        not_examples=("system error: 110",),
        weight=30,
    ),
    Signature(
        anchor=("cl.exe' failed", "link.exe' failed", "'windows.h'"),
        pattern=(
            r"\\(?:cl|link)\.exe' failed with exit (?:code|status) \d"
            r"|include file: 'windows\.h'"
        ),
        examples=(
            "error: command 'C:\\\\BuildTools\\\\bin\\\\HostX86\\\\x64\\\\cl.exe' failed with exit code 2",
            "StopWatch.h(3): fatal error C1083: Cannot open include file: 'windows.h': No such file or directory",
        ),
        not_examples=(
            "cl.exe found",
            "'C:\\tools\\ocl.exe' failed to start",
        ),
        weight=68,
        masks=("jit-build-header-or-lib-missing", "cpu-adam-unbuilt"),
    ),
    Signature(
        anchor=("fatal error LNK",),
        pattern="LINK : fatal error LNK\\d{4}",
        examples=(
            "LINK : fatal error LNK1181: cannot open input file 'cufile.lib'",
            "LINK : fatal error LNK1120: 3 unresolved externals",
            "LINK : fatal error LNK1158: cannot run 'rc.exe'",
        ),
        not_examples=("see 'fatal error LNK1181' in the linker's manual",),
        weight=60,
        masks=("libaio-missing", "cpu-adam-unbuilt"),
    ),
    Signature(
        anchor=("deepspeed_", "DeepSpeed"),
        pattern='File \\"[A-Za-z]:\\\\[^\\"]{0,300}\\\\(?:deepspeed_[0-9a-f]{16,64}|DeepSpeed[\\w.-]{0,40})\\\\(?:setup\\.py|op_builder)',
        examples=(
            '  File "C:\\Users\\me\\AppData\\Local\\Temp\\pip-install-x\\deepspeed_0123456789abcdef0123456789abcdef\\setup.py", line 212, in <module>',
            '  File "D:\\src\\DeepSpeed\\setup.py", line 188, in <module>',
        ),
        not_examples=('  File "C:\\work\\DeepSpeed\\train.py", line 2, in <module>',),
        weight=30,
    ),
    Signature(
        anchor=("ailed to create process", "on Windows", "support Windows", "Windows is not"),
        pattern=(
            r"^failed to create process\.|(?:not (?:yet |currently )?(?:supported|available|work(?:ing)?)"
            r"|unsupported|does not work|doesn't work) on Windows|not support Windows"
            r"|Windows is not (?:yet |currently )?supported"
        ),
        examples=(
            "failed to create process.",
            "RuntimeError: this launcher is not supported on Windows",
            "NotImplementedError: Windows is not yet supported",
        ),
        not_examples=("NOTE: Redirects run on Windows too",),
        weight=52,
        not_near=("Redirects are currently not supported",),
    ),
    Signature(
        anchor=(
            "has no attribute 'fork'",
            "has no attribute 'SIGALRM'",
            "has no attribute 'sched_getaffinity'",
            "has no attribute 'getpgid'",
            "has no attribute 'uname'",
            "has no attribute 'geteuid'",
            "finished its bootstrapping phase",
            "unsupported gloo device",
            "No module named 'resource'",
            "No module named 'fcntl'",
            "recognized as an internal or external",
            "nvcc.exe' failed",
            "error C2872",
            "WinError 193]",
            "WinError 126]",
            "WinError 127]",
            "WinError 1455]",
            "WinError 3]",
            "WinError 87]",
            "DLL load failed while importing",
            "checking compiler version for cl",
            "satisfies the requirement triton",
            "no attribute 'init_process_group'",
            "from 'torch._C._distributed_c10d'",
            "No module named 'torch._C._distr",
        ),
        pattern=(
            r"has no attribute '(?:fork|SIGALRM|sched_getaffinity|getpgid|uname|geteuid)'"
            r"|finished its bootstrapping phase|unsupported gloo device"
            r"|No module named '(?:resource|fcntl|torch\._C\._distributed_c10d)'"
            r"|is not recognized as an internal or external|nvcc\.exe' failed with exit"
            r"|error C2872|\[WinError (?:193|126|127|1455|3|87)\]"
            r"|DLL load failed while importing \w{0,30}(?:flash|deepspeed|triton|cpu_adam|fused)"
            r"|checking compiler version for cl\b|satisfies the requirement triton\b"
            r"|module 'torch\.distributed' has no attribute 'init_process_group'"
        ),
        examples=(
            "AttributeError: module 'os' has no attribute 'fork'",
            "AttributeError: module 'signal' has no attribute 'SIGALRM'",
            "RuntimeError: makeDeviceForHostname(): unsupported gloo device",
            "ERROR: Could not find a version that satisfies the requirement triton (from versions: none)",
        ),
        not_examples=(
            "AttributeError: module 'os' has no attribute 'forks'",
            "nvcc.exe' failed is what the log said",
        ),
        weight=69,
        masks=(
            "triton-missing-or-incompatible",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
    ),
    Signature(
        anchor=("DeepSpeed does not support Windows", "nproc' is not", "df' is not"),
        pattern=(
            r"DeepSpeed does not support Windows"
            r"|'(?:nproc|df)' is not recognized as an internal"
        ),
        examples=(
            "ValueError: DeepSpeed does not support Windows",
            "'nproc' is not recognized as an internal or external command,",
        ),
        not_examples=("'df' is not enough",),
        weight=70,
        masks=("ds-config-unsupported-combination",),
    ),
    Signature(
        anchor=(".bat'", ".cmd'", ".dll'", ".exe'", ".pyd'"),
        pattern=(
            r"(?:No such file or directory: |[Cc]ould not find (?:module )?|[Cc]annot find |can't open file )"
            r"'[^']{1,200}\.(?:bat|cmd|dll|exe|pyd)'"
        ),
        examples=(
            "error: [Errno 2] No such file or directory: 'bin\\\\ds_report.bat'",
            "FileNotFoundError: Could not find module 'D:\\\\env\\\\lib\\\\aio.dll'",
        ),
        not_examples=("wrote 'bin\\ds_report.bat'",),
        weight=44,
    ),
    Signature(
        anchor=("have NCCL built in",),
        pattern=r"Distributed package doesn't have NCCL built in",
        examples=(
            "RuntimeError: Distributed package doesn't have NCCL built in",
            "[rank0]: RuntimeError: Distributed package doesn't have NCCL built in",
        ),
        not_examples=("wheels for Linux have NCCL built in",),
        weight=68,
        # A torch with CUDA and without NCCL: the wheels for Windows.
        requires=(
            "ds_accelerator to cuda (auto detect)",
            "torch cuda version ............... 1",
            "fused_adam ............. [YES]",
            "Is CUDA available: True",
        ),
        unless=("aarch64", "tegra", "Jetson", "jetson", "macOS", "Darwin"),
        masks=("cpu-only-torch",),
    ),
    Signature(
        anchor=(
            "module 'os' has no attribute '",
            "module 'signal' has no attribute '",
            "No module named 'fcntl'",
            "No module named 'termios'",
            "unsupported gloo device",
        ),
        pattern=(
            r"module 'os' has no attribute '(?:get(?:e?[ug]id|p?gid|sid|pgrp)|killpg|set(?:sid|pgid|pgrp)"
            r"|fork|uname|statvfs|mkfifo|WNOHANG|WIFEXITED|posix_fadvise|O_DIRECT|O_NONBLOCK)'"
            r"|module 'signal' has no attribute '(?:SIG(?:KILL|USR[12]|ALRM|HUP|CHLD|STOP|CONT|QUIT)"
            r"|alarm|setitimer|pthread_\w{1,20})'|No module named '(?:fcntl|termios)'"
            r"|makeDeviceFor(?:Hostname|Interface)\(\): unsupported gloo device"
        ),
        examples=(
            "AttributeError: module 'os' has no attribute 'getuid'",
            "AttributeError: module 'signal' has no attribute 'SIGALRM'",
            "ModuleNotFoundError: No module named 'termios'",
            "RuntimeError: makeDeviceForHostname(): unsupported gloo device",
        ),
        not_examples=(
            "AttributeError: module 'os' has no attribute 'list_dir'",
            "AttributeError: module 'signal' has no attribute 'resample'",
            "No module named 'fcntl_tools'",
        ),
        weight=46,
        # Every Unix has these, so that what lacks them is Windows, named in the log or not.
        unless=("Darwin", "macOS"),
    ),
)

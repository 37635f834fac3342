"""Messages of `unsupported-on-windows`, one signature for each.

Over 400 lines because it is a table.
"""

from __future__ import annotations

from dsdoctor.api import Level, Signature

SIGNATURES = (
    Signature(
        pattern=r"cannot import name '(?:\w{0,20}Store|ProcessGroup\w{0,20}|Reducer|Work|ReduceOp)' from 'torch\.(?:distributed|_C)[\w.]{0,40}' \([A-Za-z]:\\",
        source="huggingface_hub 2.4.0 utils/_runtime.py",
        examples=(
            "ImportError: cannot import name 'HashStore' from 'torch.distributed' (D:\\py\\torch\\distributed\\__init__.py)",
            "ImportError: cannot import name 'ProcessGroup' from 'torch._C._distributed_c10d' (C:\\x\\torch\\_C.pyd)",
            "cannot import name 'Reducer' from 'torch.distributedname' (A:\\",
            "cannot import name 'Work' from 'torch.distributedname' (A:\\",
            "cannot import name 'ReduceOp' from 'torch.distributedname' (A:\\",
        ),
        not_examples=(
            "ImportError: cannot import name 'HashStore' from 'torch.distributed' (/x/torch/distributed/__init__.py)",
        ),
        level=Level.STRONG,
        masks=("deepspeed-torch-incompatible", "rendezvous-timeout"),
    ),
    Signature(
        pattern="symbolic link privilege",
        source=(
            "huggingface_hub 0.10-2.4 file_download.py; torch and python print "
            "ERROR_PRIVILEGE_NOT_HELD"
        ),
        examples=("OSError: symbolic link privilege not held",),
        level=Level.CERTAIN,
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
        pattern="(?:not built with|buil[dt] without) libuv",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "torch.distributed.DistStoreError: use_libuv was requested but PyTorch was built without libuv support",
            "RuntimeError: use_libuv was requested but PyTorch was not built with libuv support",
        ),
        level=Level.CERTAIN,
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
        pattern="WinError 1314",
        source="Windows 10-11 ERROR_PRIVILEGE_NOT_HELD (1314), printed by python 3.3-3.14 Objects/exceptions.c",
        examples=("WinError 1314",),
        level=Level.CERTAIN,
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
        pattern="have NCCL built in",
        source="torch 2.13.0 distributed/distributed_c10d.py",
        examples=("RuntimeError: Distributed package doesn't have NCCL built in",),
        level=Level.CERTAIN,
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
        pattern=r"Microsoft Visual C\+\+ .{0,20}(?:is )?required",
        source="torch 2.13.0 __init__.py",
        examples=("Microsoft Visual C++ required",),
        not_examples=("Microsoft Visual C++ is fine",),
        level=Level.CERTAIN,
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
        near=("deepspeed", "DeepSpeed"),  # jit-build-compiler-missing, for others
    ),
    Signature(
        pattern="'cl' is not recognized",
        source="Windows 10-11 cmd.exe",
        examples=("'cl' is not recognized",),
        level=Level.CERTAIN,
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
        near=("deepspeed", "DeepSpeed"),  # jit-build-compiler-missing, for others
    ),
    Signature(
        pattern=r"'cl'\S* returned non-zero",
        source="CPython 3.11.7 subprocess.py, _bootsubprocess.py",
        examples=(
            "subprocess.CalledProcessError: Command '['where', 'cl']' returned non-zero exit status 1.",
        ),
        not_examples=(
            "subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmpab12/cuda_utils.c', '-O3', '-shared', '-fPIC', '-o', '/tmp/tmpab12/cuda_utils.so']' returned non-zero exit status 1.",
        ),
        level=Level.CERTAIN,
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
        near=("deepspeed", "DeepSpeed"),  # jit-build-compiler-missing, for others
    ),
    Signature(
        pattern="No such file or directory: 'cl'",
        source="python 3.3-3.14 Lib/subprocess.py, Objects/exceptions.c",
        examples=("No such file or directory: 'cl'",),
        level=Level.CERTAIN,
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
        near=("deepspeed", "DeepSpeed"),  # jit-build-compiler-missing, for others
    ),
    Signature(
        pattern=r"\['where', 'cl'\]",
        source="torch 1.0-2.13 utils/cpp_extension.py, python 3.3-3.14 Lib/subprocess.py",
        examples=(
            "subprocess.CalledProcessError: Command '['where', 'cl']' returned non-zero exit status 1.",
        ),
        level=Level.CERTAIN,
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
        near=("deepspeed", "DeepSpeed"),  # jit-build-compiler-missing, for others
    ),
    Signature(
        pattern="Unable to pre-compile async_io",
        source="deepspeed 0.3-0.19 setup.py",
        examples=(
            "AssertionError: Unable to pre-compile async_io",
            " [ERROR]  Unable to pre-compile async_io",
        ),
        level=Level.CERTAIN,
        requires=("C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32"),
        masks=("libaio-missing",),
    ),
    Signature(
        pattern=r"fatal error LNK1(?:181|104): cannot open (?:input )?file '(?:cublas|curand|cuda\w*|c10\w*|torch\w*)",
        source="Microsoft linker 14 link.exe",
        examples=(
            "fatal error LNK1104: cannot open file 'cublas",
            "fatal error LNK1181: cannot open file 'curand",
            "fatal error LNK1181: cannot open file 'cudaname",
            "fatal error LNK1181: cannot open file 'c10name",
            "fatal error LNK1181: cannot open file 'torchname",
        ),
        not_examples=("LINK : fatal error LNK1181: cannot open input file 'cufile.lib'",),
        level=Level.STRONG,
        masks=("libaio-missing", "cpu-adam-unbuilt"),
        requires=("LNK1", "C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32", "Windows"),
    ),
    Signature(
        pattern=r"\[WinError [23]\] The system cannot find the (?:file|path)",
        source=(
            "Windows 10-11 ERROR_FILE_NOT_FOUND (2), ERROR_PATH_NOT_FOUND (3), printed by python "
            "3.3-3.14 Objects/exceptions.c"
        ),
        examples=(
            "FileNotFoundError: [WinError 2] The system cannot find the file specified",
            "[WinError 2] The system cannot find the path",
        ),
        level=Level.STRONG,
        near=("subprocess.py", "CreateProcess", "_winapi", "cpp_extension", "deepspeed"),
        masks=("libaio-missing", "cpu-adam-unbuilt"),
        requires=("LNK1", "C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32", "Windows"),
    ),
    Signature(
        pattern="No module named '(?:fcntl|resource|termios|grp|pwd)'",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=(
            "ModuleNotFoundError: No module named 'fcntl'",
            "No module named 'resource'",
            "No module named 'termios'",
            "No module named 'grp'",
            "No module named 'pwd'",
        ),
        level=Level.STRONG,
        masks=("libaio-missing", "cpu-adam-unbuilt"),
        requires=("LNK1", "C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32", "Windows"),
    ),
    Signature(
        pattern="has no attribute '(?:SIGKILL|SIGUSR1|getuid|killpg|setsid)'",
        source=(
            "python 3.5-3.14 Objects/moduleobject.c: what modules os and signal do not have on "
            "Windows"
        ),
        examples=(
            "has no attribute 'SIGKILL'",
            "AttributeError: module 'signal' has no attribute 'SIGUSR1'",
            "has no attribute 'getuid'",
            "has no attribute 'killpg'",
            "has no attribute 'setsid'",
        ),
        level=Level.STRONG,
        masks=("libaio-missing", "cpu-adam-unbuilt"),
        requires=("LNK1", "C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32", "Windows"),
    ),
    Signature(
        pattern="No matching distribution found for triton",
        source="pip 9-26 _internal/resolution, _internal/index/package_finder.py",
        examples=("No matching distribution found for triton",),
        level=Level.STRONG,
        masks=("libaio-missing", "cpu-adam-unbuilt"),
        requires=("LNK1", "C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32", "Windows"),
    ),
    Signature(
        pattern="have NCCL built in",
        source="torch 2.13.0 distributed/distributed_c10d.py",
        examples=("RuntimeError: Distributed package doesn't have NCCL built in",),
        level=Level.STRONG,
        masks=("libaio-missing", "cpu-adam-unbuilt"),
        requires=("LNK1", "C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32", "Windows"),
    ),
    Signature(
        pattern="'(?:bash|ls|which|deepspeed)' is not recognized as an internal",
        source="Windows 10-11 cmd.exe",
        examples=(
            "'bash' is not recognized as an internal",
            "'ls' is not recognized as an internal",
            "'which' is not recognized as an internal",
            "'deepspeed' is not recognized as an internal",
        ),
        level=Level.STRONG,
        masks=("libaio-missing", "cpu-adam-unbuilt"),
        requires=("LNK1", "C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32", "Windows"),
    ),
    Signature(
        pattern=r"\.(?:cpp|h|cu)\(\d+\): error C\d{4}",
        source="Microsoft C/C++ 19 cl.exe",
        examples=(
            ".cpp(7): error C7777",
            ".h(7): error C7777",
            ".cu(7): error C7777",
        ),
        not_examples=("): error C is fine",),
        level=Level.STRONG,
        masks=("libaio-missing", "cpu-adam-unbuilt"),
        requires=("LNK1", "C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32", "Windows"),
    ),
    Signature(
        pattern="system error: 10049",
        source="torch 1.11-2.13 csrc/distributed/c10d/socket.cpp, on Windows",
        examples=(
            "[W socket.cpp:663] [c10d] The client socket has failed to connect to [host.docker.internal]:29500 (system error: 10049 - x).",
            "[W socket.cpp:558] [c10d] The client socket has failed to connect to [pc]:29500 (system error: 10049 - y).",
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"\\(?:cl|link)\.exe' failed with exit (?:code|status) \d|include file: 'windows\.h'",
        source=(
            "setuptools 40-84 _distutils/spawn.py, distutils of python 3.3-3.11; Microsoft C/C++ "
            "19 cl.exe"
        ),
        examples=(
            "error: command 'C:\\\\BuildTools\\\\bin\\\\HostX86\\\\x64\\\\cl.exe' failed with exit code 2",
            "StopWatch.h(3): fatal error C1083: Cannot open include file: 'windows.h': No such file or directory",
        ),
        not_examples=("\\cl.exe' failed with exit code is fine",),
        level=Level.STRONG,
        masks=("build-dependency-missing", "cuda-toolkit-incomplete", "cpu-adam-unbuilt"),
    ),
    Signature(
        pattern=r"fatal error LNK1(?:181|104): .{0,40}\b(?:lib)?(?:aio|cufile)\.lib",
        source=(
            "Microsoft linker 14 link.exe, started by deepspeed 0.5-0.19 op_builder/builder.py "
            "has_function, which only tries whether the library is there"
        ),
        examples=(
            "LINK : fatal error LNK1181: cannot open input file 'aio.lib'",
            "fatal error LNK1104: cannot open file 'libaio.lib'",
            "LINK : fatal error LNK1181: cannot open input file 'cufile.lib'",
        ),
        not_examples=("LINK : fatal error LNK1181: cannot open input file 'cublas.lib'",),
        level=Level.STRONG,
        near=(
            "error: command",
            "subprocess-exited-with-error",
            "failed with exit",
            "Unable to pre-compile",
            "Error building",
            "build stopped",
            "Failed building wheel",
        ),
        masks=("libaio-missing", "cpu-adam-unbuilt"),
    ),
    Signature(
        pattern=r"LINK : fatal error LNK\d{4}(?!.{0,40}\b(?:lib)?(?:aio|cufile)\.lib)",
        source="Microsoft linker 14 link.exe",
        examples=(
            "LINK : fatal error LNK1120: 3 unresolved externals",
            "LINK : fatal error LNK1158: cannot run 'rc.exe'",
        ),
        not_examples=("LINK : fatal error LNK1181: cannot open input file 'cufile.lib'",),
        level=Level.STRONG,
        masks=("libaio-missing", "cpu-adam-unbuilt"),
    ),
    Signature(
        pattern=r"File \"[A-Za-z]:\\[^\"]{0,300}\\(?:deepspeed_[0-9a-f]{16,64}|DeepSpeed[\w.-]{0,40})\\(?:setup\.py|op_builder)",
        source="python 3.3-3.14 Lib/traceback.py: a frame of DeepSpeed's setup.py on Windows",
        examples=(
            '  File "C:\\Users\\me\\AppData\\Local\\Temp\\pip-install-x\\deepspeed_0123456789abcdef0123456789abcdef\\setup.py", line 212, in <module>',
            '  File "D:\\src\\DeepSpeed\\setup.py", line 188, in <module>',
            '  File "D:\\src\\DeepSpeed\\op_builder\\builder.py", line 74, in installed_cuda_version',
        ),
        not_examples=(
            'File "C:\\Users\\me\\AppData\\Local\\Temp\\pip-install-k1\\deepspeed\\setup.py", line 165, in <module>',
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"(?:Error|ERROR|error|[Ww]arning|WARNING|assert\w{0,5})\b.{0,200}(?:not (?:yet |currently )?(?:supported|available|work(?:ing)?)|unsupported|does not work|doesn't work|not support(?:ed)?) (?:on |for )?Windows|Error: .{0,80}Windows is not (?:yet |currently )?supported",
        source=("packages that do not support Windows"),
        examples=(
            "RuntimeError: this launcher is not supported on Windows",
            "NotImplementedError: Windows is not yet supported",
            "AssertionError: the backend does not support Windows",
        ),
        not_examples=("Currently, the converter is not supported on Windows.",),
        not_near=("Redirects are currently not supported",),
    ),
    Signature(
        pattern="has no attribute '(?:fork|SIGALRM|sched_getaffinity|getpgid|uname|geteuid)'",
        source=(
            "python 3.5-3.14 Objects/moduleobject.c: what modules os and signal do not have on "
            "Windows"
        ),
        examples=(
            "AttributeError: module 'os' has no attribute 'fork'",
            "AttributeError: module 'signal' has no attribute 'SIGALRM'",
            "has no attribute 'sched_getaffinity'",
            "has no attribute 'getpgid'",
            "has no attribute 'uname'",
            "has no attribute 'geteuid'",
        ),
        level=Level.CERTAIN,
        masks=(
            "triton-unusable",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
    ),
    Signature(
        pattern="unsupported gloo device",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=("RuntimeError: makeDeviceForHostname(): unsupported gloo device",),
        level=Level.CERTAIN,
        masks=(
            "triton-unusable",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
    ),
    Signature(
        pattern=r"No module named '(?:resource|fcntl|torch\._C\._distributed_c10d)'",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=(
            "No module named 'resource'",
            "No module named 'fcntl'",
            "No module named 'torch._C._distributed_c10d'",
        ),
        level=Level.CERTAIN,
        masks=(
            "triton-unusable",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
    ),
    Signature(
        pattern="is not recognized as an internal or external",
        source="Windows 10-11 cmd.exe",
        examples=("'nproc' is not recognized as an internal or external command,",),
        level=Level.CERTAIN,
        masks=(
            "triton-unusable",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
    ),
    Signature(
        pattern=r"nvcc\.exe' failed with exit",
        source="setuptools 50-84 _distutils/spawn.py",
        examples=("nvcc.exe' failed with exit",),
        level=Level.CERTAIN,
        masks=(
            "triton-unusable",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
    ),
    Signature(
        pattern="error C2872",
        source="Microsoft C/C++ 19 cl.exe",
        examples=("error C2872",),
        level=Level.CERTAIN,
        masks=(
            "triton-unusable",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
    ),
    Signature(
        # what torch says of its own DLLs is not about Windows
        pattern=r"\[WinError (?:193|126|127|87)\](?!.{0,200}Error loading \")",
        source=(
            "Windows 10-11 system errors, printed by python 3.3-3.14 Objects/exceptions.c, "
            "Modules/_ctypes"
        ),
        examples=(
            "[WinError 193]",
            "OSError: [WinError 126] The specified module could not be found",
            "[WinError 127]",
            "[WinError 87]",
        ),
        level=Level.CERTAIN,
        masks=(
            "triton-unusable",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        not_near=("bitsandbytes", "CUDA SETUP"),  # it says itself what it lacks
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
    ),
    Signature(
        pattern=r"DLL load failed while importing \w{0,30}(?:flash|deepspeed|cpu_adam|fused)",
        source="python 3.8-3.14 Python/dynload_win.c",
        examples=(
            "DLL load failed while importing nameflash",
            "DLL load failed while importing namedeepspeed",
            "DLL load failed while importing namecpu_adam",
            "DLL load failed while importing namefused",
        ),
        not_examples=("DLL load failed while importing is fine",),
        level=Level.CERTAIN,
        not_near=("A matching Triton is not available",),  # xformers goes on without it
        masks=(
            "triton-unusable",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
    ),
    Signature(
        pattern=r"checking compiler version for cl\b",
        source="torch 1.0-2.13 utils/cpp_extension.py",
        examples=("checking compiler version for cl",),
        level=Level.CERTAIN,
        masks=(
            "triton-unusable",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
        near=("deepspeed", "DeepSpeed"),  # jit-build-compiler-missing, for others
    ),
    Signature(
        pattern=r"satisfies the requirement triton\b",
        source="pip 9-26 _internal/resolution, _internal/index/package_finder.py",
        examples=(
            "ERROR: Could not find a version that satisfies the requirement triton (from versions: none)",
        ),
        level=Level.CERTAIN,
        masks=(
            "triton-unusable",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
    ),
    Signature(
        pattern=r"module 'torch\.distributed' has no attribute 'init_process_group'",
        source="python 3.5-3.14 Objects/moduleobject.c",
        examples=("module 'torch.distributed' has no attribute 'init_process_group'",),
        level=Level.CERTAIN,
        masks=(
            "triton-unusable",
            "cxx-abi-undefined-symbol",
            "jit-build-compiler-missing",
            "dependency-version-conflict",
        ),
        requires=("Windows", "win32", ":\\", "WinError", ".exe"),
    ),
    Signature(
        pattern="DeepSpeed does not support Windows|'(?:nproc|df)' is not recognized as an internal",
        source="Windows 10-11 cmd.exe; deepspeed",
        examples=(
            "ValueError: DeepSpeed does not support Windows",
            "'nproc' is not recognized as an internal or external command,",
        ),
        level=Level.CERTAIN,
        masks=("ds-config-unsupported-combination",),
    ),
    Signature(
        pattern=r"(?:No such file or directory: |[Cc]ould not find (?:module )?|[Cc]annot find |can't open file )'(?![^']{1,200}[\\/]torch[\\/]lib[\\/])[^']{1,200}\.(?:bat|cmd|dll|exe|pyd)'",
        source="python 3.3-3.14 Objects/exceptions.c, Lib/ctypes/__init__.py on Windows",
        examples=(
            "error: [Errno 2] No such file or directory: 'bin\\\\ds_report.bat'",
            "FileNotFoundError: Could not find module 'D:\\\\env\\\\lib\\\\aio.dll'",
            "Cannot find 'x.bat'",
            "can't open file 'x.bat'",
            "No such file or directory: 'x.cmd'",
            "No such file or directory: 'x.exe'",
            "No such file or directory: 'x.pyd'",
        ),
        not_examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: 'g++'",
            "FileNotFoundError: Could not find module 'D:\\env\\torch\\lib\\c10.dll' (or one of its dependencies).",
        ),
        level=Level.WEAK,
    ),
    # A torch with CUDA and without NCCL: the wheels for Windows.
    Signature(
        pattern="Distributed package doesn't have NCCL built in",
        source="torch 2.13.0 distributed/distributed_c10d.py",
        examples=(
            "RuntimeError: Distributed package doesn't have NCCL built in",
            "[rank0]: RuntimeError: Distributed package doesn't have NCCL built in",
        ),
        level=Level.STRONG,
        requires=(
            "ds_accelerator to cuda (auto detect)",
            "torch cuda version ............... 1",
            "fused_adam ............. [YES]",
            "Is CUDA available: True",
        ),
        unless=("aarch64", "tegra", "Jetson", "jetson", "macOS", "Darwin"),
        masks=("cpu-only-torch",),
    ),
    # Every Unix has these: a system without them is Windows, even if the log does not say so.
    Signature(
        pattern="module 'os' has no attribute '(?:get(?:e?[ug]id|p?gid|sid|pgrp)|killpg|set(?:sid|pgid|pgrp)|fork|uname|statvfs|mkfifo|WNOHANG|WIFEXITED|posix_fadvise|O_DIRECT|O_NONBLOCK)'",
        source="python 3.5-3.14 Objects/moduleobject.c",
        examples=(
            "AttributeError: module 'os' has no attribute 'getuid'",
            "module 'os' has no attribute 'killpg'",
            "module 'os' has no attribute 'setsid'",
            "AttributeError: module 'os' has no attribute 'fork'",
            "module 'os' has no attribute 'uname'",
            "module 'os' has no attribute 'statvfs'",
            "module 'os' has no attribute 'mkfifo'",
            "module 'os' has no attribute 'WNOHANG'",
            "module 'os' has no attribute 'WIFEXITED'",
            "module 'os' has no attribute 'posix_fadvise'",
            "module 'os' has no attribute 'O_DIRECT'",
            "module 'os' has no attribute 'O_NONBLOCK'",
        ),
        level=Level.WEAK,
        unless=("Darwin", "macOS"),
    ),
    Signature(
        pattern=r"module 'signal' has no attribute '(?:SIG(?:KILL|USR[12]|ALRM|HUP|CHLD|STOP|CONT|QUIT)|alarm|setitimer|pthread_\w{1,20})'",
        source="python 3.5-3.14 Objects/moduleobject.c",
        examples=(
            "AttributeError: module 'signal' has no attribute 'SIGALRM'",
            "module 'signal' has no attribute 'alarm'",
            "module 'signal' has no attribute 'setitimer'",
            "module 'signal' has no attribute 'pthread_name'",
        ),
        not_examples=("AttributeError: module 'signal' has no attribute 'resample'",),
        level=Level.WEAK,
        unless=("Darwin", "macOS"),
    ),
    Signature(
        pattern="No module named '(?:fcntl|termios)'",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=(
            "ModuleNotFoundError: No module named 'termios'",
            "No module named 'fcntl'",
        ),
        level=Level.WEAK,
        unless=("Darwin", "macOS"),
    ),
    Signature(
        pattern=r"makeDeviceFor(?:Hostname|Interface)\(\): unsupported gloo device",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "RuntimeError: makeDeviceForHostname(): unsupported gloo device",
            "makeDeviceForInterface(): unsupported gloo device",
        ),
        level=Level.WEAK,
        unless=("Darwin", "macOS"),
    ),
    Signature(
        pattern=r"Windows not yet supported for (?:torch\.compile|inductor)",
        source="torch 2.0-2.1 (`torch.compile`) and 2.2-2.4 (`inductor`) _dynamo/eval_frame.py",
        message="torch 2.0 to 2.4 cannot compile models on Windows",
        hint="upgrade torch, use WSL 2 or Linux, or do not compile the model",
        examples=(
            "RuntimeError: Windows not yet supported for torch.compile",
            "RuntimeError: Windows not yet supported for inductor",
        ),
        level=Level.STRONG,
    ),
)

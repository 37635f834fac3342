"""Host compilers that nvcc and torch's headers accept.

Sources: `crt/host_config.h` of NVIDIA's wheels `nvidia-cuda-nvcc-cu11`, `-cu12` and
`nvidia-cuda-crt` 13.x, and `CUDA_GCC_VERSIONS` of torch/utils/cpp_extension.py 2.0 to 2.15; read
2026-11-21. For torch's own minimum see `STANDARDS`.
"""

from __future__ import annotations

#: CUDA version to the newest gcc major version that nvcc accepts. 11.0 to 11.6 are torch's bounds.
#: 10.2 as its crt/host_config.h says, which reports of builds quote (read 2026-11-23).
NEWEST_GCC: dict[tuple[int, int], int] = {
    (10, 2): 8,
    (11, 0): 9,
    (11, 1): 10,
    (11, 2): 10,
    (11, 3): 10,
    (11, 4): 11,
    (11, 5): 11,
    (11, 6): 11,
    (11, 7): 11,
    (11, 8): 11,
    (12, 0): 12,
    (12, 1): 12,
    (12, 2): 12,
    (12, 3): 12,
    (12, 4): 13,
    (12, 5): 13,
    (12, 6): 13,
    (12, 8): 14,
    (12, 9): 14,
    (13, 0): 15,
    (13, 1): 15,
    (13, 2): 15,
    (13, 3): 15,
    (13, 4): 16,
    (13, 5): 16,
}

#: nvcc of a distribution's own package `nvidia-cuda-toolkit`, which calls a gcc of its own (gcc 8, 10
#: and 12 on Ubuntu, 11 on Debian 12), not the distribution's default; versions of the packages as
#: their archives list them, read 2026-11-23.
PACKAGED_NVCC: dict[str, tuple[int, int]] = {
    "ubuntu 20.04": (10, 1),
    "ubuntu 22.04": (11, 5),
    "ubuntu 24.04": (12, 0),
    "debian 11": (11, 2),
    "debian 12": (11, 8),
}

#: CUDA version to the first clang major version that nvcc rejects.
CLANG_BELOW: dict[tuple[int, int], int] = {
    (11, 7): 14,
    (11, 8): 15,
    (12, 0): 15,
    (12, 1): 16,
    (12, 2): 17,
    (12, 3): 17,
    (12, 4): 18,
    (12, 5): 18,
    (12, 6): 19,
    (12, 8): 20,
    (12, 9): 20,
    (13, 0): 21,
    (13, 1): 22,
    (13, 2): 22,
    (13, 3): 22,
    (13, 4): 23,
    (13, 5): 23,
}

#: First torch release with a requirement, its C++ standard, and the oldest gcc major version that its
#: headers accept. Read 2026-11-22:
#: - C++20 since 2.12 (cpp_extension.py 2.12 to 2.15): gcc's `-std=c++20`, from gcc 10.
#: - 2.2.2 to 2.11: c10/util/C++17.h stops at a gcc before 9 (pytorch pull request 120126, which was
#:   cherry-picked to release/2.2 and validated for 2.2.2).
#: - 1.5 to 2.2.1: the same header stops at a gcc before 5 (1.5 to 2.0 ask for C++14; its versions with
#:   `You need C++14` read 2026-11-23).
STANDARDS: tuple[tuple[str, str, int], ...] = (
    ("2.12", "C++20", 10),
    ("2.2.2", "C++17", 9),
    ("2.1", "C++17", 5),
    ("1.5", "C++14", 5),
)
#: First gcc with the core language of C++17 (gcc.gnu.org/projects/cxx-status.html, `if constexpr`).
CXX17_GCC = 7

#: A linker error with one of these beside it ends a build; without them, DeepSpeed only tried whether a library is
#: there (0.6-0.19 ops/op_builder/builder.py, has_function).
OF_A_BUILD = (
    "FAILED: ",
    "build stopped",
    ": *** [",
    "error: command",
    "subprocess-exited-with-error",
    "failed with exit",
    "Unable to pre-compile",
    "Error building",
    "Failed building wheel",
)
#: Of the table that `ds_report` prints (deepspeed 0.3-0.19 env_report.py).
OF_DS_REPORT = ("[NO] ....", "[YES] ....", "op name ....")

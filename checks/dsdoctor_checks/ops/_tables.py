"""Host compilers that each nvcc accepts.

Source: `crt/host_config.h` of NVIDIA's wheels `nvidia-cuda-nvcc-cu11`, `-cu12` and
`nvidia-cuda-crt` 13.x, and `CUDA_GCC_VERSIONS` of torch/utils/cpp_extension.py 2.0 to 2.15; read
2026-11-21.
"""

from __future__ import annotations

#: CUDA (major, minor) to the newest gcc major that nvcc accepts. 11.0 to 11.6 are torch's bounds.
NEWEST_GCC: dict[tuple[int, int], int] = {
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

#: CUDA (major, minor) to the first clang major that nvcc refuses.
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

#: First torch (major, minor) with a C++ standard, that standard, and the oldest gcc major whose
#: `-std=` knows it by that name (torch 2.0 to 2.15 cpp_extension.py; gcc's manuals: `c++17` from 8,
#: `c++20` from 10).
STANDARDS: tuple[tuple[tuple[int, int], str, int], ...] = (
    ((2, 12), "C++20", 10),
    ((2, 1), "C++17", 8),
    ((2, 0), "C++14", 5),
)

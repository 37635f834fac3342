"""Which versions DeepSpeed and nvcc accept. Read 2026-11-21."""

from __future__ import annotations

from dsdoctor_checks._util import Capability, at_least, pair

#: `cuda_minor_mismatch_ok` of DeepSpeed 0.19.8, op_builder/builder.py. There is no key 13.
SAME_FAMILY: dict[int, tuple[str, ...]] = {
    10: ("10.0", "10.1", "10.2"),
    11: ("11.0", "11.1", "11.2", "11.3", "11.4", "11.5", "11.6", "11.7", "11.8"),
    12: ("12.0", "12.1", "12.2", "12.3", "12.4", "12.5", "12.6", "12.8", "12.9"),
}
#: First release whose table contains 12.9 (DeepSpeed pull request 7394).
HAS_12_9 = "0.17.2"
#: First release whose JIT builds do not compare versions (DeepSpeed pull request 4639).
JIT_UNCHECKED = "0.12.3"
#: First release whose CPU optimizers are plain C++ (DeepSpeed op_builder/cpu/).
CPU_OPS_PLAIN = "0.19.8"

#: Capabilities that each nvcc compiles for, by its first version. The lowest and highest are from
#: `ptxas --help` of the wheels 11.7.99 to 13.5.37; those between them, for 12.0 to 12.6 and 13.x,
#: are inferred from the ends and from 11.8 and 12.9.
_OLD = ((3, 5), (3, 7), (5, 0), (5, 2), (5, 3), (6, 0), (6, 1), (6, 2), (7, 0), (7, 2), (7, 5))
_AMPERE = ((8, 0), (8, 6), (8, 7))
_V12 = (*_OLD[2:], *_AMPERE, (8, 9), (9, 0))
_V128 = (*_V12, (10, 0), (10, 1), (12, 0))
_V13 = ((7, 5), *_AMPERE, (8, 8), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1))
NVCC_ARCHS: tuple[tuple[tuple[int, int], tuple[Capability, ...]], ...] = (
    ((11, 7), (*_OLD, *_AMPERE)),
    ((11, 8), (*_OLD, *_AMPERE, (8, 9), (9, 0))),
    ((12, 0), _V12),
    ((12, 8), _V128),
    ((12, 9), (*_V128, (10, 3), (12, 1))),
    ((13, 0), _V13),
    ((13, 4), (*_V13, (10, 7))),
)
#: The newest nvcc that was read.
NVCC_READ = (13, 5)
#: What DeepSpeed pre-builds for with nvcc 13 if TORCH_CUDA_ARCH_LIST is not set: it adds nothing for
#: CUDA 13 (op_builder/builder.py:79-95 of 0.19.8).
PREBUILD_DEFAULT: tuple[Capability, ...] = ((6, 0), (6, 1), (7, 0))


def accepts(nvcc: str, torch_cuda: str, deepspeed: str | None) -> bool:
    """Whether DeepSpeed's own rule lets this nvcc build for torch's CUDA version.

    >>> accepts("12.4", "12.1", None), accepts("13.2", "13.0", None), accepts("13.0", "13.0", None)
    (True, False, True)
    >>> accepts("12.9", "12.8", "0.17.1"), accepts("12.7", "12.8", None)
    (False, False)
    """
    have, want = pair(nvcc), pair(torch_cuda)
    if have is None or want is None or have == want:
        return True
    names = {f"{have[0]}.{have[1]}", f"{want[0]}.{want[1]}"}
    if "12.9" in names and not at_least(deepspeed, HAS_12_9):
        return False
    return names <= set(SAME_FAMILY.get(want[0], ()))


def nvcc_archs(nvcc: str) -> tuple[Capability, ...] | None:
    """What an nvcc compiles for; None for a version before 11.7 or newer than the table.

    >>> (8, 9) in nvcc_archs("12.4"), (12, 0) in nvcc_archs("12.6"), nvcc_archs("14.0")
    (True, False, None)
    """
    have = pair(nvcc)
    if have is None or have > NVCC_READ:
        return None
    fitting = [archs for since, archs in NVCC_ARCHS if since <= have]
    return fitting[-1] if fitting else None

"""Which code the torch wheels hold, and which wheels there are. Read 2026-11-21.

Sources: pytorch RELEASE.md and .ci/manywheel/build_cuda.sh, pytorch/builder, METADATA of the
wheels, torch/cuda/__init__.py `PYTORCH_RELEASES_CODE_CC` (2.12 to 2.15), pytorch issues 158700,
182250, 190385. A fallback only: the list of the torch that runs is asked first.
"""

from __future__ import annotations

from dsdoctor_checks._util import Capability, code_for, pair

Release = tuple[int, int]

#: CUDA builds on the index for each torch release, the default first.
VARIANTS: dict[Release, tuple[str, ...]] = {
    (2, 0): ("11.7", "11.8"),
    (2, 1): ("12.1", "11.8"),
    (2, 2): ("12.1", "11.8"),
    (2, 3): ("12.1", "11.8"),
    (2, 4): ("12.1", "12.4", "11.8"),
    (2, 5): ("12.4", "12.1", "11.8"),
    (2, 6): ("12.4", "12.6", "11.8"),
    (2, 7): ("12.6", "12.8", "11.8"),
    (2, 8): ("12.8", "12.6", "12.9"),
    (2, 9): ("12.8", "12.6", "13.0"),
    (2, 10): ("12.8", "12.6", "13.0"),
    (2, 11): ("13.0", "12.8", "12.6"),
    (2, 12): ("13.0", "12.6", "13.2"),
    (2, 13): ("13.0", "12.6", "13.2"),
    (2, 14): ("13.0", "12.6", "13.2"),
    (2, 15): ("13.2", "13.0"),
}
_BASE = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
_NEW = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
_ARM13 = ("sm_80", "sm_90", "sm_100", "sm_110", "sm_120", "compute_120")
#: First and last release whose cu128 wheels hold code for Volta (7.0).
_VOLTA_128 = ((2, 8), (2, 10))
INDEX = "https://download.pytorch.org/whl"


def archs(release: Release, cuda: str, machine: str = "x86_64") -> tuple[str, ...] | None:
    """Architectures of a published wheel; None for one that the table does not know.

    >>> archs((2, 5), "12.4")[-1], archs((2, 9), "12.8")[0], archs((2, 11), "12.8")[0]
    ('sm_90', 'sm_70', 'sm_75')
    """
    if cuda not in VARIANTS.get(release, ()):
        return None
    if machine in ("aarch64", "arm64"):
        return {"12.6": ("sm_80", "sm_90"), "13.0": _ARM13, "13.2": _ARM13}.get(cuda)
    if machine not in ("x86_64", "AMD64"):
        return None
    volta = _VOLTA_128[0] <= release <= _VOLTA_128[1]
    return {
        "11.7": ("sm_37", *_BASE[:-1]),
        "11.8": ("sm_37", *_BASE),
        "12.1": _BASE,
        "12.4": _BASE,
        "12.6": _BASE,
        "12.8": ("sm_70", *_NEW) if volta else _NEW,
        "12.9": ("sm_70", *_NEW, "compute_120"),
        "13.0": (*_NEW, "compute_120"),
        "13.2": (*_NEW, "compute_120"),
    }.get(cuda)


def wheel_for(
    capability: Capability, release: Release, machine: str = "x86_64"
) -> tuple[str, str] | None:
    """Release and CUDA of the nearest wheel that serves a GPU: same release, newer, older.

    >>> wheel_for((12, 0), (2, 5)), wheel_for((7, 0), (2, 11)), wheel_for((7, 0), (2, 15))
    (('2.7', '12.8'), ('2.11', '12.6'), ('2.14', '12.6'))
    """
    newer = sorted(known for known in VARIANTS if known >= release)
    older = sorted((known for known in VARIANTS if known < release), reverse=True)
    for known in [*newer, *older]:
        for cuda in VARIANTS[known]:
            if code_for(archs(known, cuda, machine) or (), capability):
                return f"{known[0]}.{known[1]}", cuda
    return None


def index_of(cuda: str) -> str:
    """The package index of a CUDA build.

    >>> index_of("12.6")
    'https://download.pytorch.org/whl/cu126'
    """
    found = pair(cuda) or (0, 0)
    return f"{INDEX}/cu{found[0]}{found[1]}"

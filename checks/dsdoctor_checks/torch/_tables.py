"""Which torch wheels are published, and which GPU code they contain. Read 2026-11-22.

Sources: pytorch RELEASE.md, .ci/manywheel/build_cuda.sh and .ci/aarch64_linux/aarch64_ci_build.sh,
pytorch/builder, METADATA of the wheels, torch/cuda/__init__.py `PYTORCH_RELEASES_CODE_CC` (2.12 to
2.15), pytorch issues 158700, 182250, 190385; for cu129 the wheel names 2.9.0+cu129 (x86-64 and
aarch64) in a public mirror's index. Only a fallback: the installed torch is asked first.
"""

from __future__ import annotations

from dsdoctor_checks._util import pair

Release = tuple[int, int]

#: CUDA versions of the builds for each torch release, the default first.
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
    (2, 9): ("12.8", "12.6", "13.0", "12.9"),
    (2, 10): ("12.8", "12.6", "13.0", "12.9"),
    (2, 11): ("13.0", "12.8", "12.6", "12.9"),
    (2, 12): ("13.0", "12.6", "13.2"),
    (2, 13): ("13.0", "12.6", "13.2"),
    (2, 14): ("13.0", "12.6", "13.2"),
    (2, 15): ("13.2", "13.0"),
}
#: The oldest and the newest Python 3 that each release has wheels for (names of the wheels for Linux
#: on PyPI, read 2026-11-29).
PYTHONS: dict[Release, tuple[int, int]] = {
    **dict.fromkeys([(2, 0), (2, 1)], (8, 11)),
    **dict.fromkeys([(2, 2), (2, 3), (2, 4)], (8, 12)),
    **dict.fromkeys([(2, 5), (2, 6), (2, 7), (2, 8)], (9, 13)),
    **dict.fromkeys([(2, 9), (2, 10), (2, 11), (2, 12), (2, 13), (2, 14)], (10, 14)),
    (2, 15): (11, 15),
}
_BASE = ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90")
_NEW = ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
_ARM12 = ("sm_80", "sm_90", "sm_100", "sm_120")
_ARM13 = ("sm_80", "sm_90", "sm_100", "sm_110", "sm_120", "compute_120")
#: First and last release whose cu128 and cu129 wheels contain code for Volta (7.0).
_VOLTA = ((2, 8), (2, 10))
INDEX = "https://download.pytorch.org/whl"
#: Major compute capability to the first CUDA whose compiler and libraries have code for it (release
#: notes of the CUDA toolkits 9.0, 11.0, 11.8, 12.8 and 13.0; 11.0 was called 10.1 in CUDA 12).
FIRST_CUDA: dict[int, tuple[int, int]] = {
    7: (9, 0),
    8: (11, 0),
    9: (11, 8),
    10: (12, 8),
    11: (12, 8),
    12: (12, 8),
}


def has_wheels(release: Release, python: tuple[int, int] | None) -> bool:
    """Whether a release was published for a Python; True if either is not known.

    >>> has_wheels((2, 15), (3, 10)), has_wheels((2, 14), (3, 10)), has_wheels((2, 14), None)
    (False, True, True)
    """
    oldest, newest = PYTHONS.get(release, (0, 99))
    return python is None or (3, oldest) <= python <= (3, newest)


def archs(release: Release, cuda: str, machine: str = "x86_64") -> tuple[str, ...] | None:
    """Architectures that a published wheel contains; None if it is not in the table.

    >>> archs((2, 5), "12.4")[-1], archs((2, 9), "12.8")[0], archs((2, 11), "12.8")[0]
    ('sm_90', 'sm_70', 'sm_75')
    >>> archs((2, 9), "12.9", "aarch64")
    ('sm_80', 'sm_90', 'sm_100', 'sm_120')
    """
    if cuda not in VARIANTS.get(release, ()):
        return None
    if machine in ("aarch64", "arm64"):
        return {
            "12.6": ("sm_80", "sm_90"),
            "12.8": _ARM12,
            "12.9": _ARM12,
            "13.0": _ARM13,
            "13.2": _ARM13,
        }.get(cuda)
    if machine not in ("x86_64", "AMD64"):
        return None
    volta = _VOLTA[0] <= release <= _VOLTA[1]
    return {
        "11.7": ("sm_37", *_BASE[:-1]),
        "11.8": ("sm_37", *_BASE),
        "12.1": _BASE,
        "12.4": _BASE,
        "12.6": _BASE,
        "12.8": ("sm_70", *_NEW) if volta else _NEW,
        "12.9": (*(("sm_70",) if volta else ()), *_NEW, "compute_120"),
        "13.0": (*_NEW, "compute_120"),
        "13.2": (*_NEW, "compute_120"),
    }.get(cuda)


def index_of(cuda: str) -> str:
    """The package index for a CUDA version.

    >>> index_of("12.6")
    'https://download.pytorch.org/whl/cu126'
    """
    found = pair(cuda) or (0, 0)
    return f"{INDEX}/cu{found[0]}{found[1]}"

"""What `mixed_precision: fp8` of accelerate's YAML asks for: packages, and values of `fp8_config`.

Source: accelerate utils/imports.py (`is_fp8_available`), utils/launch.py (`setup_fp8_env`: 0.34 and
later stop without a package), utils/dataclasses.py (`TERecipeKwargs`, `MSAMPRecipeKwargs`,
`FP8BackendType`), accelerator.py (`fp8_backend`), 0.34 to 1.15, read 2026-11-29.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from dsdoctor.probes.accelerate_releases import minor
from dsdoctor.probes.accelerate_sections import Rejection, Section

#: Packages that compute fp8, by the backend's name; Transformer Engine has one for each CUDA.
_PACKAGES = {
    "TE": ("transformer-engine",),
    "MSAMP": ("ms-amp", "msamp"),
    "AO": ("torchao",),
}
_NAMES = {"TE": "Transformer Engine", "MSAMP": "MS-AMP", "AO": "torchao"}
_BACKENDS = ("TE", "AO", "MSAMP", "NO")
_FORMATS = ("HYBRID", "E4M3", "E5M2")
#: The first releases whose launcher, not each rank, asks for a package; that know torchao, and no
#: longer read `backend`; and that read it again, in upper case only.
_ASKS_FOR_PACKAGES, _KNOWS_TORCHAO, _EXACT_BACKEND = (0, 34), (1, 4), (1, 9)


def asks_for_fp8(values: Mapping[str, Any], options: Mapping[str, str]) -> bool:
    """Whether a run computes in fp8; an option of the command replaces the file's value."""
    asked = options.get("mixed_precision") or values.get("mixed_precision")
    return str(asked).lower() == "fp8"


def _section(values: Mapping[str, Any], options: Mapping[str, str]) -> Section:
    return Section(values.get("fp8_config"), "fp8_", options, "fp8_")


def rejected_fp8(values: Mapping[str, Any], options: Mapping[str, str]) -> Iterator[Rejection]:
    """Values at which each rank stops, in each release that reads them.

    >>> yaml = {"mixed_precision": "fp8", "fp8_config": {"backend": "TE", "fp8_format": "E3M4"}}
    >>> next(rejected_fp8(yaml, {})).said
    '`fp8_format` is `E3M4`; expected `HYBRID`, `E4M3` or `E5M2`'
    """
    if not asks_for_fp8(values, options):
        return
    section = _section(values, options)
    yield from section.one_of("backend", _BACKENDS, null=True)
    backend = str(options.get("fp8_backend", section.get("backend"))).upper()
    if backend == "TE":
        yield from section.one_of("format", _FORMATS, null=True)
        yield from section.one_of("amax_compute_algo", ("max", "most_recent"), null=True)
        yield from section.numbers("margin", "interval", "amax_history_len", null=True)
        yield from section.truths("use_autocast_during_eval", null=True)
    elif backend == "MSAMP":
        yield from section.one_of("opt_level", ("O1", "O2"), null=True)


def without_fp8(
    values: Mapping[str, Any],
    options: Mapping[str, str],
    packages: Collection[str],
    release: str | None,
) -> Rejection | None:
    """Why fp8 stops the run in an environment with these packages; None if it does not.

    >>> without_fp8({"mixed_precision": "fp8"}, {}, {"torch"}, "1.15.0").said
    '`mixed_precision` is `fp8`, but neither Transformer Engine nor torchao is installed'
    >>> without_fp8({"mixed_precision": "fp8"}, {}, {"torchao"}, "1.15.0")
    """
    own = minor(release)
    if own is None or not asks_for_fp8(values, options):
        return None
    installed = {
        backend
        for backend, names in _PACKAGES.items()
        if any(package.startswith(names) for package in packages)
    }
    if own < _KNOWS_TORCHAO:
        installed.discard("AO")
    if not installed:
        other = own >= _KNOWS_TORCHAO
        none = "neither Transformer Engine nor torchao" if other else "Transformer Engine"
        advice = f"install `transformer-engine`{' or `torchao`' * other}, or use bf16"
        return Rejection(
            f"`mixed_precision` is `fp8`, but {none} is {'not ' * (not other)}installed",
            advice,
            in_ranks=own < _ASKS_FOR_PACKAGES,
        )
    section = _section(values, options)
    asked = options.get("fp8_backend", section.get("backend"))
    backend = str(asked).upper()
    if _KNOWS_TORCHAO <= own < _EXACT_BACKEND or backend not in _PACKAGES:
        return None
    key = section.key("backend")
    if own >= _EXACT_BACKEND and asked != backend:
        said = f"`{key}` is `{asked}`, which accelerate {release} accepts in upper case only"
        return Rejection(said, f"write `{backend}`", in_ranks=True)
    if backend not in installed:
        said = f"`{key}` is `{asked}`, but {_NAMES[backend]} is not installed"
        advice = f"install `{_PACKAGES[backend][0]}`, or set another `{key}`"
        return Rejection(said, advice, in_ranks=True)
    return None

"""Keys and values of accelerate's YAML that only some of its releases know.

A release stops at a key and a `distributed_type` that it does not have.

`TPU` was a name for `XLA` from 0.28 on, which the class itself did not take.

Source: `ClusterConfig` of commands/config/config_args.py, `DistributedType` and `DynamoBackend` of
utils/dataclasses.py in the last patch release of each minor release from 0.20 to 1.15 (31 wheels,
read 2026-11-29). What was there from 0.20 to 1.15 is not listed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

#: The newest release that was read; of later ones only what they say themselves is known.
NEWEST = (1, 15)
_OLDEST = (0, 20)


class Range(NamedTuple):
    """The first and the last minor release that has something."""

    first: tuple[int, int] = _OLDEST
    last: tuple[int, int] = NEWEST


_KEYS = {
    "debug": Range((0, 22)),
    "enable_cpu_affinity": Range((0, 29)),
    "fp8_config": Range((0, 34)),
    "ipex_config": Range(last=(1, 12)),
    "mpirun_config": Range((0, 28)),
    "parallelism_config": Range((1, 10)),
    "tp_config": Range((1, 4), (1, 6)),
}
_TYPES = {
    "MULTI_HPU": Range((1, 5)),
    "MULTI_MLU": Range((0, 29)),
    "MULTI_MUSA": Range((0, 33)),
    "MULTI_NEURON": Range((1, 13)),
    "MULTI_NPU": Range((0, 21)),
    "MULTI_SDAA": Range((1, 5)),
    "TP": Range((1, 4), (1, 9)),
    "TPU": Range(last=(0, 27)),
    "XLA": Range((0, 28)),
}
_BACKENDS = {
    "AOT_CUDAGRAPHS": Range(last=(0, 23)),
    "AOT_NVFUSER": Range(last=(0, 23)),
    "AOT_TORCHXLA_TRACE_ONCE": Range((0, 32)),
    "AOT_TS_NVFUSER": Range((0, 24)),
    "CUDAGRAPHS": Range((0, 24)),
    "HPU_BACKEND": Range((1, 5)),
    "IPEX": Range(last=(1, 12)),
    "NEURON": Range((1, 15)),
    "NVFUSER": Range(last=(0, 23)),
    "NVPRIMS_NVFUSER": Range((0, 24)),
    "TENSORRT": Range((0, 24)),
    "TORCHXLA_TRACE_ONCE": Range((0, 32)),
    "TVM": Range((0, 24)),
}


def minor(release: str | None) -> tuple[int, int] | None:
    """Major and minor number of a release; None if it is not known.

    >>> minor("1.15.0.dev0"), minor(None)
    ((1, 15), None)
    """
    found = re.match(r"(\d{1,4})\.(\d{1,4})", release or "")
    return (int(found[1]), int(found[2])) if found else None


def shown(release: tuple[int, int]) -> str:
    """A minor release as text."""
    return f"{release[0]}.{release[1]}"


def true_since(first: tuple[int, int], release: str | None) -> str | None:
    """What to add to a message that is true from a release on; None if it is not true.

    >>> true_since((1, 8), None), true_since((1, 8), "1.15.0"), true_since((1, 8), "1.7.0")
    (' (accelerate 1.8 and newer)', '', None)
    """
    own = minor(release)
    if own is None:
        return f" (accelerate {shown(first)} and newer)"
    return "" if own >= first else None


def of_some_releases(
    values: Mapping[str, Any], options: Mapping[str, str]
) -> Iterator[tuple[str, str, Range]]:
    """What only some releases have: the key that sets it, how to name it, and their range.

    >>> [said for _, said, _ in of_some_releases({"ipex_config": {}, "debug": True}, {})]
    ['the key `ipex_config`', 'the key `debug`']
    """
    for key in values:
        if key in _KEYS:
            yield key, f"the key `{key}`", _KEYS[key]
    kind = values.get("distributed_type")
    if isinstance(kind, str) and kind in _TYPES:
        yield "distributed_type", f"the `distributed_type` `{kind}`", _TYPES[kind]
    # the launcher of DeepSpeed's ranks does not look at the backend of `torch.compile`
    if kind == "DEEPSPEED" or {"dynamo_backend", "use_deepspeed"} & options.keys():
        return
    section = values.get("dynamo_config")
    backends = [values.get("dynamo_backend")]
    if isinstance(section, dict) and "dynamo_backend" not in values:
        backends = [section.get("dynamo_backend"), section.get("backend")]
    for backend in map(str, backends):
        if backend.upper() in _BACKENDS:
            said = f"the backend `{backend}` of `torch.compile`"
            yield "dynamo_backend", said, _BACKENDS[backend.upper()]


def without(
    values: Mapping[str, Any], options: Mapping[str, str], release: str | None
) -> tuple[str, str] | None:
    """What a known release of accelerate does not have, and what to do; None if it has all.

    >>> without({"ipex_config": {}}, {}, "1.15.0")[0]
    'accelerate 1.15.0 does not have the key `ipex_config`; only 1.12 and older have it'
    """
    own = minor(release)
    if own is None or own > NEWEST:
        return None
    for key, said, known in of_some_releases(values, options):
        if known.first <= own <= known.last:
            continue
        if own < known.first:
            since = f"{shown(known.first)} and newer have it"
            advice = f"upgrade `accelerate` to {shown(known.first)} or newer, or change `{key}`"
        else:
            since = f"only {shown(known.last)} and older have it"
            advice = f"remove `{key}`" if key in _KEYS else f"change `{key}`"
        return f"accelerate {release} does not have {said}; {since}", advice
    return None


def ended(values: Mapping[str, Any], options: Mapping[str, str]) -> dict[str, str]:
    """What newer releases no longer have, by key, if the release that reads the file is not known.

    >>> ended({"ipex_config": {}, "debug": True}, {})
    {'ipex_config': 'accelerate 1.13 and newer stop at the key `ipex_config`'}
    """
    return {
        key: f"accelerate {_following(known.last)} and newer stop at {said}"
        for key, said, known in of_some_releases(values, options)
        if known.last < NEWEST
    }


#: Minor releases after which the major number changed.
_LAST_OF_MAJOR = {(0, 34): (1, 0)}


def _following(release: tuple[int, int]) -> str:
    return shown(_LAST_OF_MAJOR.get(release, (release[0], release[1] + 1)))

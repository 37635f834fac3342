"""Messages of `native-crash` on an instruction that the processor lacks."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

_MASKS = ("host-oom-killed", "rank-killed", "nccl-timeout-watchdog", "rendezvous-timeout")
#: What an op is compiled for by `-march=native`, as DeepSpeed's are, or a package for newer processors.
_ILLEGAL = "Code that was compiled for another processor ran on this one"
_REBUILD = (
    "compile it on this kind of processor: delete `~/.cache/torch_extensions`, and reinstall DeepSpeed if"
    " its ops were pre-built; for another library, install a build for older processors"
    " (`PYTHONFAULTHANDLER=1` makes Python print which one it is)"
)

SIGNATURES = (
    Signature(
        pattern=r"^Illegal instruction\b|\d Illegal instruction +(?:\(core dumped\)|\S)",
        source="bash; glibc 2.17-2.41",
        examples=(
            "Illegal instruction (core dumped)",
            "run.sh: line 3: 4711 Illegal instruction     (core dumped) python train.py",
            "run.sh: line 3: 4711 Illegal instruction     python train.py",
        ),
        not_examples=("the Illegal instruction is caught",),
        level=Level.STRONG,
        masks=_MASKS,
        message=_ILLEGAL,
        hint=_REBUILD,
    ),
    Signature(
        pattern=r"Caught signal 4 \(Illegal instruction\b",
        source="UCX 1.6-1.18 src/ucs/debug/debug.c",
        examples=("[gpu7:812:0:812] Caught signal 4 (Illegal instruction: illegal operand)",),
        not_examples=("Caught signal 4 (Illegal instructions are counted)",),
        level=Level.STRONG,
        masks=_MASKS,
        message=_ILLEGAL,
        hint=_REBUILD,
    ),
)

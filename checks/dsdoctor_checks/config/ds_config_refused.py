"""The installed DeepSpeed refuses the config.

## Why it matters
This is DeepSpeed's own word: its code was asked in this environment, without starting a run. Every
rank would end in the same error, after the model is loaded and the GPUs are held.

## What to do
Correct the key that the finding names, in the line that it names.

## References
deepspeed/runtime/config.py (`DeepSpeedConfig`), deepspeed/runtime/config_utils.py: values that say
`"auto"` are left to the trainer and not judged here
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    ConfigRefusal,
    ConfigVerdict,
    DsConfig,
    Finding,
    Scope,
    check,
    fail,
    ok,
)

CONDITION = Condition(
    "ds-config-refused",
    id="DSD1311",
    scope=Scope.JOB,
    since="0.1",
    narrower=(
        "ds-config-unreadable",
        "ds-config-invalid-key",
        "ds-config-wrong-type",
        "ds-config-unsupported-combination",
        "ds-config-batch-mismatch",
        "ds-config-auto-values",
    ),
)


#: A shorter first sentence says what, but not why: the next one is taken too.
TELLING = 60


def _words(text: str) -> str:
    """The telling part of a message, on one line and without its full stop.

    >>> _words("Invalid type. Supported: ['fp16']. Got: int8. See https://x")
    "Invalid type; Supported: ['fp16']; Got: int8; See https://x"
    """
    line = " ".join(text.split()) or "no reason given"
    told = ""
    for sentence in line.split(". "):
        told += f"; {sentence}" if told else sentence
        if len(told) >= TELLING:
            break
    return told.rstrip(".")


def _place(config: DsConfig, refusal: ConfigRefusal) -> str:
    return config.named(refusal.key) if refusal.key else "the config as a whole"


@check(CONDITION)
def deepspeed_takes_it(config: DsConfig, verdict: ConfigVerdict) -> Iterator[Finding]:
    """One finding for each thing that DeepSpeed refuses."""
    for refusal in verdict.refusals:
        yield fail(
            f"DeepSpeed {verdict.version} refuses {_place(config, refusal)}: "
            f"{_words(refusal.message)}",
            effect=f"every rank ends in `{refusal.kind}`",
            hint=f"correct `{refusal.key}`" if refusal.key else "correct the config",
            config_path=config.path,
            key=refusal.key or None,
            line=config.lines.get(refusal.key),
            words=refusal.message,
            kind=refusal.kind,
            deepspeed=verdict.version,
        )
    yield ok(deepspeed=verdict.version, world=verdict.world)

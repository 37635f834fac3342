"""The installed DeepSpeed rejects the config.

## Why it matters
dsdoctor passed the config to the DeepSpeed of this environment, without starting a run. In a run,
every rank stops with the same error, after the model has been loaded and the GPUs are allocated.
Values that are `"auto"` are left to the trainer and not checked.

## What to do
Correct the key on the line shown in the finding.

## References
deepspeed/runtime/config.py (`DeepSpeedConfig`), deepspeed/runtime/config_utils.py
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


#: A first sentence shorter than this rarely gives the reason, so the next one is added.
ENOUGH = 60


def _words(text: str) -> str:
    """The informative part of a message, on one line and without its full stop.

    >>> _words("Invalid type. Supported: ['fp16']. Got: int8. See https://x")
    "Invalid type; Supported: ['fp16']; Got: int8; See https://x"
    """
    line = " ".join(text.split()) or "no reason given"
    kept = ""
    for sentence in line.split(". "):
        kept += f"; {sentence}" if kept else sentence
        if len(kept) >= ENOUGH:
            break
    return kept.rstrip(".")


def _place(config: DsConfig, refusal: ConfigRefusal) -> str:
    return config.named(refusal.key) if refusal.key else "the config as a whole"


@check(CONDITION)
def deepspeed_takes_it(config: DsConfig, verdict: ConfigVerdict) -> Iterator[Finding]:
    """Fails once for each thing that DeepSpeed rejects."""
    for refusal in verdict.refusals:
        yield fail(
            f"DeepSpeed {verdict.version} rejects {_place(config, refusal)}: "
            f"{_words(refusal.message)}",
            effect=f"every rank stops with `{refusal.kind}`",
            hint=f"correct `{refusal.key}`" if refusal.key else "correct the config",
            config_path=config.path,
            key=refusal.key or None,
            line=config.lines.get(refusal.key),
            words=refusal.message,
            kind=refusal.kind,
            deepspeed=verdict.version,
        )
    yield ok(deepspeed=verdict.version, world=verdict.world)

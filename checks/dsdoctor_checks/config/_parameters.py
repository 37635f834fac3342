"""Parameter names of the optimizer and the scheduler in the config."""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import ConfigVerdict, DsConfig, Finding, Missing, fail

from ._classes import SCHEDULER_PARAMETERS, optimizer_of
from ._tables import TABLE_VERSION, nearest, newer_than_table


def _accepted(
    config: DsConfig, part: str, verdict: ConfigVerdict | Missing, version: str | None
) -> tuple[str, frozenset[str]] | None:
    """Class and keyword arguments: from the installed class, else from the table."""
    if isinstance(verdict, ConfigVerdict):
        known = verdict.parameters.get(part)
        return None if known is None else (known.cls, frozenset(known.names))
    if newer_than_table(version):
        return None
    if part == "optimizer":
        return optimizer_of(config)
    name = config.get(f"{part}.type")
    if not isinstance(name, str) or name not in SCHEDULER_PARAMETERS:
        return None
    return name, SCHEDULER_PARAMETERS[name]


def unknown_parameters(
    config: DsConfig, part: str, verdict: ConfigVerdict | Missing, version: str | None
) -> Iterator[Finding]:
    """Fails on each name in `PART.params` that the class does not accept.

    Args:
        config: the config.
        part: `optimizer` or `scheduler`.
        verdict: what the installed DeepSpeed said, with the signatures of its classes.
        version: installed release of DeepSpeed, if any.
    """
    accepted = _accepted(config, part, verdict, version)
    if accepted is None:
        return
    cls, names = accepted
    for name in config.section(f"{part}.params"):
        if name in names or (part == "optimizer" and name == "max_grad_norm"):
            continue  # ds-config-unsupported-combination reports max_grad_norm
        key = f"{part}.params.{name}"
        meant = nearest(name, names)
        hint = f"rename it to `{meant}`"
        if meant and meant.endswith("_ratio") and not name.endswith("_ratio"):
            hint = f"use `{meant}`, a fraction of the optimizer's learning rate"
            meant = None  # the value does not carry over
        elif meant is None:
            hint = f"remove it; `{cls}` accepts {', '.join(f'`{one}`' for one in sorted(names))}"
        release = version or TABLE_VERSION
        said = f"{config.named(key)} is not a parameter of `{cls}` in DeepSpeed {release}"
        yield fail(
            f"{said}; the closest is `{meant}`" if meant else said,
            effect=f"`TypeError: unexpected keyword argument` when the engine creates the {part}",
            hint=hint,
            key=key,
            line=config.lines.get(key),
            meant=meant,
            deepspeed=version,
        )

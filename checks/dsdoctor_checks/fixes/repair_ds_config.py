"""Writes a corrected copy of the DeepSpeed config and keeps its comments.

## What it does
Corrects what is certain: misspelled keys and optimizers, keys of removed features, keys that have
no effect (`offload_param` below ZeRO stage 3), unquoted `True` and `None`, and batch sizes that do
not match. The copy is `NAME.fixed.json` in the same directory. The config itself is not changed.

## Undo
Removes the copy.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable

from dsdoctor.api import (
    DsConfig,
    Finding,
    Findings,
    Impossible,
    Plan,
    Reach,
    RepairFiles,
    Write,
    fix,
)
from dsdoctor_checks.config._repairable import is_removed, is_renamed, plain_value
from dsdoctor_checks.fixes import _config_text as edit

NAME = "repair-ds-config"
Made = tuple[str, str] | None
"""The text after an edit, and a description of the edit."""


def _leaf(key: str) -> str:
    return key.rpartition(".")[2]


def _unknown(text: str, finding: Finding, config: DsConfig) -> Made:
    key, line = str(finding.evidence.get("key")), finding.evidence.get("line")
    meant = finding.evidence.get("meant")
    if line is None:
        return None
    if is_renamed(config, finding):
        made = edit.renamed(text, line, _leaf(key), str(meant))
        return None if made is None else (made, f"`{key}` is renamed to `{meant}`")
    if is_removed(finding):
        made = edit.without(text, line, _leaf(key))
        why = "DeepSpeed removed the feature" if not meant else "DeepSpeed does not support it"
        return None if made is None else (made, f"`{key}` is removed: {why}")
    return None


def _ignored(text: str, finding: Finding, _config: DsConfig) -> Made:
    key, line = str(finding.evidence.get("key")), finding.evidence.get("line")
    if line is None:
        return None
    new = {"aio.thread_count": "intra_op_parallelism", "optimizer.param": "params"}.get(key)
    new = new or finding.evidence.get("meant")
    if new:
        made = edit.renamed(text, line, _leaf(key), new)
        return None if made is None else (made, f"`{key}` is renamed to `{new}`")
    if key.endswith("offload_optimizer.device"):
        made = edit.revalued(text, line, "device", "cpu")
        return (
            None
            if made is None
            else (made, f"`{key}` is set to `cpu`, which DeepSpeed uses anyway")
        )
    made = edit.without(text, line, _leaf(key))
    return None if made is None else (made, f"`{key}` is removed: it has no effect")


def _optimizer(text: str, finding: Finding, _config: DsConfig) -> Made:
    meant, line = finding.evidence.get("meant"), finding.evidence.get("line")
    if not meant or line is None:
        return None
    made = edit.revalued(text, line, "type", meant)
    return None if made is None else (made, f"the optimizer is renamed to `{meant}`")


def _kind(text: str, finding: Finding, _config: DsConfig) -> Made:
    key, line = str(finding.evidence.get("key")), finding.evidence.get("line")
    new = plain_value(finding.evidence.get("value"))
    if line is None or new is None:
        return None
    made = edit.revalued(text, line, _leaf(key), new[0])
    return None if made is None else (made, f"`{key}` is {new[0]!r} instead of a string")


def _batch(text: str, finding: Finding, config: DsConfig) -> Made:
    key, new = "train_batch_size", finding.evidence.get("nearest")
    why = f"`{key}` is set to {new}, the closest value that matches"
    if "option" in finding.evidence:
        key, new = str(finding.evidence.get("key")), "auto"
        why = f"`{key}` is left to the option of the command"
    line = config.lines.get(key)
    if new is None or line is None:
        return None
    made = edit.revalued(text, line, _leaf(key), new)
    return None if made is None else (made, why)


EDITS: dict[str, Callable[[str, Finding, DsConfig], Made]] = {
    # values first: they keep their lines; removals shift the lines that follow
    "ds-config-wrong-type": _kind,
    "ds-config-unknown-optimizer": _optimizer,
    "ds-config-batch-mismatch": _batch,
    "ds-config-invalid-key": _unknown,
    "ds-config-ignored-setting": _ignored,
}


@fix(NAME, reach=Reach.HOME)
def repair_ds_config(
    config: DsConfig, files: RepairFiles, findings: Findings
) -> Plan | Impossible | None:
    """Writes one corrected copy; the diff is the reason."""
    bad = [(name, finding) for name in EDITS for finding in findings.bad(name)]
    if not bad:
        return None
    held = files.get("config")
    if held is None:
        return Impossible(why="the config cannot be read; pass it with `--config FILE`")
    path, text = held
    if path.lower().endswith((".yaml", ".yml")):
        why = "; ".join(finding.hint for _, finding in bad)
        return Impossible(why=f"`{path}` is a trainer's YAML, which you edit yourself: {why}")
    done: list[str] = []
    left: set[str] = set()
    lowest_first = sorted(bad, key=lambda row: -int(row[1].evidence.get("line") or 0))
    made_text = text
    for name, finding in lowest_first:  # from the end, so that the lines before keep their numbers
        made = EDITS[name](made_text, finding, config)
        if made is None:
            left.add(name)
        else:
            made_text, what = made
            done.append(what)
    if not done:
        why = "; ".join(finding.hint for _, finding in bad)
        return Impossible(why=f"`{path}` needs decisions that only you can make: {why}")
    stem, ending = posixpath.splitext(path)
    target = f"{stem}.fixed{ending or '.json'}"
    import difflib  # noqa: PLC0415  # only where there is something to repair

    diff = difflib.unified_diff(
        text.splitlines(), made_text.splitlines(), path, target, lineterm="", n=1
    )
    return Plan(
        name=NAME,
        title=f"write a corrected copy, `{target}`",
        steps=(
            Write(
                write=target,
                content=made_text,
                why="\n".join([*diff]),
                reach=Reach.HOME,
            ),
        ),
        proves=tuple(dict.fromkeys(name for name, _ in bad if name not in left)),
        recheck={"config": target},
        undo=f"`dsdoctor fix --undo` removes `{target}`",
        reach=Reach.HOME,
        reasons=tuple(dict.fromkeys(reversed(done)))
        + tuple(f"`{name}` needs your decision" for name in sorted(left)),
    )

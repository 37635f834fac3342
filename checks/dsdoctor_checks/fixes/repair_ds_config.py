"""Writes a corrected copy of the DeepSpeed config, comments kept.

## What it does
Corrects what the checks of the config can correct for certain: keys that DeepSpeed does not know
but that are near to one it knows, keys that belong to removed features or have no effect where they
stand (`offload_param` below ZeRO stage 3), misspelled optimizers, `True` and `None` without quotes,
batch sizes that do not multiply. The copy is called `NAME.fixed.json` and stands beside the config;
the config itself is not touched.

## Undo
Removes the copy.
"""

from __future__ import annotations

import difflib
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
from dsdoctor_checks.fixes import _config_text as edit

NAME = "repair-ds-config"
Made = tuple[str, str] | None
"""The text after an edit, and what was done."""

#: What people write for the literals of JSON.
_LITERALS = {"true": True, "false": False, "null": None, "none": None}


def _leaf(key: str) -> str:
    return key.rpartition(".")[2]


def _unknown(text: str, finding: Finding, config: DsConfig) -> Made:
    key, line = str(finding.evidence.get("key")), finding.evidence.get("line")
    meant = finding.evidence.get("meant")
    if line is None:
        return None
    moves = meant in (config.parsed or {}) or isinstance(config.get(str(meant)), dict)
    if meant and not moves:
        made = edit.renamed(text, line, _leaf(key), str(meant))
        return None if made is None else (made, f"`{key}` is called `{meant}`")
    params = key.startswith(("optimizer.params.", "scheduler.params."))
    if finding.evidence.get("removed_since") or (meant is None and "." in key and not params):
        made = edit.without(text, line, _leaf(key))
        why = "DeepSpeed has removed its feature" if not meant else "DeepSpeed does not know it"
        return None if made is None else (made, f"`{key}` is taken out: {why}")
    return None


def _ignored(text: str, finding: Finding, _config: DsConfig) -> Made:
    key, line = str(finding.evidence.get("key")), finding.evidence.get("line")
    if line is None:
        return None
    new = {"aio.thread_count": "intra_op_parallelism", "optimizer.param": "params"}.get(key)
    if new:
        made = edit.renamed(text, line, _leaf(key), new)
        return None if made is None else (made, f"`{key}` is called `{new}`")
    if key.endswith("offload_optimizer.device"):
        made = edit.revalued(text, line, "device", "cpu")
        return None if made is None else (made, f"`{key}` is what it comes to, `cpu`")
    made = edit.without(text, line, _leaf(key))
    return None if made is None else (made, f"`{key}` is taken out: it does nothing there")


def _optimizer(text: str, finding: Finding, _config: DsConfig) -> Made:
    meant, line = finding.evidence.get("meant"), finding.evidence.get("line")
    if not meant or line is None:
        return None
    made = edit.revalued(text, line, "type", meant)
    return None if made is None else (made, f"the optimizer is called `{meant}`")


def _kind(text: str, finding: Finding, _config: DsConfig) -> Made:
    key, line = str(finding.evidence.get("key")), finding.evidence.get("line")
    value = finding.evidence.get("value")
    if line is None or not isinstance(value, str):
        return None
    word = value.rstrip(",} ").strip().strip("\"'")
    new: object
    if word.lower() in _LITERALS:
        new = _LITERALS[word.lower()]
    else:
        try:
            new = float(word)
        except ValueError:
            return None
        new = int(new) if new.is_integer() else new
    made = edit.revalued(text, line, _leaf(key), new)
    return None if made is None else (made, f"`{key}` is {new!r} instead of a text")


def _batch(text: str, finding: Finding, config: DsConfig) -> Made:
    nearest, line = finding.evidence.get("nearest"), config.lines.get("train_batch_size")
    if nearest is None or line is None:
        return None
    made = edit.revalued(text, line, "train_batch_size", nearest)
    return (
        None if made is None else (made, f"`train_batch_size` is {nearest}, the nearest that fits")
    )


EDITS: dict[str, Callable[[str, Finding, DsConfig], Made]] = {
    # values first: they keep their lines; removals shift those that come after
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
    """One corrected copy, with the diff as the reason."""
    bad = [(name, finding) for name in EDITS for finding in findings.bad(name)]
    if not bad:
        return None
    held = files.get("config")
    if held is None:
        return Impossible(why="the config cannot be read; give it with `--config FILE`")
    path, text = held
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
        return Impossible(why=f"what is wrong with `{path}` has to be decided by you: {why}")
    stem, ending = posixpath.splitext(path)
    target = f"{stem}.fixed{ending or '.json'}"
    diff = difflib.unified_diff(
        text.splitlines(), made_text.splitlines(), path, target, lineterm="", n=1
    )
    return Plan(
        name=NAME,
        title=f"a corrected copy, `{target}`, to start the job with",
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
        + tuple(f"`{name}` is left to you" for name in sorted(left)),
    )

"""A weights file is truncated or only a Git LFS pointer.

## Why it matters
An interrupted download leaves a truncated file, and a clone without Git LFS leaves a small pointer
file. Loading either fails.

## What to do
Download the file again (`git lfs pull`, `hf download --force-download MODEL`).

## References
- torch/serialization.py: a checkpoint is a ZIP archive with its directory at the end
- https://github.com/huggingface/safetensors: format of the header
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Checkpoint,
    Condition,
    Finding,
    Missing,
    Scope,
    ScriptPaths,
    check,
    fail,
    ok,
    skip,
)

from . import _weights_file_corrupt_signatures

CONDITION = Condition("weights-file-corrupt", id="DSD1554", scope=Scope.JOB, since="0.1")

_SHOWN = 3


@check(CONDITION)
def files_are_whole(
    checkpoint: Checkpoint | Missing, script: ScriptPaths | Missing
) -> Iterator[Finding]:
    """Judges each file without loading it; with `--deep` also its checksums."""
    if isinstance(script, ScriptPaths) and script.pointers:
        yield _pointers(script)
    if isinstance(checkpoint, Missing):
        if not isinstance(script, ScriptPaths) or not script.pointers:
            yield skip(checkpoint.detail)
        return
    if checkpoint.error is not None:
        return
    bad = [file for file in checkpoint.files if file.problem]
    if not bad:
        yield ok(files=len(checkpoint.files), read_whole=checkpoint.read_whole)
        return
    shown = "; ".join(
        f"`{file.name}` is {_WORDS.get(str(file.problem), file.problem)}"
        + (f" ({file.detail})" if file.detail else "")
        for file in bad[:_SHOWN]
    )
    more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
    yield fail(
        f"{shown}{more}",
        effect="loading fails on the rank that reads it",
        hint="run `git lfs pull` in the repository that they come from, or download them again"
        if {file.problem for file in bad} == {"git-lfs pointer"}
        else "copy or download these files again, or resume from another tag",
        checkpoint=checkpoint.path,
        files={file.name: file.problem for file in bad},
        sizes={file.name: file.size for file in bad},
    )


def _pointers(script: ScriptPaths) -> Finding:
    first, others = script.pointers[0], len(script.pointers) - 1
    more = {0: "", 1: "; another file is one too"}.get(others, f"; {others} other files are too")
    folder = first.path.rpartition("/")[0] or "."
    return fail(
        f"`{first.path}`, which {first.read_by} loads, is a Git LFS pointer, not the file itself{more}",
        effect="every rank stops when it loads the model, for example with `header too large` or"
        " `invalid load key, 'v'`",
        hint=f"run `git lfs install && git lfs pull` in `{folder}`, or download the model with `hf download`",
        files=[one.path for one in script.pointers],
        read_by=first.read_by,
    )


_WORDS = {
    "git-lfs pointer": "a Git LFS pointer, not the file itself",
    "no checkpoint file": "not a checkpoint file",
}


HINT = "download the file again (`git lfs pull`, `hf download --force-download MODEL`), or load an earlier checkpoint"

SIGNATURES = _weights_file_corrupt_signatures.SIGNATURES

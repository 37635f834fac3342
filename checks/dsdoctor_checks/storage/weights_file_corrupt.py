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

from dsdoctor.api import Checkpoint, Condition, Finding, Scope, check, fail, ok

from . import _weights_file_corrupt_signatures

CONDITION = Condition("weights-file-corrupt", id="DSD1554", scope=Scope.JOB, since="0.1")

_SHOWN = 3


@check(CONDITION)
def files_are_whole(checkpoint: Checkpoint) -> Iterator[Finding]:
    """Judges each file without loading it; with `--deep` also its checksums."""
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


_WORDS = {
    "git-lfs pointer": "a Git LFS pointer, not the file itself",
    "no checkpoint file": "not a checkpoint file",
}


HINT = "download the file again (`git lfs pull`, `hf download --force-download MODEL`), or load an earlier checkpoint"

SIGNATURES = _weights_file_corrupt_signatures.SIGNATURES

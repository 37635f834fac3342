"""A weight file is truncated or only a git-lfs pointer.

## Why it matters
A download that was cut off, or a git-lfs pointer in place of the file, is no weight file.

## What to do
Fetch the file again (`git lfs pull`, `hf download --force-download`).

## References
- torch/serialization.py: a checkpoint is a ZIP archive whose directory stands at its end
- https://github.com/huggingface/safetensors: format of the header
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Checkpoint, Condition, Finding, Scope, Signature, check, fail, ok

CONDITION = Condition("weights-file-corrupt", id="DSD1554", scope=Scope.JOB, since="0.1")

_SHOWN = 3


@check(CONDITION)
def files_are_whole(checkpoint: Checkpoint) -> Iterator[Finding]:
    """What can be told of each file without loading it; with `--deep` its checksums as well."""
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
        effect="loading ends with an error on the rank that reads it",
        hint="copy or download these files again, or resume from another tag",
        checkpoint=checkpoint.path,
        files={file.name: file.problem for file in bad},
        sizes={file.name: file.size for file in bad},
    )


_WORDS = {
    "git-lfs pointer": "a git-lfs pointer, not the file itself",
    "no checkpoint file": "no checkpoint file",
}


HINT = "fetch the file again (`git lfs pull`, `hf download --force-download`)"

SIGNATURES = (
    Signature(
        anchor=(
            "HeaderTooLarge",
            "header too large",
            "InvalidHeader",
            "MetadataIncompleteBuffer",
            "incomplete metadata",
            "failed finding central directory",
            "invalid load key",
            "PytorchStreamReader failed",
            "unexpected EOF",
            "Ran out of input",
            "git-lfs",
            "deserializing header",
        ),
        pattern=(
            r"HeaderTooLarge|header too large|InvalidHeader|MetadataIncompleteBuffer"
            r"|incomplete metadata|failed finding central directory|invalid load key, "
            r"|PytorchStreamReader failed|unexpected EOF, expected|EOFError: Ran out of input"
            r"|deserializing header"
        ),
        examples=(
            "SafetensorError: Error while deserializing header: HeaderTooLarge",
            "_pickle.UnpicklingError: invalid load key, 'v'.",
        ),
        not_examples=("git-lfs installed",),
        weight=68,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        anchor="Weights only load failed",
        pattern=r"Weights only load failed",
        examples=(
            "_pickle.UnpicklingError: Weights only load failed.",
            "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded",
        ),
        not_examples=("Weights only load succeeded",),
        weight=52,
        near=("Unsupported operand", "invalid load key"),
    ),
    Signature(
        anchor=(
            "Unable to load weights from pytorch checkpoint",
            "having git-lfs installed",
            "might be corrupted",
            "onsistency check failed",
            "corrupt file",
            "archive is corrupted",
        ),
        pattern=(
            r"Unable to load weights from pytorch checkpoint file"
            r"|without having git-lfs installed|file might be corrupted"
            r"|Consistency check failed: file should be of size"
            r"|Invalid magic number; corrupt file|archive is corrupted"
        ),
        examples=(
            "OSError: Unable to load weights from pytorch checkpoint file for '/m/pytorch_model-00003-of-00007.bin'",
            "OSError: You seem to have cloned a repository without having git-lfs installed.",
            "OSError: Consistency check failed: file should be of size 9976576152 but has size 5733572608 (model-00001.safetensors).",
        ),
        not_examples=(
            "git-lfs is installed",
            "the file might be missing",
            "Unable to load weights from pytorch checkpoint: the model has a new head",
        ),
        weight=60,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        anchor=("BadZipFile", "InvalidHeaderDeserialization", "truncated file"),
        pattern=r"BadZipFile: |InvalidHeaderDeserialization|Unable to open file \(truncated file",
        examples=(
            "zipfile.BadZipFile: File is not a zip file",
            "OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0)",
        ),
        not_examples=("except BadZipFile:",),
        weight=60,
    ),
    Signature(
        anchor=("orrupt", "runcated", "ncomplete"),
        pattern=(
            r"^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception): "
            r"(?=.{0,200}(?i:\bcorrupt(?:ed)?\b|\btruncated\b|\bincomplete\b)).{0,200}"
            r"(?i:checkpoint|weights?\b|safetensors|\.bin\b|\.pth?\b|archive|state dict|download)"
        ),
        examples=(
            "ValueError: the weights are truncated: 4 of 9 GB",
            "OSError: corrupted checkpoint model-2.safetensors",
        ),
        not_examples=("ValueError: corrupted image 12.jpg",),
        weight=29,
    ),
    Signature(
        anchor=(
            "pickle data was truncated",
            "unpickling stack underflow",
            "torage has wrong ",
            "sentencepiece_processor.cc",
            "parse ModelProto",
            "is not a valid JSON file",
            "file signature not found",
            "pen file (truncated",
            "invalid hash value (expected",
            "checksum does not",
            "hecksum mismatch",
            "git-lfs.github.com/spec",
            "unexpected end of data",
            "Bad CRC-32",
            "while decompressing data",
            "Not a gzipped file",
            "FileSize",
        ),
        pattern=(
            r"pickle data was truncated|unpickling stack underflow|[Ss]torage has wrong (?:byte )?size"
            r"|sentencepiece_processor\.cc.{0,80}(?:ParseFromArray|LoadFromFile)"
            r"|could not parse ModelProto|is not a valid JSON file|file signature not found"
            r"|pen file \(truncated|invalid hash value \(expected|checksum does not"
            r"|^\w{0,40}Error: .{0,40}[Cc]hecksum mismatch|^version https://git-lfs\.github\.com/spec"
            r"|ReadError: unexpected end of data|Bad CRC-32 for file"
            r"|Error -\d while decompressing data|Not a gzipped file"
        ),
        examples=(
            "_pickle.UnpicklingError: pickle data was truncated",
            "RuntimeError: storage has wrong byte size: expected 4096 got 64",
            "OSError: It looks like the config file at 'm/config.json' is not a valid JSON file.",
            "RuntimeError: Internal: could not parse ModelProto from m/tokenizer.model",
        ),
        not_examples=(
            "checksum mismatch is tolerated",
            "see https://git-lfs.github.com/spec/v1",
        ),
        weight=57,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        anchor=("codec can't decode byte", "JSONDecodeError: "),
        pattern=r"^UnicodeDecodeError: '[\w-]{1,20}' codec can't decode byte|JSONDecodeError: E",
        examples=(
            "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x80 in position 64: invalid start byte",
            "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        ),
        not_examples=("codec can't decode byte 3, skipped",),
        weight=44,
        near=(
            "in load_state_dict",
            "in load_checkpoint",
            "configuration_utils.py",
            "in _load_state_dict",
            "index.json",
            "in get_checkpoint_shard_files",
        ),
    ),
    Signature(
        anchor=(
            "malformed smudge",
            "git-lfs filter-process",
            "smudge filter lfs failed",
            "git-lfs: command not",
        ),
        pattern=(
            r"malformed smudge|external filter 'git-lfs filter-process' failed"
            r"|smudge filter lfs failed|git-lfs: command not found"
        ),
        examples=(
            "Possibly malformed smudge on Windows: see `git lfs help smudge` for more info.",
            "fatal: tokenizer.model: smudge filter lfs failed",
        ),
        not_examples=("started git-lfs filter-process",),
        weight=44,
    ),
    Signature(
        anchor=("RuntimeError: Internal: ",),
        pattern=r"RuntimeError: Internal: \w",
        examples=(
            "RuntimeError: Internal: unk is not defined.",
            "RuntimeError: Internal: Not found: tokenizer.model",
        ),
        not_examples=("TfRuntimeError: Internal: ",),
        weight=42,
        near=("sentencepiece", "SentencePiece", "tokenizer.model"),
    ),
)

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

from dsdoctor.api import Checkpoint, Condition, Finding, Level, Scope, Signature, check, fail, ok

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

SIGNATURES = (
    Signature(
        pattern="HeaderTooLarge",
        source="safetensors 0.4.5 _safetensors_rust.cpython-311-x86_64-linux-gnu.so",
        examples=("SafetensorError: Error while deserializing header: HeaderTooLarge",),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="header too large",
        source="safetensors 0.8.0 _safetensors_rust.abi3.so",
        examples=("safetensors_rust.SafetensorError: Error while deserializing: header too large",),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="InvalidHeader",
        source="safetensors 0.4.5 _safetensors_rust.cpython-311-x86_64-linux-gnu.so",
        examples=(
            "safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeaderDeserialization",
        ),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="MetadataIncompleteBuffer",
        source="safetensors 0.4.5 _safetensors_rust.cpython-311-x86_64-linux-gnu.so",
        examples=(
            "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer",
        ),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="incomplete metadata",
        source="safetensors 0.8.0 _safetensors_rust.abi3.so",
        examples=(
            "safetensors._safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file not fully covered",
        ),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="failed finding central directory",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
        ),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"^OSError: \[Errno 22\] Invalid argument$",
        source="torch 2.13.0 libtorch_cpu.so: the end of a truncated archive points behind the file",
        message="A weights file is truncated",
        examples=("OSError: [Errno 22] Invalid argument",),
        not_examples=("OSError: [Errno 22] Invalid argument: '/data/a:b'",),
        near=("torch._C.PyTorchFileReader(",),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="invalid load key, ",
        source="python 3.3-3.14 Modules/_pickle.c",
        examples=("_pickle.UnpicklingError: invalid load key, 'v'.",),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="PytorchStreamReader failed",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=(
            "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
        ),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="unexpected EOF, expected",
        source="torch 2.13.0 libtorch_python.so",
        examples=(
            "RuntimeError: unexpected EOF, expected 3811290 more bytes. The file might be corrupted.",
        ),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="EOFError: Ran out of input",
        source="python 3.3-3.14 Modules/_pickle.c",
        examples=("EOFError: Ran out of input",),
        level=Level.STRONG,
        near=("serialization.py", "torch.load", "load_state_dict", "from_pretrained"),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="deserializing header",
        source="safetensors 0.8.0 _safetensors_rust.abi3.so",
        examples=("SafetensorError: Error while deserializing header: HeaderTooLarge",),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="Weights only load failed",
        source="torch 2.13.0 serialization.py",
        examples=(
            "_pickle.UnpicklingError: Weights only load failed.",
            "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded",
        ),
        near=("Unsupported operand", "invalid load key"),
    ),
    Signature(
        pattern="Unable to load weights from pytorch checkpoint file",
        source="transformers 4.28.1-4.51.3 modeling_utils.py",
        examples=(
            "OSError: Unable to load weights from pytorch checkpoint file for '/m/pytorch_model-00003-of-00007.bin'",
        ),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="without having git-lfs installed",
        source="transformers 4.28.1-4.51.3 modeling_utils.py, modeling_tf_utils.py",
        examples=(
            "OSError: You seem to have cloned a repository without having git-lfs installed.",
        ),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="file might be corrupted",
        source="torch 2.13.0 libtorch_python.so",
        examples=(
            "RuntimeError: unexpected EOF, expected 3811290 more bytes. The file might be corrupted.",
        ),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="Consistency check failed: file should be of size",
        source="huggingface_hub 2.4.0 file_download.py",
        examples=(
            "OSError: Consistency check failed: file should be of size 9976576152 but has size 5733572608 (model-00001.safetensors).",
        ),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="Invalid magic number; corrupt file",
        source="torch 2.13.0 serialization.py",
        examples=("Invalid magic number; corrupt file",),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="archive is corrupted",
        source="torch 2.13.0 libtorch_cpu.so",
        examples=("archive is corrupted",),
        level=Level.STRONG,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"BadZipFile: |InvalidHeaderDeserialization|Unable to open file \(truncated file",
        source=(
            "python 3.3-3.14 Lib/zipfile.py; safetensors 0.3-0.8 safetensors/src/tensor.rs; HDF5 "
            "1.8-1.14 src/H5Fsuper.c"
        ),
        examples=(
            "zipfile.BadZipFile: File is not a zip file",
            "OSError: Unable to open file (truncated file: eof = 96, sblock->base_addr = 0)",
            "safetensors_rust.SafetensorError: Error while deserializing header: InvalidHeaderDeserialization",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^(?:[\w.]{0,80}\.)?\w{0,40}(?:Error|Exception): (?=.{0,200}(?i:\bcorrupt(?:ed)?\b|\btruncated\b|\bincomplete\b)).{0,200}(?i:checkpoint|weights?\b|safetensors|\.bin\b|\.pth?\b|archive|state dict|download)",
        source="any package that says of a file of weights that it is not whole",
        examples=(
            "ValueError: the weights are truncated: 4 of 9 GB",
            "OSError: corrupted checkpoint model-2.safetensors",
            "RuntimeException: corrupt checkpoint",
            "RuntimeError: corrupt .bin",
            "RuntimeError: corrupt .pt",
            "RuntimeError: corrupt archive",
            "RuntimeError: corrupt state dict",
            "RuntimeError: corrupt download",
        ),
        not_examples=("ValueError: corrupted image 12.jpg",),
        level=Level.HINT,
    ),
    Signature(
        pattern="pickle data was truncated",
        source="python 3.3-3.14 Modules/_pickle.c",
        examples=("_pickle.UnpicklingError: pickle data was truncated",),
        not_near=("in spawn_main",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="unpickling stack underflow",
        source="python 3.3-3.14 Modules/_pickle.c",
        examples=("unpickling stack underflow",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="[Ss]torage has wrong (?:byte )?size",
        source="torch 2.13.0 libtorch_python.so",
        examples=("RuntimeError: storage has wrong byte size: expected 4096 got 64",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"sentencepiece_processor\.cc.{0,80}(?:ParseFromArray|LoadFromFile)",
        source="sentencepiece 0.1.8-0.2 src/sentencepiece_processor.cc",
        examples=(
            "sentencepiece_processor.cc ... ParseFromArray",
            "sentencepiece_processor.cc ... LoadFromFile",
        ),
        not_examples=("sentencepiece_processor.cc ...",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="could not parse ModelProto",
        source="sentencepiece 0.1.8-0.2 src/sentencepiece_processor.cc",
        examples=("RuntimeError: Internal: could not parse ModelProto from m/tokenizer.model",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="is not a valid JSON file",
        source="transformers 4.28.1-5.23.0 utils/generic.py, processing_utils.py",
        examples=(
            "OSError: It looks like the config file at 'm/config.json' is not a valid JSON file.",
        ),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="file signature not found",
        source="HDF5 1.8-1.14 src/H5Fsuper.c",
        examples=("file signature not found",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"pen file \(truncated",
        source="HDF5 1.8-1.14 src/H5Fsuper.c, as h5py prints it",
        examples=("pen file (truncated",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"invalid hash value \(expected",
        source="torch 2.13.0 hub.py",
        examples=("invalid hash value (expected",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="checksum does not",
        source="torch 2.13.0 utils/_appending_byte_serializer.py",
        examples=("checksum does not",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"^\w{0,40}Error: .{0,40}[Cc]hecksum mismatch",
        source="programs' own checks of a file that they fetched",
        examples=("RuntimeError: Checksum mismatch",),
        not_examples=("checksum mismatch is tolerated",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"^version https://git-lfs\.github\.com/spec",
        source="git-lfs 2.0-3.6 lfs/pointer.go: a pointer in place of its file",
        examples=("version https://git-lfs.github.com/spec",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="ReadError: unexpected end of data",
        source="python 3.3-3.14 Lib/tarfile.py",
        examples=("tarfile.ReadError: unexpected end of data",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="Bad CRC-32 for file",
        source="CPython 3.11.7 zipfile.py",
        examples=("Bad CRC-32 for file",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"Error -\d while decompressing data",
        source="python 3.3-3.14 Modules/zlibmodule.c",
        examples=("Error -7 while decompressing data",),
        not_examples=("-7 while decompressing data",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern="Not a gzipped file",
        source="CPython 3.11.7 gzip.py",
        examples=("Not a gzipped file",),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"^UnicodeDecodeError: '[\w-]{1,20}' codec can't decode byte|JSONDecodeError: E",
        source="python 3.3-3.14 Objects/exceptions.c UnicodeDecodeError_str, Lib/json/decoder.py",
        examples=(
            "UnicodeDecodeError: 'utf-8' codec can't decode byte 0x80 in position 64: invalid start byte",
            "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        ),
        not_examples=("'utf-8' codec can't decode byte 0x80 in position 64: invalid start byte",),
        level=Level.WEAK,
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
        pattern="malformed smudge|external filter 'git-lfs filter-process' failed|smudge filter lfs failed|git-lfs: command not found",
        source="git 2.0-2.49 convert.c, git-lfs 2.0-3.6 commands/command_smudge.go, bash and dash",
        examples=(
            "Possibly malformed smudge on Windows: see `git lfs help smudge` for more info.",
            "fatal: tokenizer.model: smudge filter lfs failed",
            "external filter 'git-lfs filter-process' failed",
            "git-lfs: command not found",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"RuntimeError: Internal: \w",
        source="sentencepiece 0.1.8-0.2 src/util.cc, util::Status",
        examples=(
            "RuntimeError: Internal: unk is not defined.",
            "RuntimeError: Internal: Not found: tokenizer.model",
        ),
        not_examples=("TfRuntimeError: Internal: ",),
        level=Level.WEAK,
        near=("sentencepiece", "SentencePiece", "tokenizer.model"),
    ),
)

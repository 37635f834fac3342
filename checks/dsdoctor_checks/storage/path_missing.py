"""A path that the run needs does not exist or is empty.

## Why it matters
If the data is not mounted in this container or on this node, the ranks fail only after minutes of
startup. If a mount failed, its directory is empty and the run gets an empty dataset.

## What to do
Mount the file system here, copy the data, or correct the path.

## References
- `dsdoctor check --path DATA`
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchFiles,
    Level,
    Missing,
    MissingPath,
    Observation,
    Place,
    RunNeeds,
    Scope,
    ScriptPaths,
    Signature,
    Storage,
    check,
    fail,
    ok,
    warn,
)

CONDITION = Condition(
    "path-missing",
    id="DSD1502",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.NO_PATH,),
)


@check(CONDITION)
def paths_are_there(
    storage: Storage, files: LaunchFiles | Missing, script: ScriptPaths | Missing, run: RunNeeds
) -> Iterator[Finding]:
    """Checks `TMPDIR`, the model's folder, what the script reads, and each `--path`."""
    if isinstance(script, ScriptPaths) and script.missing:
        yield _not_read(script)
    if isinstance(script, ScriptPaths):
        yield from map(_unusable, script.unusable)
    if isinstance(files, LaunchFiles) and files.model_missing:
        yield _no_model(str(files.model), files.folder)
    elif isinstance(files, LaunchFiles) and files.model_denied:
        yield fail(
            f"the model `{files.model}` of the command cannot be read by this account",
            effect="every rank stops with `Permission denied` when it loads the model",
            hint=f"let its owner run `chmod -R a+rX {shlex.quote(str(files.model))}`, or copy it",
            model=files.model,
        )
    elif isinstance(files, LaunchFiles) and files.model_base:
        yield fail(
            f"the adapter `{files.model}` of the command was trained on `{files.model_base}`, which"
            " does not exist here",
            effect="every rank fails when it loads the base model",
            hint="set `base_model_name_or_path` in its `adapter_config.json` to where that model is",
            model=files.model,
            base=files.model_base,
        )
    if run.batch_folder:
        yield fail(
            f"the folder `{run.batch_folder}`, in which Slurm should write the job's output, does not"
            " exist",
            effect="the job ends as soon as it starts, and leaves no output",
            hint=f"run `mkdir -p {shlex.quote(run.batch_folder)}` before `sbatch`",
            path=run.batch_folder,
        )
    for place in storage.places:
        if place.variable == "TMPDIR" and place.kind is None and not (place.error or place.hung):
            yield _no_temporary_folder(place)
    asked = [place for place in storage.places if place.purpose == "--path"]
    for place in asked:
        if place.hung:
            continue  # reported by `file-system-hangs`
        evidence: dict[str, Any] = {
            "path": place.path,
            "mount": place.mount,
            "file_system": place.file_system,
        }
        if place.error is not None:
            yield fail(
                f"`{place.path}` (`--path`) cannot be read: {place.error}",
                effect="the run finds no data",
                hint="grant this user read access",
                **evidence,
            )
        elif place.kind is None:
            yield fail(
                f"`{place.path}` (`--path`) does not exist; the nearest existing directory is "
                f"`{place.parent}`",
                effect="the run finds no data",
                hint="mount or copy it here, or correct the path",
                parent=place.parent,
                **evidence,
            )
        elif place.empty:
            yield warn(
                f"`{place.path}` (`--path`) is an empty {'directory' if place.kind == 'dir' else place.kind}",
                effect="the run finds no data",
                hint=f"check that its file system is mounted (`findmnt -T {shlex.quote(place.path)}`)",
                **evidence,
            )
        else:
            yield ok(kind=place.kind, **evidence)


def _no_model(model: str, folder: str) -> Finding:
    return fail(
        f"the model `{model}` of the command does not exist"
        + ("" if model.startswith("/") else f" in `{folder}`"),
        effect="every rank fails when it loads the model",
        hint="correct the path, or download or mount the model there",
        model=model,
    )


def _not_read(script: ScriptPaths) -> Finding:
    """The first file that the script does not find; it does not come to the others."""
    first, others = script.missing[0], len(script.missing) - 1
    more = {0: "", 1: "; another file is missing too"}.get(
        others, f"; {others} others are missing too"
    )
    return fail(
        f"`{first.path}` ({first.read_by}) does not exist"
        + ("" if first.path.startswith("/") else f" in `{script.folder}`")
        + more,
        effect=f"every rank of `{script.script}` stops when it reads this path",
        hint="correct the path, or copy or mount the file there",
        script=script.script,
        missing=[one.path for one in script.missing],
    )


def _unusable(file: MissingPath) -> Finding:
    """A file of data that is empty or may not be read."""
    if file.why == "denied":
        return fail(
            f"`{file.path}` ({file.read_by}) cannot be read by this account",
            effect="every rank stops with `Permission denied` when it reads the data",
            hint=f"let its owner run `chmod a+r {shlex.quote(file.path)}`, or copy it",
            path=file.path,
        )
    return warn(
        f"`{file.path}` ({file.read_by}) is an empty file",
        effect="the run finds no data",
        hint="write or copy the data again, or correct the path",
        path=file.path,
    )


def _no_temporary_folder(place: Place) -> Finding:
    literal = place.path.startswith("~")
    return warn(
        f"`TMPDIR` is `{place.path}`, which does not exist",
        effect="nvcc fails there, and Python and gcc write to `/tmp` instead",
        hint="write `$HOME` in place of `~`, which no program expands in a variable (the shell does so"
        " only without quotes), and create the directory"
        if literal
        else f"create it (`mkdir -p {shlex.quote(place.path)}`), or correct or unset `TMPDIR`",
        path=place.path,
        variable=place.variable,
    )


HINT = "correct the path, or mount or copy what it should contain"

SIGNATURES = (
    Signature(
        pattern=r"nvcc fatal\s{1,4}: Could not open output file '(?P<path>/[^']{1,300}?)/tmpxft_",
        source="nvcc 13.5, started with a `TMPDIR` that does not exist",
        message="nvcc cannot write its temporary files to `{path}` (`TMPDIR`)",
        hint="create the directory that `TMPDIR` names, or unset `TMPDIR`",
        examples=(
            "nvcc fatal   : Could not open output file '/scratch/me/tmp/tmpxft_00000b3a_00000000-1'",
        ),
        not_examples=("nvcc fatal   : Could not open output file '/w/build/kernel.o'",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"OSError: (?P<path>/[^\s']{1,300}) does not appear to have a file named (?P<file>\w[\w.]{0,80}\w)",
        source="transformers 4.20-5.0 utils/hub.py",
        message="`{path}` contains no `{file}`",
        examples=(
            "OSError: /data/model does not appear to have a file named config.json. Checkout 'https://huggingface.co//data/model/tree/None' for available files.",
        ),
        not_examples=("OSError: org/model does not appear to have a file named config.json.",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"RuntimeError: Found 0 files in subfolders of: (?P<path>\S.{0,300})$|FileNotFoundError: Couldn't find any class folder in (?P<folder>\S.{0,300}?)\.$",
        source="torchvision 0.2-0.8 and 0.9-0.28 datasets/folder.py",
        message="The dataset's folder contains no images in subfolders, one for each class, as `ImageFolder` expects",
        hint="correct the path of the dataset: in it, each class has a folder with its images",
        examples=(
            "RuntimeError: Found 0 files in subfolders of: data/train",
            "FileNotFoundError: Couldn't find any class folder in /data/x/train.",
        ),
        not_examples=(
            "RuntimeError: Found 0 files in subfolders of: ",
            "FileNotFoundError: Couldn't find any class folder in ",
        ),
    ),
    Signature(
        pattern=r"Dataset not found(?: \S{1,4})?, (?:nonexistent|missing) paths?:? \[?'(?P<path>[^']{1,300})'",
        source="ultralytics yolov5 3.0-7.0 and yolov7 utils/general.py check_dataset; ultralytics 8.0-8.3 data/utils.py",
        message="the dataset's folder `{path}` does not exist",
        examples=(
            "WARNING: Dataset not found, nonexistent paths: ['/data/coco/val2017']",
            "Dataset not found ⚠️, missing paths ['/data/x/images/val']",
            "Dataset not found, missing path '/data/x/images/val'",
        ),
        not_examples=("Dataset not found, nonexistent paths: []",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"OSError: Error no file named (?P<file>[\w.]{1,80}).{0,200} in directory (?P<path>[^\s']{1,300}?)\.?$",
        source="transformers 5.23.0 modeling_utils.py; earlier releases list more names",
        message="`{path}` contains no weights file, neither `{file}` nor one with another usual name",
        examples=(
            "OSError: Error no file named pytorch_model.bin, model.safetensors, tf_model.h5 or flax_model.msgpack found in directory /data/model.",
            "OSError: Error no file named model.safetensors found in directory /data/model",
            "OSError: Error no file named pytorch_model.bin, model.safetensors, tf_model.h5, model.ckpt.index or flax_model.msgpack found in directory out.",
        ),
        not_examples=("OSError: Error no file named model.safetensors found in org/model.",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"OSError: Can't load (?:the configuration of|[a-z ]{1,24} for) '(?P<path>(?:/|\.{1,2}/|~)[^']{1,300})'",
        source="transformers 4.0-5.24 utils/hub.py, modeling_utils.py, tokenization_utils_base.py, configuration_utils.py",
        message="`{path}` does not exist here, or does not contain the files that transformers loads from it",
        examples=(
            "OSError: Can't load tokenizer for '/data/model'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name.",
            "OSError: Can't load the configuration of './out/checkpoint-500'. If you were trying to load it from 'https://huggingface.co/models'",
            "OSError: Can't load the model for '../models/x'.",
            "OSError: Can't load tokenizer for '~/model'.",
        ),
        not_examples=("OSError: Can't load tokenizer for 'bert-base-chinese'.",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"ValueError: Can't find '(?P<file>adapter_config\.json)' at '(?P<path>/[^']{1,300})'",
        source="peft src/peft/config.py, commit 0397041",
        message="`{path}` contains no `{file}`",
        examples=("ValueError: Can't find 'adapter_config.json' at '/data/out/checkpoint-500/'",),
        not_examples=("ValueError: Can't find 'adapter_config.json' at 'org/model'",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"ValueError: (?:Instance|Class) images root doesn't exists?\.",
        source="diffusers 0.3-0.35 examples/dreambooth/train_dreambooth.py and the scripts made from it",
        message="A folder of pictures to train on does not exist",
        hint="correct `--instance_data_dir` or `--class_data_dir`: the folder must exist on this machine, or in this container",
        examples=(
            "ValueError: Instance images root doesn't exists.",
            "ValueError: Class images root doesn't exist.",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"RuntimeError: Parent directory (?P<path>.{1,300}) does not exist\.",
        source="torch 1.12-2.13 caffe2/serialize/inline_container.cc",
        message="`torch.save` cannot write to the directory `{path}`, which does not exist",
        hint="create the directory before the checkpoint is saved, on every node that writes one; if the run creates it, check that its file system is mounted and writable",
        examples=(
            "RuntimeError: Parent directory c/step3 does not exist.",
            "RuntimeError: Parent directory /mnt/out/global_step10 does not exist.",
        ),
        not_examples=("RuntimeError: Parent directory ok",),
    ),
    Signature(
        pattern=r"FileNotFoundError: Couldn't find (?:a dataset script at (?P<path>/\S{1,300}) or any data file|any data file at (?P<folder>/\S{1,300}?)\.(?:\s|$))",
        source="datasets 1.18-4.4 load.py",
        message="`load_dataset` finds no data at the path that was passed",
        examples=(
            "FileNotFoundError: Couldn't find a dataset script at /data/train/train.py or any data file in the same directory.",
            "FileNotFoundError: Couldn't find any data file at /data/train.",
        ),
        not_examples=("FileNotFoundError: Couldn't find any data file at org/data.",),
        level=Level.STRONG,
    ),
    Signature(
        # a name is looked up on the hub only where no such folder is here
        pattern=r"(?:HFValidationError: Repo id must (?:be in the form 'repo_name' or 'namespace/repo_name'|use alphanumeric chars.{1,140})|OSError: Incorrect path_or_model_id|\bInvalid repository ID or local directory specified): '(?P<path>(?:/|\.{1,2}/|~)[^']{1,300})'",
        source="huggingface_hub 0.14-2.4 utils/_validators.py; transformers 4.36-5.24 utils/hub.py; vllm 0.10-0.25 transformers_utils/config.py",
        message="`{path}` does not exist, so it was interpreted as the name of a repository",
        examples=(
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/data/model'. Use `repo_type` argument if needed.",
            "huggingface_hub.utils._validators.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '../models/llama'. Use `repo_type` argument if needed.",
            "HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '~/models/7b/llama'.",
            "huggingface_hub.errors.HFValidationError: Repo id must use alphanumeric chars, '-', '_' or '.'. The name cannot start or end with '-' or '.' and the maximum length is 96: './llama'.",
            "HFValidationError: Repo id must use alphanumeric chars or '-', '_', '.', '--' and '..' are forbidden, '-' and '.' cannot start or end the name, max length is 96: '../llama'.",
            "OSError: Incorrect path_or_model_id: './models/llama'. Please provide either the path to a local folder or the repo_id of a model on the Hub.",
            "  Value error, Invalid repository ID or local directory specified: '/data/models/llama'.",
        ),
        not_examples=(
            "HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': 'a/b/c'.",
            "HFValidationError: Repo id must use alphanumeric chars, '-', '_' or '.'. The name cannot start or end with '-' or '.' and the maximum length is 96: 'my model'.",
            "OSError: Incorrect path_or_model_id: 'my model'.",
            "  Value error, Invalid repository ID or local directory specified: 'org/llama'.",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"error: (?:\w{1,40}: )?Could not open (?:stdout|stderr|stdin|output|error) file (?P<path>\S{1,300}): No such file or directory",
        source="slurm 2.2-25.11 src/slurmd/slurmstepd/io.c, mgr.c",
        message="The directory of the job's output `{path}` does not exist on the node",
        hint="create the directory before you submit: Slurm does not create it; it must be on a file system that the node mounts",
        examples=(
            "slurmstepd: error: Could not open stdout file /home/me/logs/1.out: No such file or directory",
            "slurmstepd: error: Could not open stderr file /home/me/logs/1.err: No such file or directory",
            "slurmstepd: error: Could not open stdin file /home/me/in: No such file or directory",
            "slurmstepd: error: Could not open output file logs/1.out: No such file or directory",
            "slurmstepd: error: Could not open error file logs/1.err: No such file or directory",
        ),
        not_examples=("error: 1.out: No such file or directory",),
        level=Level.STRONG,
        masks=("slurm-step-not-started",),
    ),
    Signature(
        pattern=r"error: couldn't chdir to `(?P<path>[^']{1,300})': No such file or directory",
        source="slurm 1.0-25.11 src/slurmd/slurmstepd/mgr.c",
        message="The job's working directory `{path}` does not exist on the node, so it runs in `/tmp`",
        hint="submit from a directory on a file system that the nodes mount, or pass `--chdir`",
        examples=(
            "slurmstepd: error: couldn't chdir to `/home/me/x': No such file or directory: going to /tmp instead",
        ),
        not_examples=("cd: `/home/me/x': No such file or directory",),
        masks=("launch-file-missing",),
        goes_on=True,
    ),
    Signature(
        pattern=r"\bNot found: \x22(?P<path>[^\x22]{1,300})\x22: No such file or directory Error #2",
        source="sentencepiece 0.1.8-0.2 src/filesystem.cc",
        message="The tokenizer's file `{path}` does not exist",
        examples=(
            'OSError: Not found: "/w/models/m7/tokenizer.model": No such file or directory Error #2',
        ),
        not_examples=('found "a": No such file or directory Error #2',),
        level=Level.STRONG,
    ),
)

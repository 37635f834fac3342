"""A killed build left its lock, and the next job waits for it forever.

## Why it matters
Up to 2.13, torch guards a build folder with a file named `lock`. A killed build leaves it behind. The next
job waits for it without a time limit or a message, after `Using … as PyTorch extensions root`.

Since 2.14, torch uses a kernel lock (`flock`) on that file, which ends with the process that holds
it. The file itself stays after each build and means nothing there. If an older torch shares the
cache folder (the same Python and CUDA version, or the same `TORCH_EXTENSIONS_DIR`), it does wait
for a file that a newer one left.

## What to do
Delete the lock, or the op's whole folder, while no job is building there. Set another
`TORCH_EXTENSIONS_DIR` for each environment if an older and a newer torch share the folder.

## References
- torch/utils/file_baton.py, torch/utils/cpp_extension.py
- https://github.com/huggingface/transformers/issues/26015
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DeepSpeedLive,
    ExtensionCache,
    Finding,
    Level,
    Limits,
    Missing,
    Observation,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    TracebackRule,
    check,
    fail,
    ok,
    skip,
    warn,
)

from ._util import needed_ops, ops_of_ranks

CONDITION = Condition(
    "jit-build-stale-lock",
    id="DSD406",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("remove-stale-lock",),
    names=(Observation.BUILD_WAITS,),
)


class LockLimits(Limits, frozen=True, kw_only=True):
    """When a lock counts as stale.

    Attributes:
        max_age_min: age in minutes above which a lock without a running build is stale.
    """

    max_age_min: float = 10


def age(minutes: int) -> str:
    """An age in its largest unit.

    >>> age(59), age(60), age(47 * 60), age(3 * 24 * 60)
    ('59 min', '1 h', '47 h', '3 days')
    """
    hours = minutes // 60
    if hours >= 48:  # noqa: PLR2004  # two days
        return f"{hours // 24} days"
    return f"{hours} h" if hours else f"{minutes} min"


#: Folders of the default root, one for each Python and accelerator (torch 1.8-2.15
#: utils/cpp_extension.py, `_get_build_directory`).
_BUILD_FOLDER = re.compile(r"/py\d+t?_(cpu|cu\d+)/[^/]+/lock$")


def _is_of_another_torch(lock: str, torch: TorchBuild) -> bool:
    """Whether a lock is in the folder of a torch for another CUDA version, or for none.

    >>> _is_of_another_torch("/c/py311_cu132/cpu_adam/lock", TorchBuild(version="2.13.0+cpu"))
    True
    """
    found = _BUILD_FOLDER.search(lock)
    if found is None or torch.hip is not None:
        return False
    return found[1] != ("cpu" if torch.cuda is None else "cu" + torch.cuda.replace(".", ""))


@check(CONDITION)
def locks_are_alive(
    cache: ExtensionCache,
    limits: LockLimits,
    run: RunNeeds,
    torch: TorchBuild | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    live: DeepSpeedLive | Missing,
) -> Iterator[Finding]:
    """Judges the age of each lock that belongs to no running build.

    The lock of an op that the config does not need is a warning: this run does not wait for it.
    """
    if cache.locks and (isinstance(torch, Missing) or torch.version is None):
        yield skip("torch's version is not known, and not every one waits for files named `lock`")
        return
    if isinstance(torch, TorchBuild) and torch.version and not torch.waits_for_lock_files:
        yield ok(f"torch {torch.version} does not wait for files named `lock`")
        return
    for lock in cache.locks:
        minutes = int(lock.age_seconds // 60)
        evidence = {"lock": lock.path, "op": lock.op, "age_min": minutes}
        if isinstance(torch, TorchBuild) and _is_of_another_torch(lock.path, torch):
            yield ok(f"another build of torch left the lock of `{lock.op}`", **evidence)
        elif lock.builders:
            yield ok(f"`{lock.op}` is being built", **evidence, builders=list(lock.builders))
        elif lock.age_seconds <= limits.max_age_min * 60:
            yield ok(f"the lock of `{lock.op}` is recent", **evidence)
        else:
            needed = {*ops_of_ranks(run, deepspeed, live), *needed_ops(run.config or {})}
            spared = run.config is not None and lock.op not in needed
            yield (warn if spared else fail)(
                f"`{lock.path}` is {age(minutes)} old and no process is building there, but a lock "
                f"without a build should be at most {limits.max_age_min:g} min old",
                effect=f"a job that needs `{lock.op}` hangs without a message",
                hint=f"run `rm {lock.path}`",
                **evidence,
                needed=not spared,
                max_age_min=limits.max_age_min,
            )


HINT = "remove the file `lock` from the folder of the op while no build is running"

SIGNATURES = (
    Signature(
        pattern=r"baton\.wait\(\)",
        source="python 3.3-3.14 Lib/traceback.py: a line of torch 1.0-2.13 utils/cpp_extension.py",
        examples=("    baton.wait()",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"wait \(torch/utils/file_baton\.py:\d+\)",
        source="py-spy 0.3-0.4: a stack dump of torch 1.0-2.13 utils/file_baton.py",
        examples=("wait (torch/utils/file_baton.py:42)",),
        not_examples=("wait (torch/utils/file_baton.py: is fine",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"file_baton\.py\S* line \d+, in wait",
        source=(
            "python 3.3-3.14 Lib/traceback.py, Python/traceback.c (faulthandler), for torch "
            "1.0-2.13 utils/file_baton.py"
        ),
        examples=('  File "/x/torch/utils/file_baton.py", line 42, in wait',),
        not_examples=("torch/utils/file_baton.py is part of torch",),
        level=Level.STRONG,
    ),
    Signature(
        # in `try_acquire`, the folder could not be written to
        pattern=r"file_baton\.py\x22, line \d{1,4}(?!\d|, in try_acquire)",
        source=(
            "python 3.3-3.14 Lib/traceback.py, Python/traceback.c (faulthandler), for torch "
            "1.0-2.13 utils/file_baton.py"
        ),
        examples=('  File "/x/torch/utils/file_baton.py", line 42, in wait',),
        not_examples=('  File "/x/torch/utils/file_baton.py", line 28, in try_acquire',),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Waited on lock file",
        source="torch 2.13.0 utils/file_baton.py",
        examples=(
            'file_baton.py:51: UserWarning: Waited on lock file "/c/torch_extensions/cpu_adam/lock" for 300 seconds.',
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="as PyTorch extensions root",
        source="torch 2.13.0 utils/cpp_extension.py",
        examples=(
            "Using /c/torch_extensions/py310_cu118 as PyTorch extensions root...",
            "Using /root/.cache/torch_extensions as PyTorch extensions root...",
        ),
        level=Level.WEAK,
        final=True,
    ),
    Signature(
        pattern=r"Errno (?:2|17|116)\].{0,120}torch_extensions\S*/lock\b|torch_extensions\S*\.so: (?:file too short|invalid ELF header|cannot read file data)",
        source=(
            "python 3.3-3.14 Objects/exceptions.c, for torch 1.0-2.13 utils/file_baton.py; glibc "
            "2.17-2.41 elf/dl-load.c"
        ),
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: '/c/torch_extensions/py38_cu113/utils/lock'",
            "FileExistsError: [Errno 17] File exists: '/c/torch_extensions/py311_cu121/fused_adam/lock'",
            "OSError: [Errno 116] Stale file handle: '/nfs/torch_extensions/py39_cu118/cpu_adam/lock'",
            "ImportError: /c/torch_extensions/py38_cu113/utils/utils.so: file too short",
        ),
        not_examples=(
            "ImportError: /c/torch_extensions/py38_cu113/utils/utils.so: undefined symbol: _ZN3c10",
            "FileNotFoundError: [Errno 2] No such file or directory: '/c/torch_extensions/py38/utils/utils.cpp'",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"ninja: error: loading 'build\.ninja': No such file|needed by '\S+\.o', missing and no known rule to make it",
        source="ninja 1.8-1.13 src/ninja.cc, src/graph.cc",
        examples=(
            "ninja: error: loading 'build.ninja': No such file or directory",
            "ninja: error: '/x/deepspeed/ops/csrc/adam/cpu_adam.cpp', needed by 'cpu_adam.o', missing and no known rule to make it",
        ),
        not_examples=("by 'cpu_adam.o', missing and no known rule to make it",),
        near=("torch_extensions", "deepspeed", "cpp_extension"),
        masks=("cpu-adam-unbuilt",),
    ),
    # Megatron, ColBERT and torch's own words before they wait for the lock
    Signature(
        pattern=r"> compiling and loading fused kernels \.\.\.\s*$|Loading \w+_cpp extension \(set |Building extension module \w+\.\.\.\s*$|Emitting ninja build file \S+/build\.ninja\.\.\.",
        source="torch 1.0-2.13 utils/cpp_extension.py",
        examples=(
            "> compiling and loading fused kernels ...",
            "[Aug 19, 14:22:03] Loading packbits_cpp extension (set COLBERT_LOAD_TORCH_EXTENSION_VERBOSE=True for more info)...",
            "Building extension module cpu_adam...",
            "Emitting ninja build file /c/torch_extensions/py310_cu121/utils/build.ninja...",
        ),
        not_examples=(
            "packbits_cpp extension (set COLBERT_LOAD_TORCH_EXTENSION_VERBOSE=True for more info)...",
            "Emitting ninja build file /c/torch_extensions/py310_cu1",
        ),
        level=Level.WEAK,
        final=True,
    ),
    Signature(
        pattern=r"\.o: file not recognized: [Ff]ile (?:format|truncated)",
        source="binutils 2.20-2.44 ld/ldlang.c",
        examples=(
            "x/build/softmax.o: file not recognized: File format not recognized",
            "/usr/bin/ld: fused_adam.o: file not recognized: file truncated",
        ),
        level=Level.WEAK,
        masks=("cpu-adam-unbuilt",),
    ),
)

TRACEBACK_RULES = (
    TracebackRule(
        file="torch/utils/file_baton.py",
        function="wait",
        kinds=("KeyboardInterrupt", "SignalException", ""),
        source="torch 1.10-2.13 utils/file_baton.py",
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/torch/utils/file_baton.py", line 7, in wait\nKeyboardInterrupt: x',
    ),
)

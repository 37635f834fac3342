"""What the last lines of a log say about how the run ended."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.errors import EXCEPTION, FENCE, KEPT_ERRORS, TRACEBACK
from dsdoctor.logs.frames import frames_of
from dsdoctor.logs.hits import Scan
from dsdoctor.logs.marks import FATAL_MARKS, HYDRA_FAILED, SLURM_GOES_ON, WORDS, mark_pattern
from dsdoctor.logs.progress import step_of
from dsdoctor.logs.tool_reports import Report, report_in

#: Lines at the end of a log that are searched for the last frame of a cut-off traceback.
CUT_LINES = 3
#: A frame that is cut off in its own line.
PART_OF_FRAME = lazy(
    r"\s+File \"[^\"]{0,400}\"?(?:, ?(?:line ?\d{0,9},?)?)?\s*$"
    r"|Cell In ?\[\d{1,9}\], \[?line \d{1,9}"  # of a notebook, whose frames have no function
)
#: Source lines that IPython prints with their numbers below a frame; VS Code makes links of them.
NUMBERED = lazy(r"\s*(?:-{1,9}> ?)?(?:\d{1,6}|\[\d{1,6}\]\([^\s()]{1,800}\))(?:\s|$)")
#: Those that rich (10.0-14.1 traceback.py) prints below a frame, the mark of the line that was
#: called, and the empty rows of its box.
POINTER = "❱"
BOXED = lazy(r"\s*[│|]\s+(?:(?:❱\s+)?\d{1,6}\s[│|\s]|[│|]\s*$)")
#: How native libraries report a failure; a log that ends with one is not clean. RCCL (2.16-2.30
#: src/init.cc) also warns of what it misses, and goes on, as NCCL (2.2-2.18 src/misc/ibvwrap.cc)
#: does without InfiniBand. CANN, below torch_npu, prints a code:
#: level, component (EZ: AI Core, EH: runtime, EI: HCCL …) and number. oneCCL (2021-2022
#: common/log), UCX (1.6-1.18 ucs/debug/log.c), PMIx (3-5) and Open MPI (4-5) name their level; PMIx
#: reports locks of its store (dstore, gds) in runs that succeed. Compilers print the place of an
#: error first (GCC 4-15, Clang 3-20, nvcc 10-13); the Neuron compiler reports through XLA; a client
#: of torch's TCPStore (2.4-2.13 distributed/c10d/TCPStore.cpp) that waited in vain tries again.
#: Paddle's launcher (1.8-3.3 distributed/utils) and Hydra (1.0-1.3 _internal/utils.py) name the
#: failed run, glog (0.3-0.7 logging.cc) prefixes what it aborts with by an F. Slurm's commands and
#: apptainer (1.0-1.4 pkg/sylog) end with the line that they print of their own failure; so do
#: `qsub` of PBS (OpenPBS 14-23, Torque 4-6), Open MPI's TCP (3-5 opal/mca/btl/tcp), TensorRT
#: (8-10) and TensorRT-LLM (0.5-1.2, in C++ and in Python), ggml (llama.cpp b3000-b9000
#: ggml/src/ggml-cuda), gdb (7-16) of the calls of a process, the OpenMP of LLVM and Intel, MKL,
#: SageMaker (sagemaker 1-2, sagemaker-training 3-5), MPICH and Intel MPI (3.0-4.2 src/pm/hydra,
#: src/mpi/errhan). Ray and glog print the check that failed, an agent of W&B's sweeps (0.10-0.25
#: agents/pyagent.py) the run, the Neuron runtime (2.0-2.29) its
#: part and level, DeepSpeed's autotuner (0.5-0.19 autotuning/autotuner.py) that no trial succeeded.
#: torch (1.8-2.13 c10/cuda/CUDAException.cpp) adds three lines to any error of the accelerator, and
#: its launcher (1.9-2.13 elastic/multiprocessing/api.py) says that it ends the other workers. pip
#: (22-25 cli/subprocess.py) ends what it says of another program with a note.
LAST_WORDS = lazy(
    r"(?:^|[\s\d]] )(?!ras/)(?:[\w/.]{1,80}:\d{1,6} )?NCCL WARN"
    r" (?!Missing \"|LL cutoff points|Failed to open libibverbs\.so)"
    r"|\[[EF]\d{3,4}[ \d:.]+ \S+\.(?:cpp|cc|cu):|\bCaught signal \d|[Rr]eceived SIGTERM\b"
    r"|^(?:(?!\s*(?:Last )?State:).*[\]\s])?Terminated$"
    r"|^\s*(?:\w{3,60}\()?E[A-Z1-9]\d{4}\)?(?:\[PID: ?\d{1,9}\]|: )"
    r"|\|CCL_ERROR\| |\bUCX  ERROR +\S|\bpml_ucx\.c:\d{1,5} {1,2}Error: "
    r"|\] PML \w{1,20} cannot be selected$"
    r"|\b(?:PMIX|OPAL|ORTE|PRTE) ERROR: .{1,80} in file (?!\S*(?:gds_|dstore_))\S{1,200} at line \d"
    r"|^\S{1,400}\.(?:c|cc|cpp|cxx|cu|cuh|h|hpp|hip)"
    r"(?::\d{1,7}:\d{1,7}|\(\d{1,7}\)): (?:fatal )?error: "
    r"|\bneuronx?-cc compilation failed|\bTCP client failed to connect/validate to host \S"
    r"|\bABORT!!! Out of all \d{1,6} trainers\b|^Error executing job with overrides: "
    r"|\bsagemaker-(?:training-toolkit|containers) ERROR |\bError for Training job \S+: Failed\."
    # the shell's words for other signals (glibc's strsignal), and BSD's and Windows' `assert`
    r"|^(?:Hangup|Alarm clock|User defined signal [12]|CPU time limit exceeded"
    r"|(?:Trace/breakpoint trap|Bad system call|Quit) +\(core dumped\))$"
    r"|^Assertion failed: .{1,400}, file \S{1,300}, line \d|^libgcc_s\.so\.1 must be installed for "
    r"|^OMP: Error #\d{1,5}: |^(?:Intel )?MKL FATAL ERROR: |^Aborted$"
    r"|^\[TRT\] \[E\] |^\[TensorRT-LLM\]\[ERROR\] |^\[TRT-LLM\] \[(?:RANK \d{1,6}\] \[)?E\] "
    r"|^ ?(?:CUDA|ROCm|MUSA) error: \S|^#\d{1,3} {1,2}0x[0-9a-f]{8,16} in \S"
    r"|^qsub: (?!waiting for job |job )\S"
    r"|\[btl_tcp_endpoint\.c:\d{1,5}:\w{1,60}\] (?:received unexpected|connect\(\) to \S+ failed)"
    r"|^(?:srun|sbatch|salloc): (?:error: |fatal: |Job step aborted\b|Force Terminated\b)"
    r"|^FATAL:   \S|\.(?:cc|cpp|h):\d{1,7}[:\]]{1,2} +Check failed: |^Abort\(\d{1,10}\) on node "
    r"|\bMPI job will now abort\b|^Your MPI job is now going to abort; sorry\.$"
    r"|\bFatal error in (?:PMPI|MPI|internal)_"
    r"|^\[(?:mpiexec|proxy:\S{1,20})@\S{1,100}\] .{0,300}\b(?:unable|error|failed|assert)\b"
    r"|\bNo optimal DeepSpeed configuration found by autotuning\b"
    r"|^wandb: ERROR (?:Run \S{1,60} errored: |Detected \d{1,6} failed runs in the first )"
    r"|^\d{4}-\w{3}-\d\d \d\d:\d\d:\d\d\.\d{1,9} +\d{1,9}:\d{1,9} +ERROR +\w{2,10}:\w{1,80} "
    r"|\bSending process \d{1,9} closing signal SIG|\bReceived \S{1,20} death signal, shutting down"
    r"|^note: This error originates from a subprocess\b"
    r"|: finished with status 'error'$"  # pip 10-26 cli/spinners.py, without a terminal
    r"|^libc\+\+abi(?:\.dylib)?: terminat"
    r"|\bError reported to Coordinator: \S"  # tensorflow 1-2 training/coordinator.py
    r"|^(?:CUDA|HIP) kernel errors might be |^For debugging consider passing (?:CUDA|HIP|AMD)_"
    r"|^Compile with `?TORCH_USE_(?:CUDA|HIP)_DSA"
    r"|^F\d{4}(?:\d{4})? \d\d:\d\d:\d{2,12}\.\d{1,9} +\d{1,9} \S{1,200}:\d{1,7}\] "
)
#: Those that only say that something ended, and marks of a death that say more.
ENDED = lazy(r"^(?:srun|sbatch|salloc): |Terminated$|[Rr]eceived SIGTERM|HYDRA_FULL_ERROR")
TELLING = (
    "pbs-killed",
    "lsf-reason",
    "lsf-signal",
    "mpi-daemon",
    "mpi-abort",
    "mpirun-signal",
    "run-pl",
    "ray-start",
    "pod-exit",
)
#: What NCCL prints about peers that leave, and the Trainer's summary, after which they may leave.
PEERS, SUMMARY = "NCCL WARN ", "'train_runtime'"
#: What shells (bash 3-5, dash 0.5) say of a mistake in the script itself: it does not parse, or an
#: option or a setting begins a line, as the line above it lacks its backslash.
_SHELLS_SYNTAX = lazy(
    r": (?:line )?\d{1,7}: (?:[Ss]yntax error\b|unexpected EOF while looking for matching"
    r"|(?:--?[A-Za-z][\w-]{0,60}|[\w.]{1,60}(?==))\S{0,200}: (?:command )?not found$)"
)
#: A frame in the stack of a C++ exception (torch 1.8-2.13 c10/util/Backtrace.cpp).
NATIVE_FRAME = lazy(r"\s*frame #\d{1,3}: \S.{0,1000}?\+ 0x[0-9a-f]")
#: What stands above it, and a warning that has such a stack (glog's prefix; c10d since 2.4).
RAISED, WARNED = "Exception raised from ", lazy(r"(?:\[rank\d{1,6}\]:)?\[W\d{3,4} ")
#: One in the stack that a debugger prints: gdb 7-16 (gdb/stack.c), of its own or as ggml calls it
#: (llama.cpp b3000-b9000 ggml/src/ggml.c), and lldb 10-20.
NATIVE_STACK = lazy(
    r"#\d{1,3} {1,2}0x[0-9a-f]{8,16} in \S|\s*(?:\* )?frame #\d{1,3}: 0x[0-9a-f]{8,16} \S"
)
#: What a logger says at the level of an error.
LOGGED = lazy(r"\b(?:ERROR|CRITICAL)\b[\s\]:|-]+(?P<said>[A-Za-z].{9,400})$")
#: Last lines that are searched.
LAST_LINES = 8
GOES_ON = lazy(f"slurmstepd{SLURM_GOES_ON}")
#: How a script around the run ends its log if the run failed, and how a summary of tests ends.
FAILED = lazy(
    r"(?i)(?<!not )(?<!never )\bfailed\W{0,3}$|失败\W{0,3}$"
    r"|^\W{0,8}(?:[a-z]+ ){1,3}failed: (?=.{0,120}[a-z]{3})"
)
COUNT = lazy(r"(?i)(?:^|[,:;(=|])\s{0,4}\d{1,9} failed\W{0,3}$")
#: What argparse (Python 2.7-3.14) prints before it says what it rejects, and how its lines go on.
USAGE = lazy(r"^usage: \S.{0,300}\[-h\]")
_OPTIONS = lazy(r"^\s*[\[{(|.]|^[A-Z_]{1,60}\]|^\s{7,}\S")
_NO_REASON = "the parser of the script rejects the command, and says why below that line"
#: A line without one is a rule below the last line.
LETTER = lazy(r"[^\W_]")
#: Last characters of a line that are searched.
SHORT = 200
#: How an installer ends its log after success (pip 1.0-25 commands/install.py; build 0.1-1.2
#: __main__.py), and what pip prints about itself below that.
INSTALLED = lazy(r"^Successfully (?:built|installed) \S")
NOTICE = lazy(r"^\[notice\]|^WARNING: You are using pip|^You should consider upgrading")
#: What products print last of a training that succeeded: Lightning (1.6-2.5 loops/fit_loop.py), the
#: Trainer of transformers (3-5 trainer.py), fairseq (0.9-0.12 fairseq_cli/train.py), verl (0.2-0.6
#: trainer/ppo/ray_trainer.py), torch's elastic agent (1.9-2.15 elastic/agent/server/api.py), Ray
#: (2.0-2.54 train, dashboard/modules/job/cli.py), SageMaker (sagemaker-training 3-4
#: sagemaker_training/trainer.py).
SUCCEEDED = lazy(
    r"`Trainer\.fit` stopped: `max_(?:epochs|steps)=-?\d{1,9}` reached\.$"
    r"|^Training completed\. Do not forget to share your model on huggingface\.co/models =\)"
    r"|\| INFO \| fairseq_cli\.train \| done training in \d"
    r"|\bFinal validation metrics: |\] worker group successfully finished\. Waiting "
    r"|^Job '\S{1,100}' succeeded$|^Training completed after \d{1,9} iterations at \d"
    r"|\bReporting training SUCCESS$"
)
#: What scripts in Chinese print after a training. A shell script prints it whatever became of the
#: program, so it proves nothing where a program reports that it failed.
SCRIPTS_END = lazy(
    r"^\W{0,8}训练(?:结束|完成)(?!后|时|前)"
    r"(?!.{0,40}(?:退出码|返回码|状态码|exit code)\W{0,3}(?!0\b)-?\d)"
)
BEGINNING = lazy(r"real_accelerator\.py|PyTorch extensions root")


def is_changed(scan: Scan) -> bool:
    """Whether the last lines contain drawn boxes or words of other languages."""
    return not all(text.isascii() for _, text in scan.tail)


def only_began(scans: Sequence[Scan]) -> bool:
    """Whether the last lines contain nothing but DeepSpeed's first messages."""
    tails = [text for scan in scans for _, text in scan.tail]
    return bool(tails) and all(BEGINNING.search(text) for text in tails)


def last_words(scans: Sequence[Scan]) -> Report | None:
    """A failure that the last lines of the logs report, None without one.

    Other lines may follow a native library's report. A script's `failed` counts only in the very
    last line: after one further up, the script may have tried again.
    """
    if any("finished" in scan.marks for scan in scans) or installed(scans) or succeeded(scans):
        return None
    tails = [
        [text for _, text in scan.tail if not GOES_ON.search(text)]
        for scan in scans
        if not scan.document
    ]
    lines = [text for scan in scans for _, text in scan.tail[-LAST_LINES:]]
    has_trained = any(SUMMARY in text for text in lines)
    words = [text for text in _not_outlived(lines) if not (has_trained and PEERS in text)]
    if said := next((text for text in words if LAST_WORDS.search(text)), ""):
        return Report(said)
    if report := next(filter(None, map(report_in, tails)), None):
        return report
    if len(tails) == 1 and (usage := _usage_at_the_end(tails[0])):
        return Report(usage, _NO_REASON)
    last = next((text for text in reversed(lines) if LETTER.search(text)), "")
    end = last.rstrip()[-SHORT:]
    failed = len(scans) == 1 and FAILED.search(end) and not COUNT.search(end)
    return Report(end) if failed else None


def _usage_at_the_end(lines: Sequence[str]) -> str:
    """The first line of the usage of a script, if the log breaks off in it; "" otherwise.

    >>> _usage_at_the_end(["usage: train.py [-h] [--lr LR]", "                [--data DATA] [--se"])
    'usage: train.py [-h] [--lr LR]'
    >>> _usage_at_the_end(["usage: train.py [-h]", "", "options:", "  -h, --help  show this"])
    ''
    """
    starts = [at for at, text in enumerate(lines) if USAGE.search(text)]
    if not starts or not all(_OPTIONS.search(text) for text in lines[starts[-1] + 1 :]):
        return ""
    return lines[starts[-1]].strip()


def is_mistake_in_script(line: str) -> bool:
    """Whether a shell says that the script that it runs is written wrongly.

    >>> is_mistake_in_script("run.sh: line 7: --lr: command not found")
    True
    >>> is_mistake_in_script("run.sh: line 7: nvcc: command not found")
    False
    """
    return _SHELLS_SYNTAX.search(line) is not None


def _not_outlived(lines: list[str]) -> list[str]:
    """The lines after which training did not advance by a step.

    The rank that prints the steps may finish one in which another rank has already failed.
    """
    steps = [(at, step) for at, text in enumerate(lines) if (step := step_of(text))]
    last = len(steps) - 1
    while last > 0 and steps[last][1].reached == steps[-1][1].reached:
        last -= 1
    return lines[steps[last][0] :] if last > 0 else lines


def reported_by_a_library(scans: Sequence[Scan]) -> str:
    """The line at the end in which a native library or MPI says what failed, "" without one."""
    lines = (text for scan in scans for _, text in scan.tail[-LAST_LINES:])
    said = (text for text in lines if LAST_WORDS.search(text) and not ENDED.search(text))
    marks = (scan.marks[name][1] for scan in scans for name in TELLING if name in scan.marks)
    return next(itertools.chain(said, marks), "").strip()


def installed(scans: Sequence[Scan]) -> bool:
    """Whether the log ends with an installer's report of success."""
    if len(scans) != 1:
        return False
    lines = [text for _, text in scans[0].tail[-LAST_LINES:] if text.strip()]
    while lines and NOTICE.search(lines[-1]):
        lines.pop()
    return bool(lines) and INSTALLED.search(lines[-1]) is not None


def succeeded(scans: Sequence[Scan]) -> bool:
    """Whether the last lines report that the training succeeded, and no failure follows.

    A run of several ranks whose launcher reports a death afterwards has not succeeded.
    """
    if len(scans) != 1:
        return False
    (scan,) = scans
    said = [number for number, text in scan.tail[-LAST_LINES:] if SUCCEEDED.search(text)]
    said = said or _all_exited(scan) or _scripts_end(scan)
    if not said or scan.document or len(scan.errors) >= KEPT_ERRORS:
        return False
    behind = [text for number, text in scan.tail if number > said[-1]]
    if any(mark_pattern(name).search(text) for name in FATAL_MARKS for text in behind):
        return False
    failed = [*(hit.line for hit in scan.hits), *(error.line for error in scan.errors)]
    return max(failed, default=0) < said[-1]


def _scripts_end(scan: Scan) -> list[int]:
    """The last line in which a script says that the training is over, if no program had failed.

    Hydra and launchers report a failure when their program ends; so does Python, of an exception
    that passed through the script's own statements.
    """
    ended = any(name in scan.marks for name in (*FATAL_MARKS, HYDRA_FAILED))
    uncaught = any(
        error.traced and error.frames and error.frames[0].function == "<module>"
        for error in scan.errors
    )
    if ended or uncaught:
        return []
    return [number for number, text in scan.tail[-LAST_LINES:] if SCRIPTS_END.search(text)]


def _all_exited(scan: Scan) -> list[int]:
    """The last line that reports a process's success, if all that were started report it.

    They are those that DeepSpeed's launcher started after every failure of the log.
    """
    failed = [*(hit.line for hit in scan.hits), *(error.line for error in scan.errors)]
    behind = [row for row in scan.tail if row[0] > max(failed, default=0)]
    started = [number for number, text in behind if WORDS["spawned"] in text]
    ended = [number for number, text in behind if WORDS["finished"] in text]
    return ended[-1:] if started and len(ended) >= len(started) else []


def is_cut_off(tail: Sequence[tuple[int, str]]) -> bool:
    """Whether the log, or a block that a report quotes, breaks off in the middle of a traceback.

    >>> is_cut_off([(1, "/x/site-packages/a/b.py in f(x)"), (2, "      3 "), (3, "----> 4     g(")])
    True
    """
    lines = [text for _, text in tail]
    fences = [at for at, text in enumerate(lines) if at and text.lstrip().startswith(FENCE)]
    quoted = [lines[:at] for at in fences if not EXCEPTION.match(lines[at - 1].strip())]
    return any(_stops_in_a_frame(one) for one in [*quoted, lines])


def logged_above(tail: Sequence[tuple[int, str]]) -> str:
    """What a logger said at the level of an error right above the last traceback, "" without it.

    >>> logged_above([(1, "[ERROR] - Training failed: no ranks left"), (2, TRACEBACK + ":")])
    'Training failed: no ranks left'
    """
    lines = [text for _, text in tail if text.strip()]
    heads = [at for at, text in enumerate(lines) if TRACEBACK in text]
    said = LOGGED.search(lines[heads[-1] - 1]) if heads and heads[-1] else None
    return said["said"].strip() if said and TRACEBACK not in said["said"] else ""


def _stops_in_a_frame(lines: list[str]) -> bool:
    is_traceback = any(POINTER in text for text in lines)
    while len(lines) > 1 and not frames_of(lines[-1:]):
        if not (NUMBERED.match(lines[-1]) or (is_traceback and BOXED.match(lines[-1]))):
            break
        lines.pop()
    cut = lines and PART_OF_FRAME.match(lines[-1])
    return bool(cut or _stops_in_a_native_stack(lines) or frames_of(lines[-CUT_LINES:]))


def is_of_native_stack(text: str) -> bool:
    """Whether a line belongs to the calls of a C++ exception, or is a warning that has some.

    >>> is_of_native_stack("frame #4: c10d::TCPStore::check(std::vector<std::__cxx11::basic_str")
    True
    """
    return text.startswith((RAISED, "frame #")) or not text.strip() or bool(WARNED.match(text))


def _stops_in_a_native_stack(lines: list[str]) -> bool:
    """Whether the last lines are calls of a C++ exception that was more than a warning."""
    at = len(lines) - 1
    while at >= max(0, len(lines) - CUT_LINES) and not NATIVE_FRAME.match(lines[at]):
        at -= 1
    if at < max(0, len(lines) - CUT_LINES):
        return False
    while at > 0 and (NATIVE_FRAME.match(lines[at]) or lines[at].startswith(RAISED)):
        at -= 1
    return WARNED.match(lines[at]) is None

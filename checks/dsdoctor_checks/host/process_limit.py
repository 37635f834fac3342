"""The limit on processes and threads is too low for a training job.

## Why it matters
Linux counts a thread as a process. Each rank starts DataLoader workers, and each of its processes
starts threads of OpenMP, BLAS, CUDA and NCCL: one per CPU unless the library is configured
otherwise. At the limit, `fork` and `pthread_create` fail with `Resource temporarily unavailable`,
and Python reports `can't start new thread`, although CPUs and memory are free.

## What to do
1. See which limit it is: `ulimit -u` (all processes and threads of the user on the machine) and `pids.max`
   next to `pids.current` in the cgroup of the job, which a container or a pod has of its own.
2. Raise it: `ulimit -u 65536` in the job script, `docker run --pids-limit=-1`, or `podPidsLimit` of the
   kubelet.
3. Or start fewer: set `OMP_NUM_THREADS` (OpenBLAS and MKL follow it) to the CPUs of a rank, and use fewer
   DataLoader workers.

## References
- https://man7.org/linux/man-pages/man2/getrlimit.2.html (RLIMIT_NPROC)
- https://docs.kernel.org/admin-guide/cgroup-v2.html (pids.max)
- https://kubernetes.io/docs/concepts/policy/pid-limiting/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    Limits,
    OsInfo,
    Resources,
    Scope,
    Signature,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._where import on_host

CONDITION = Condition("process-limit", id="DSD1006", scope=Scope.JOB, since="0.1")


class TaskLimits(Limits, frozen=True, kw_only=True):
    """Processes and threads.

    Attributes:
        min_user: for all processes of a user; a lower `ulimit -u` was set on purpose.
        min_left: what a few ranks start, with CUDA, NCCL and their workers.
        fatal_tasks: below this, one process with torch and CUDA already fails.
    """

    min_user: float = 1024
    min_left: float = 256
    fatal_tasks: float = 16


EFFECT = "the job stops with `can't start new thread` or `Resource temporarily unavailable`"


@check(CONDITION)
def tasks_can_be_started(resources: Resources, os: OsInfo, limits: TaskLimits) -> Iterator[Finding]:
    """Judges the limit of the user, which does not apply to root, and that of the cgroup."""
    user, limit, left = resources.limit_nproc, resources.tasks_limit, resources.tasks_left
    if limit is not None and left is not None and left < limits.min_left:
        container = on_host(os)
        yield (fail if left < limits.fatal_tasks else warn)(
            f"{left} more processes and threads fit into the limit of {limit} (`pids.max`), "
            f"but jobs need {limits.min_left:g} or more",
            effect=EFFECT,
            hint=(
                "start the container with `--pids-limit=-1`"
                if container
                else "raise `pids.max` of the job's cgroup (`TasksMax=` of its systemd unit)"
            )
            + ", or stop what runs there",
            tasks_left=left,
            tasks_limit=limit,
            min_left=limits.min_left,
        )
    elif user is not None and user < limits.min_user and not os.is_root:
        yield (fail if user < limits.fatal_tasks else warn)(
            f"a user may have {user} processes and threads, but jobs need {limits.min_user:g} or more",
            effect=EFFECT,
            hint="run `ulimit -u 65536` before the job starts; where the hard limit is lower, raise "
            "`nproc` in `/etc/security/limits.d`",
            nproc=user,
            min_user=limits.min_user,
        )
    else:
        yield ok(nproc=user, tasks_left=left)


HINT = (
    "raise the limit on processes and threads (`ulimit -u`; in a container `pids.max`: "
    "`docker run --pids-limit=-1`), or start fewer: set `OMP_NUM_THREADS`, use fewer DataLoader workers"
)

#: What could not be started is named, and the reason is the kernel's EAGAIN.
VICTIMS = ("native-crash", "dataloader-worker-killed", "interrupted-by-user", "rank-killed")

SIGNATURES = (
    Signature(
        # memory for the stack of the thread is the other reason
        pattern=r"can't start new thread",
        source="CPython 3.8-3.14 Modules/_threadmodule.c",
        examples=("RuntimeError: can't start new thread",),
        level=Level.LIKELY,
        masks=VICTIMS,
    ),
    Signature(
        pattern=r"TERM_(?:PROCESSLIMIT|THREADLIMIT): [Jj]ob (?:was )?killed after ",
        source="LSF 9-10.1 mail and output of a job, bjobs, bhist: termination reasons",
        message="LSF ended the job, because it ran more processes or threads than its limit allows",
        hint="raise the limits of the job (`bsub -p PROCESSES -T THREADS`), or start fewer DataLoader workers",
        examples=(
            "TERM_PROCESSLIMIT: job killed after reaching LSF process limit.",
            "TERM_THREADLIMIT: job killed after reaching LSF thread limit.",
        ),
        level=Level.CERTAIN,
        masks=VICTIMS,
    ),
    Signature(
        pattern=r"fork: (?:retry: )?Resource temporarily unavailable",
        source="bash 4-5 jobs.c, make_child; GNU make 3-4 says vfork",
        examples=(
            "bash: fork: retry: Resource temporarily unavailable",
            "make: vfork: Resource temporarily unavailable",
        ),
        level=Level.STRONG,
        masks=VICTIMS,
    ),
    Signature(
        pattern=r"(?:blas_thread_init: pthread_create(?: failed for thread \d+ of \d+)?|runtime/cgo: pthread_create failed): Resource temporarily",
        source="OpenBLAS 0.2.15-0.3 driver/others/blas_server.c; Go 1.4-1.25 runtime/cgo",
        examples=(
            "runtime/cgo: pthread_create failed: Resource temporarily unavailable",
            "OpenBLAS blas_thread_init: pthread_create failed for thread 50 of 64: Resource temporarily unavailable",
            "OpenBLAS blas_thread_init: pthread_create: Resource temporarily unavailable",
        ),
        not_examples=(
            "OpenBLAS blas_thread_init: pthread_create failed for thread 35 of 48: Operation not permitted",
        ),
        level=Level.STRONG,
        masks=VICTIMS,
    ),
    Signature(
        # what `std::thread` throws; of Python's own calls, the message begins with the number
        pattern=r"^RuntimeError: Resource temporarily unavailable$",
        source="libstdc++ 5-15 src/c++11/thread.cc, as torch 1.5-2.15 raises it again, mostly of the threads of autograd",
        examples=("RuntimeError: Resource temporarily unavailable",),
        not_examples=("RuntimeError: Resource temporarily unavailable on node 3",),
        level=Level.STRONG,
        masks=VICTIMS,
    ),
    Signature(
        pattern=r"libgomp: Thread creation failed: Resource temporarily unavailable",
        source="gcc 4.4-15 libgomp/team.c",
        examples=("libgomp: Thread creation failed: Resource temporarily unavailable",),
        level=Level.STRONG,
        masks=VICTIMS,
    ),
    Signature(
        pattern=r"OMP: Error #34\b",
        source="LLVM 3.5-20 openmp/runtime/src/i18n/en_US.txt",
        examples=("OMP: Error #34: System unable to allocate necessary resources for OMP thread:",),
        not_examples=("OMP: Error #340",),
        level=Level.STRONG,
        masks=VICTIMS,
    ),
    Signature(
        # std::thread, boost::thread and asio's threads, in torch's and Ray's own code
        pattern=r"what\(\):\s{1,4}(?:thread: |boost::thread_resource_error: )?Resource temporarily unavailable",
        source="libstdc++ 4.4-15 src/c++11/thread.cc; ray 1-2 with boost",
        examples=(
            "  what():  Resource temporarily unavailable",
            "  what():  thread: Resource temporarily unavailable [system:11]",
            "  what():  boost::thread_resource_error: Resource temporarily unavailable",
        ),
        not_examples=("what(): the socket says Resource temporarily unavailable",),
        level=Level.STRONG,
        masks=VICTIMS,
    ),
    Signature(
        # files and sockets raise it too
        pattern=r"(?:BlockingIOError|OSError): \[Errno 11\] Resource temporarily unavailable",
        source="CPython 3.8-3.14 Modules/posixmodule.c os_fork, Modules/_posixsubprocess.c",
        examples=(
            "BlockingIOError: [Errno 11] Resource temporarily unavailable",
            "OSError: [Errno 11] Resource temporarily unavailable",
        ),
        near=("os.fork()", "fork_exec(", "popen_fork.py", "_execute_child"),
        level=Level.STRONG,
        masks=VICTIMS,
    ),
    Signature(
        pattern=r"ThreadPoolBuildError \{ kind: IOError\(Os \{ code: 11\b",
        source="rayon-core 1.5-1.12 src/lib.rs, as tokenizers shows it",
        examples=(
            'The global thread pool has not been initialized.: ThreadPoolBuildError { kind: IOError(Os { code: 11, kind: WouldBlock, message: "Resource temporarily unavailable" }) }',
        ),
        not_examples=("ThreadPoolBuildError { kind: IOError(Os { code: 110,",),
        level=Level.STRONG,
        masks=VICTIMS,
    ),
    Signature(
        pattern=r"failed to create new OS thread \(have \d+ already; errno=11\)",
        source="go 1.4-1.24 src/runtime/os_linux.go",
        examples=("runtime: failed to create new OS thread (have 7 already; errno=11)",),
        not_examples=("runtime: failed to create new OS thread (have 2 already; errno=1)",),
        level=Level.STRONG,
        masks=VICTIMS,
    ),
    Signature(
        pattern=r"cgroup: fork rejected by pids controller in (?P<group>\S{1,200})",
        source="linux 4.8-6.12 kernel/cgroup/pids.c",
        examples=("cgroup: fork rejected by pids controller in /kubepods/burstable/pod7/a",),
        not_examples=("cgroup: fork rejected by pids controller in ",),
        level=Level.CERTAIN,
        message="the limit on processes and threads (`pids.max`) of {group} was reached",
        masks=VICTIMS,
    ),
)

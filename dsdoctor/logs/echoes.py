"""Exceptions that only echo a failure elsewhere, and exceptions that do not state their reason."""

from __future__ import annotations

import signal
from collections.abc import Iterable

import msgspec

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.errors import Error
from dsdoctor.logs.plain_errors import INSTANTIATED
from dsdoctor.logs.products import package_of

#: The function of a class that looks up attributes which an object does not have.
ATTRIBUTES = "__getattr__"
#: Exceptions that only echo a failure elsewhere.
ECHOES = lazy(
    r"ChildFailedError|Connection closed by peer|Connection reset by peer|SignalException"
    r"|exits with return code|Broken pipe|CalledProcessError.*returned non-zero exit status"
    r"|DataLoader worker .* exited unexpectedly|KeyboardInterrupt|SystemExit: 1$"
    r"|ProcessRaisedException|ProcessExitedException|ncclRemoteError|communicator was aborted"
    r"|NCCL operation aborted|recvValue failed|Cannot recover watchdog|ActorDiedError"
    # ray 2.44-2.54 train/v2/api/exceptions.py: what its workers raised
    r"|WorkerGroupError"
    r"|WorkerCrashedError|RayTaskError|PapermillExecutionError|CellExecutionError|RemoteException|BrokenPipeError|EOFError$"
    r"|OSError: handle is closed"  # CPython multiprocessing/connection.py
    r"|^Exception: -- Process \d{1,6} terminated with "  # torch 1.0-1.5 multiprocessing/spawn.py
    r"|FatalError: `Termination signal` is detected"
    r"|The wandb backend process has shutdown"  # wandb 0.12-0.13 sdk/interface
    # vllm 0.6-0.17 v1/engine/utils.py, exceptions.py, engine/multiprocessing/client.py
    r"|Engine core initialization failed|EngineDeadError|Engine process failed to start"
    r"|EngineCore encountered an issue",
)
#: Exceptions about the machine, the libraries or the network: their reason is elsewhere in the log.
OPAQUE = frozenset(
    {
        "BrokenPipeError", "CalledProcessError", "ChildFailedError", "ConnectionError",
        "ConnectionRefusedError", "ConnectionResetError", "DistBackendError", "DistError",
        "DistNetworkError", "DistStoreError", "ImportError", "MemoryError",
        "ModuleNotFoundError", "OSError", "RendezvousConnectionError", "RendezvousTimeoutError",
        "TimeoutError", "TimeoutExpired", "BlockingIOError", "ProcessExitedException",
        "AcceleratorError", "SubprocessError", "HTTPError", "KeyboardInterrupt",
        "RendezvousError",
    },
)  # fmt: skip
#: CUDA 5-13, HIP 3-7 (cudaGetErrorString) of a failed assertion in a kernel.
ASSERTED = "device-side assert triggered"
OPAQUE_TEXT = lazy(
    r"CUDA(?:[ _]driver)? error|cuda runtime error|NCCL|nccl|cuDNN|CUDNN|CUBLAS|CUSOLVER|HIP error"
    r"|can't start new thread|Resource temporarily unavailable|driver|gloo/transport"
    r"|Error building extension|Failed to import|HCCL|returned non-zero|Ninja|ninja|metadata",
)


#: torchrun's message when a signal ends it (torch/distributed/elastic/multiprocessing/api.py).
#: torch 1.2-2.12 _utils.py: reports what a process or thread raised, and prints that below.
CAUGHT = lazy(
    r"Caught \w{1,60} in (?:DataLoader worker process|replica|pin memory thread|background)\b"
)
CANCELLED = "CancelledError"
#: An exception as Hydra prints it, by its `repr`.
REPR = lazy(
    r"^(?P<type>[A-Za-z]\w{1,80})\((?P<quote>['\"])(?P<message>.{1,1000}?)(?P=quote),?\)(?: |$)"
)
#: paddlepaddle 2.0-3.2 (paddle/fluid/platform/init.cc), of SIGTERM.
TERMINATED = "`Termination signal` is detected by the operating system"
#: What torch (0.4-2.15 utils/data/_utils/signal_handling.py) raises wherever the main thread is
#: when a process of a data loader was sent SIGTERM, which the loader itself sends only at its end.
LOADER_TERMINATED = "is killed by signal: Terminated"
_SIGNALLED = lazy(r"got signal: (\d{1,2})\b")


def signal_of(error: Error) -> str:
    """The signal from outside that ended a process, as `SIGTERM`; "" for other exceptions."""
    if TERMINATED in error.message or LOADER_TERMINATED in error.message:
        return signal.SIGTERM.name
    if not error.type.endswith("SignalException"):
        return ""
    found = _SIGNALLED.search(error.message)
    try:
        return signal.Signals(int(found[1])).name if found else ""
    except ValueError:  # a number without a name on this platform
        return ""


def is_echo(error: Error) -> bool:
    """Whether an exception says that another rank, or a child, has died, or ended but a task."""
    return error.unretrieved or _orphaned(error) or names_echo(error.type, error.message)


def names_echo(kind: str, message: str) -> bool:
    """Whether an exception of this type and message is an echo."""
    return bool(ECHOES.search(f"{kind}: {message}".rstrip(": ")))


def told_by(error: Error, later: Iterable[Error]) -> Error:
    """The later exception that shows the reason or the caller of this one, else this one.

    torch prints the exception of a data loader's worker, or of a replica of DataParallel, below its
    own report. If a library catches and reraises an exception, only the second traceback reaches
    the caller. Hydra prints what it caught below the object of the config that it could not make.

    Args:
        error: the exception.
        later: the exceptions after it.
    """
    own = [e for e in later if (e.rank, e.source) == (error.rank, error.source)]
    if tried := next((e for e in own if _tried_on_shapes(error, e)), None):
        if error.message in tried.message:
            return tried
        return msgspec.structs.replace(tried, message=f"{tried.message}: {error.message}")
    if CAUGHT.match(error.message):
        return own[0] if own else error
    if error.type == INSTANTIATED and (raised := REPR.match(error.more)):
        kind, message = raised["type"], raised["message"]
        return msgspec.structs.replace(error, type=kind, message=message, text=f"{kind}: {message}")
    anew = (
        e
        for e in own
        if e.chain == error.chain
        and (
            _raised_anew(error, e)
            or _passed_back(error, e)
            or _imported_instead(error, e)
            # a task that ran out of time is cancelled first (CPython 3.7-3.14 asyncio/tasks.py)
            or (error.type == CANCELLED and e.type != CANCELLED)
        )
    )
    return next(anew, error)


def _raised_anew(error: Error, other: Error) -> bool:
    """Whether the function of a library that raised one exception raised the other in its place.

    One that looks up an attribute has to raise `AttributeError`, whatever it handled.
    """
    if error.file or not (error.frames and other.frames and other.file):
        return False
    one, two = error.frames[0], other.frames[-1]
    same = error.type == other.type or (
        two.function == ATTRIBUTES and other.type == "AttributeError"
    )
    return same and (one.file, one.function) == (two.file, two.function)


def _passed_back(error: Error, other: Error) -> bool:
    """Whether a worker process passed an exception back to its parent, which raised it again.

    The traceback of the worker may contain nothing but the code of Python that calls the script's
    function (CPython 3.4-3.14 multiprocessing/pool.py, concurrent/futures/process.py); that of the
    parent leads to the script.
    """
    return (
        (error.type, error.message) == (other.type, other.message)
        and bool(other.file and error.frames)
        and all(package_of(frame.file) == "python" for frame in error.frames)
    )


def _tried_on_shapes(error: Error, other: Error) -> bool:
    """Whether torch.compile tried an operation of the script on shapes alone, and logged why not.

    It raises an exception of its own then (torch 2.13-2.15 `_dynamo/utils.py`), whose traceback
    leads to the script.
    """
    said = f"{other.message} {other.more}"
    return other.type == "TorchRuntimeError" and bool(error.message) and error.message in said


def _imported_instead(error: Error, other: Error) -> bool:
    """Whether a function looked for a part of a module, then tried to import it, and that failed.

    Only the import says why the part is not there (hydra 1.0-1.3 `_locate`, CPython `pydoc`).
    """
    if not (error.frames and other.frames and error.message.startswith("module '")):
        return False
    one, two = error.frames[-1], other.frames[0]
    return error.type == "AttributeError" and (one.file, one.function) == (two.file, two.function)


def _orphaned(error: Error) -> bool:
    """Whether it is from a child that multiprocessing was starting when its parent died."""
    return (
        bool(error.frames)
        and error.frames[-1].file.endswith("multiprocessing/spawn.py")
        and error.frames[-1].function == "_main"
        and error.type in {"EOFError", "UnpicklingError"}
    )


def is_opaque(error: Error) -> bool:
    """Whether an exception says what failed, but not why.

    An assertion of a kernel is about the script's data, and the abort of the process follows it.
    """
    if ASSERTED in error.message:
        return False
    return error.type in OPAQUE or bool(OPAQUE_TEXT.search(error.message))

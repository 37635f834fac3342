r"""Start torch and deepspeed; run as a script in the environment, in a process of its own.

    python torch_live.py [--step-seconds N] [--devices 0,GPU-…]
    python torch_live.py [--step-seconds N] --modules flash_attn,torchvision --names trl:SFTTrainer

Any step may hang, abort or be killed, so each is recorded before it begins, as one line on stdout,
and every answer as soon as it is known:

    \x1edsdoctor:{json}

    {"step": "import torch", "at": 0.04}           seconds since the start
    {"fact": "torch_import", "value": {"ok": true, "seconds": 1.9, ...}}
    {"fact": "torch_build", "value": {...}}
    {"fact": "cuda", "value": {"ok": false, "error": "...", "code": 35}}
    {"fact": "device", "value": {...}}             its properties
    {"fact": "device_tried", "value": {...}}       a context and a tiny allocation
    {"fact": "bf16", "value": true}
    {"fact": "deepspeed_import", "value": {...}}
    {"fact": "accelerator", "value": "cuda"}
    {"fact": "import flash_attn", "value": {...}}  with --modules or --names, only torch and these
    {"done": true}

A step that takes longer than --step-seconds ends the process, with the stack on stderr.

The imports must behave as in a job that is started in this folder, including files that shadow a
module. So nothing is imported before them except built-in modules and those that the interpreter
loads when it starts, and records are written without `json`.

Over 400 lines because it runs as one script, in an interpreter that cannot import dsdoctor.
"""

# ruff: noqa: SLF001  # private attributes of DeepSpeed and torch are what is examined here
# ruff: noqa: PLW0108  # the attributes may be missing: they are looked up inside `asked`
from __future__ import annotations

import faulthandler
import os
import sys
import time

TYPE_CHECKING = False  # `typing` is not imported: a file of the job may have that name
if TYPE_CHECKING:
    from typing import Any, Callable

SENTINEL = "\x1edsdoctor:"
START = time.monotonic()
#: Longest text in a record, and how many lines of a traceback go into one.
TEXT_LIMIT = 4000
TRACEBACK_LINES = 15
#: Characters beyond this are two escapes in JSON.
BMP_END = 0xFFFF


class Clock:
    """How long a step may take; 0 = no limit."""

    seconds = 0.0


def text_of(value: str) -> str:
    """A JSON string in ASCII."""
    out = []
    for character in value:
        code = ord(character)
        if character in '"\\':
            out.append("\\" + character)
        elif " " <= character <= "~":
            out.append(character)
        elif code <= BMP_END:
            out.append("\\u%04x" % code)
        else:
            code -= BMP_END + 1
            out.append("\\u%04x\\u%04x" % (0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF)))
    return '"' + "".join(out) + '"'


def json_of(value: Any) -> str:
    """JSON of the few types that records hold."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return "%.3f" % value
    if isinstance(value, dict):
        pairs = [text_of(str(key)) + ": " + json_of(entry) for key, entry in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([json_of(entry) for entry in value]) + "]"
    return text_of(str(value)[:TEXT_LIMIT])


def emit(record: dict[str, Any]) -> None:
    """Write one record, past all buffers."""
    os.write(1, (SENTINEL + json_of(record) + "\n").encode("ascii"))


def fact(name: str, value: Any) -> None:
    """Write one answer."""
    emit({"fact": name, "value": value})


def step(name: str) -> None:
    """Record the next step, and start its clock."""
    emit({"step": name, "at": time.monotonic() - START})
    if Clock.seconds > 0:
        faulthandler.dump_traceback_later(Clock.seconds, exit=True)


def message_of(error: BaseException) -> str:
    """The message of an exception; its own `__str__` may fail."""
    try:
        return str(error)
    except Exception as second:
        return "its message could not be read (" + type(second).__name__ + ")"


def traceback_of(error: BaseException) -> str:
    """Last lines of the traceback, as the interpreter would print it."""
    path = sys.path[:]
    try:
        # the standard library's own, whatever is in the working folder
        home = os.path.dirname(os.__file__)
        sys.path[:] = [home, os.path.join(home, "lib-dynload")]
        import traceback

        lines = "".join(
            traceback.format_exception(type(error), error, error.__traceback__)
        ).splitlines()
    except Exception:  # a message that cannot be created, or a broken standard library
        lines = []
        place = error.__traceback__
        while place is not None:
            code = place.tb_frame.f_code
            lines.append(
                '  File "%s", line %d, in %s' % (code.co_filename, place.tb_lineno, code.co_name)
            )
            place = place.tb_next
        lines.append(type(error).__name__ + ": " + message_of(error))
    finally:
        sys.path[:] = path
    return "\n".join(lines[-TRACEBACK_LINES:])


def imported(name: str, module: str, attribute: str = "") -> bool:
    """Import a module, or a name of it; True if that worked."""
    step(name if attribute else "import " + module)
    begun = time.monotonic()
    try:
        __import__(module)
        if attribute:
            import_name(module, attribute)
    except BaseException as error:  # SystemExit too
        absent = (
            type(error).__name__ == "ModuleNotFoundError" and getattr(error, "name", None) == module
        )
        fact(
            name,
            {
                "ok": False,
                "absent": absent,
                "error_type": type(error).__name__,
                "message": message_of(error),
                "traceback": traceback_of(error),
                "seconds": time.monotonic() - begun,
            },
        )
        return False
    found = sys.modules.get(module)
    fact(
        name,
        {
            "ok": True,
            "seconds": time.monotonic() - begun,
            "version": getattr(found, "__version__", None),
            "file": getattr(found, "__file__", None),
        },
    )
    return True


def asked(question: Callable[[], Any]) -> Any:
    """The result of a function; None if it raises."""
    try:
        return question()
    except Exception:  # torch raises many types, by release; the answer is a detail of the report
        return None


def read_build(torch: Any) -> str | None:
    """What torch was built with, as its library (not its files) reports."""
    step("torch build")
    cuda = asked(lambda: torch.version.cuda)
    flags = source = None
    if cuda:
        flags, source = asked(lambda: torch._C._cuda_getArchFlags()), "_cuda_getArchFlags"
        if not flags:
            # empty if CUDA is not available: that means unknown, not "no kernels"
            listed = asked(lambda: torch.cuda.get_arch_list())
            flags, source = " ".join(listed or []), "get_arch_list"
    version = asked(lambda: torch.cuda.nccl.version()) if cuda else None
    if isinstance(version, int):  # torch < 1.10
        version = (version // 1000, version // 100 % 10, version % 100)
    fact(
        "torch_build",
        {
            "cuda": cuda,
            "hip": asked(lambda: torch.version.hip),
            "arch_list": flags.split() if flags else None,
            "arch_source": source if flags else None,
            "cxx11_abi": asked(lambda: bool(torch._C._GLIBCXX_USE_CXX11_ABI)),
            "nccl": ".".join([str(part) for part in version]) if version else None,
        },
    )
    return str(cuda) if cuda else None


def failure(error: BaseException) -> dict[str, Any]:
    """An exception as it appears in a record."""
    code = getattr(error, "error_code", None)
    return {
        "ok": False,
        "error": message_of(error),
        "error_type": type(error).__name__,
        "code": code if isinstance(code, int) else None,
    }


def start_cuda(torch: Any) -> int:
    """Initialize CUDA; the number of devices, 0 if it did not start."""
    step("cuda init")
    try:
        # not is_available(): it gives no reason, and may ask NVML instead (a variable decides)
        torch.cuda.init()
        count = int(torch.cuda.device_count())
    except Exception as error:
        fact("cuda", failure(error))
        return 0
    fact("cuda", {"ok": True, "count": count})
    return count


def read_device(torch: Any, index: int) -> str | None:
    """Properties of a device; its UUID as `nvidia-smi` writes it."""
    step("cuda device %d properties" % index)
    try:
        properties = torch.cuda.get_device_properties(index)
    except Exception as error:
        fact("device_tried", dict(failure(error), index=index))
        return None
    uuid = getattr(properties, "uuid", None)
    if uuid is not None:
        uuid = str(uuid)
        if not uuid.startswith(("GPU-", "MIG-")):
            uuid = "GPU-" + uuid
    fact(
        "device",
        {
            "index": index,
            "name": properties.name,
            "major": properties.major,
            "minor": properties.minor,
            "memory_bytes": properties.total_memory,
            "uuid": uuid,
            "arch": amd_arch(properties),
        },
    )
    return uuid or ""


def amd_arch(properties: Any) -> str | None:
    """`gfx908` of `gfx908:sramecc+:xnack-`, as torch 2.0 and later for ROCm tell it."""
    name = str(getattr(properties, "gcnArchName", "")).split(":")[0]
    return name if name.startswith("gfx") else None


#: After these errors every further CUDA call of a process fails, on any device (driver_types.h).
ENDS_PROCESS = (
    "an illegal memory access",
    "the launch timed out",
    "device-side assert",
    "hardware stack error",
    "an illegal instruction",
    "misaligned address",
    "global/shared address space",
    "invalid program counter",
    "unspecified launch failure",
)


def try_device(torch: Any, index: int) -> str:
    """Creates a context and one tiny allocation; returns the error, "" if it worked."""
    step("cuda device %d context" % index)
    try:
        torch.empty(1, device="cuda:%d" % index)
        torch.cuda.synchronize(index)
    except Exception as error:
        fact("device_tried", dict(failure(error), index=index))
        return message_of(error) or "unknown"
    fact("device_tried", {"index": index, "ok": True})
    return ""


def is_number(text: str) -> bool:
    return text[:9] == text and text.isdecimal()  # `int` refuses 5,000 digits


def chosen(selectors: list[str], uuids: dict[int, str]) -> list[int]:
    """The numbers of the selected devices; all, if torch sees none of the selected ones."""
    visible = [entry.strip() for entry in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    found = []
    for selector in selectors:
        if is_number(selector):
            # if the user hides devices, torch numbers the remaining ones
            place = visible.index(selector) if selector in visible else int(selector)
            if place in uuids and (selector in visible or not is_number(visible[0])):
                found.append(place)
        else:
            found += [
                index
                for index, uuid in uuids.items()
                if uuid.startswith(selector)
                or (index < len(visible) and visible[index] == selector)
            ]
    return sorted(set(found)) or sorted(uuids)


def examine(selectors: list[str]) -> None:
    """All steps, in order."""
    if not imported("torch_import", "torch"):
        return
    torch = sys.modules["torch"]
    if read_build(torch):
        uuids = {}
        for index in range(start_cuda(torch)):
            uuid = read_device(torch, index)
            if uuid is not None:
                uuids[index] = uuid
        good = []
        for index in chosen(selectors, uuids):
            error = try_device(torch, index)
            if not error:
                good.append(index)
            elif any(words in error for words in ENDS_PROCESS):
                break  # further devices would seem to fail too
        if good:
            step("bf16")
            with torch.cuda.device(good[0]):
                fact("bf16", asked(lambda: bool(torch.cuda.is_bf16_supported())))
    if imported("deepspeed_import", "deepspeed"):
        step("accelerator")
        try:
            from deepspeed.accelerator import get_accelerator

            fact("accelerator", str(get_accelerator()._name))
        except BaseException as error:
            fact("accelerator_error", failure(error))


def import_name(module: str, name: str) -> None:
    """What `from module import name` does, with its words if there is no such name."""
    found = sys.modules[module]
    if hasattr(found, name):
        return
    try:
        __import__(module + "." + name)
    except ModuleNotFoundError as error:
        if error.name != module + "." + name:
            raise
        place = getattr(found, "__file__", None) or "unknown location"
        words = "cannot import name %r from %r (%s)" % (name, module, place)
        raise ImportError(words) from None


def import_modules(modules: list[str], names: list[str]) -> None:
    """Import torch, then modules, then names of installed ones (`trl:SFTTrainer`)."""
    if not imported("torch_import", "torch"):
        return
    for module in modules:
        imported("import " + module, module)
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]  # the working folder need not be that of the script
    for name in names:
        module, _, attribute = name.partition(":")
        imported("import " + name, module, attribute)


def as_in_a_job() -> None:
    """Put the working folder where `python train.py` has it."""
    if getattr(sys.flags, "safe_path", False):
        return
    try:
        sys.path[0] = os.getcwd()
    except OSError:  # it has been deleted
        del sys.path[0]


def remove_temporary_folders() -> None:
    """Remove the folders that modules keep until the end: `os._exit` does not.

    torch creates one when torch.distributed.nn is imported (2.9.1 jit/instantiator.py).
    """
    try:
        import tempfile
        import weakref

        finalize: Any = weakref.finalize
        folder: Any = tempfile.TemporaryDirectory
        for one in list(finalize._registry):
            waits = one.peek()
            if waits is not None and waits[1] == folder._cleanup:
                one()
    except Exception:  # a file of the job may have one of these names
        return


def main(arguments: list[str]) -> None:
    """Run the script."""
    options = dict(zip(arguments[::2], arguments[1::2]))  # Python 3.8 has no strict
    Clock.seconds = float(options.get("--step-seconds", "0"))
    selectors = [entry for entry in options.get("--devices", "").split(",") if entry]
    # a job does not have these arguments
    del sys.argv[1:]
    try:
        faulthandler.enable()
    except Exception:  # no stderr for a traceback: only the parent's deadline applies
        Clock.seconds = 0.0
    as_in_a_job()
    modules = [entry for entry in options.get("--modules", "").split(",") if entry]
    names = [entry for entry in options.get("--names", "").split(",") if entry]
    if modules or names:
        import_modules(modules, names)
    else:
        examine(selectors)
    faulthandler.cancel_dump_traceback_later()
    emit({"done": True})
    remove_temporary_folders()
    # without torch's destructors: they may hang or crash, and add no information
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])

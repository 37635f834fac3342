"""The environment: its interpreter and packages (nothing imported), then torch and DeepSpeed live.

Over 400 lines because both children, and how each of their answers becomes a fact, are read here.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from dsdoctor.api import probe
from dsdoctor.host import Host, HostError
from dsdoctor.interpreter import run_child
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.gpu import Nvml
from dsdoctor.model.facts.python import (
    CudaDevice,
    DeepSpeedInstall,
    DeepSpeedLive,
    ImportOutcome,
    Package,
    Packages,
    Patient,
    PatientChoice,
    TorchBuild,
    TorchLive,
)
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.process import Result

Records = Sequence[Mapping[str, Any]]
StaticFacts = tuple[
    Patient | Missing, Packages | Missing, TorchBuild | Missing, DeepSpeedInstall | Missing
]
LiveFacts = tuple[TorchLive | Missing, DeepSpeedLive | Missing]

#: What `parse_static` and `parse_live` return, in their order.
STATIC_FACTS: tuple[type[Fact], ...] = (Patient, Packages, TorchBuild, DeepSpeedInstall)
LIVE_FACTS: tuple[type[Fact], ...] = (TorchLive, DeepSpeedLive)

#: Oldest Python of the examined environment: the children do not compile in an older one.
OLDEST_PYTHON = (3, 8)
#: Reading names in site-packages takes 0.1 s; on a cold network disk it may take this.
STATIC_SECONDS = 60.0
#: One step of torch: an import from a cold network disk is slow and healthy.
STEP_SECONDS = 120.0
#: All steps together; below the deadline of the whole check, so that partial results are kept.
LIVE_SECONDS = 175.0
#: How much later than the child's own clock the parent gives up.
GRACE_SECONDS = 5.0
#: Lines of stderr that are kept from a child that died.
STDERR_LINES = 15

_CUDA_WHEEL = re.compile(
    r"nvidia-(cublas|cuda-|cudnn|cufft|cufile|curand|cusolver|cusparse|nccl|nvjitlink|nvshmem|nvtx)"
    r"|cuda-toolkit$",
)
_ERROR_NUMBER = re.compile(r"\b[Ee]rror:? (\d+)\b")
#: Errors of `cudaGetDeviceCount` for which torch prints its own message, without the number
#: (c10/cuda/CUDAFunctions.cpp, torch 2.9).
_UNNUMBERED = {
    "CUDA driver initialization failed": 3,
    "The NVIDIA driver on your system is too old": 35,
    "No CUDA GPUs are available": 100,
    "CUDA unknown error": 999,
}
_UNKNOWN_VERSION = "0.0"
#: Windows status codes of a process that crashed begin here.
_WINDOWS_CRASH = 0xC0000000

FactType = TypeVar("FactType", bound=Fact)


@probe
def patient_facts(
    host: Host, choice: PatientChoice, run: RunNeeds
) -> tuple[Patient | Missing, Packages | Missing, TorchBuild | Missing, DeepSpeedInstall | Missing]:
    """Reads the environment in a child that imports nothing of it."""
    try:
        records, result = run_child(
            host, choice.executable, "static", timeout=STATIC_SECONDS, cwd=run.cwd
        )
        if not records and "SyntaxError" in result.error_text:
            refuse_too_old(host, choice.executable)
    except HostError as error:
        return (error.missing,) * 4
    return parse_static(records, choice, result)


def refuse_too_old(host: Host, python: str) -> None:
    """Raises HostError if the interpreter is too old for the children."""
    asked = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])"
    said = host.run([python, "-c", asked]).text.strip()
    found = re.fullmatch(r"(\d)\.(\d+)", said)
    if found and (int(found[1]), int(found[2])) < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        raise HostError(
            Why.BROKEN, f"`{python}` is Python {said}; dsdoctor can examine {oldest} and newer"
        )


@probe
def torch_facts(
    host: Host,
    choice: PatientChoice,
    run: RunNeeds,
    nvml: Nvml | Missing,  # noqa: ARG001
) -> tuple[TorchLive | Missing, DeepSpeedLive | Missing]:
    """Starts torch, CUDA and DeepSpeed in a child that may hang or die.

    Waits until NVML has been read, because the child's CUDA context would count as another process,
    and its memory as used.
    """
    return start_torch(host, choice, run)


def start_torch(
    host: Host, choice: PatientChoice, run: RunNeeds, step_seconds: float = STEP_SECONDS
) -> LiveFacts:
    """What `torch_facts` does, with a limit for each step."""
    if run.quick:
        missing = Missing(why=Why.NOT_ASKED, detail="torch not started (`--quick`)")
        return missing, missing
    limit = step_seconds * float(getattr(host, "scale", 1.0))
    args = ["--step-seconds", f"{limit:g}"]
    if run.gpus:
        args += ["--devices", ",".join(run.gpus)]
    try:
        records, result = run_child(
            host,
            choice.executable,
            "torch_live",
            args,
            timeout=LIVE_SECONDS,
            idle_timeout=step_seconds + GRACE_SECONDS,
            cwd=run.cwd,
            env=_device_order(host, run),
        )
    except HostError as error:
        return error.missing, error.missing
    return parse_live(records, result)


def _device_order(host: Host, run: RunNeeds) -> dict[str, str]:
    """Makes torch number GPUs as `nvidia-smi` does, if `--gpus` contains numbers.

    Not if CUDA_VISIBLE_DEVICES contains numbers: their meaning would change.
    """
    counted = any(selector.isdigit() for selector in run.gpus)
    visible = host.env.get("CUDA_VISIBLE_DEVICES", "").strip()
    if not counted or host.env.get("CUDA_DEVICE_ORDER") or visible[:1].isdigit():
        return {}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


# --- static --------------------------------------------------------------------------------------


def _values(records: Records) -> dict[str, Any]:
    return {
        record["fact"]: record["value"]
        for record in records
        if isinstance(record.get("fact"), str) and "value" in record
    }


def _why_silent(records: Records, result: Result, part: str) -> Missing:
    """Why a child left out a part."""
    for record in records:
        if record.get("error") == part:
            return Missing(why=Why.BROKEN, detail=f"{part} could not be read: {record.get('text')}")
    python = result.argv[0] if result.argv else "python"
    if result.timed_out:
        detail = f"`{python}` did not list its packages within {result.seconds:.0f} s"
        return Missing(why=Why.TIMEOUT, detail=detail)
    how = _bad_ending(result) or "exit status 0"
    said = f": {result.error_text}" if result.stderr.strip() else ""
    return Missing(
        why=Why.BROKEN, detail=f"`{python}` ended with {how} before it reported {part}{said}"
    )


def _build(kind: type[FactType], value: Mapping[str, Any]) -> FactType | Missing:
    try:
        return msgspec.convert(dict(value), kind)
    except msgspec.ValidationError as error:
        return Missing(why=Why.BROKEN, detail=f"{kind.key()} could not be understood: {error}")


def parse_static(records: Records, choice: PatientChoice, result: Result) -> StaticFacts:
    """Turns the records of `children/static.py` into facts.

    Args:
        records: the child's output, possibly incomplete.
        choice: the interpreter that it ran in.
        result: how it ended.
    """
    values = _values(records)

    def missing(part: str) -> Missing:
        return _why_silent(records, result, part)

    patient: Patient | Missing = missing("patient")
    if "patient" in values:
        named = {"executable": choice.executable, "chosen_by": choice.chosen_by}
        patient = _build(Patient, {**values["patient"], **named})
    packages: Packages | Missing = missing("packages")
    if "packages" in values:
        packages = _build(Packages, {**values.get("modules", {}), **values["packages"]})
    known = packages.packages if isinstance(packages, Packages) else {}
    torch: TorchBuild | Missing = missing("torch")
    if "torch" in values:
        torch = _torch_build(values["torch"], known)
    deepspeed: DeepSpeedInstall | Missing = missing("deepspeed")
    if "deepspeed" in values:
        deepspeed = _deepspeed_install(values["deepspeed"], known)
    return patient, packages, torch, deepspeed


def _torch_build(value: Mapping[str, Any], packages: Mapping[str, Package]) -> TorchBuild | Missing:
    listed = packages.get("torch")
    if not value:
        if listed is None:
            return TorchBuild()
        return TorchBuild(
            error=f"`torch` {listed.version} is listed in `{listed.location}`, "
            "but its folder is missing",
        )
    wheels = {
        name: package.version for name, package in packages.items() if _CUDA_WHEEL.match(name)
    }
    major = str(value.get("cuda") or "").split(".")[0]
    return _build(
        TorchBuild,
        {
            **value,
            "cuda_wheels": wheels,
            "nccl": _wheel(wheels, "nvidia-nccl", major),
            "cudnn": _wheel(wheels, "nvidia-cudnn", major),
        },
    )


def _wheel(wheels: Mapping[str, str], name: str, cuda_major: str) -> str | None:
    """Version of a wheel that exists for each major version of CUDA.

    >>> _wheel({"nvidia-nccl-cu12": "2.27.5", "nvidia-nccl-cu13": "2.28.9"}, "nvidia-nccl", "12")
    '2.27.5'
    """
    fitting = wheels.get(f"{name}-cu{cuda_major}") or wheels.get(name)
    if fitting or not cuda_major:
        return fitting
    others = [version for wheel, version in wheels.items() if wheel.startswith(f"{name}-cu")]
    return others[0] if len(others) == 1 else None


def _known_version(value: Any) -> str | None:
    """A version; None if DeepSpeed wrote its placeholder."""
    text = str(value or "")
    return None if text in ("", _UNKNOWN_VERSION, "None") else text


def _deepspeed_install(
    value: Mapping[str, Any], packages: Mapping[str, Package]
) -> DeepSpeedInstall | Missing:
    listed = packages.get("deepspeed")
    if not value:
        if listed is None:
            return DeepSpeedInstall()
        return DeepSpeedInstall(
            version=listed.version,
            error=f"`deepspeed` {listed.version} is listed in `{listed.location}`, "
            "but its folder is missing",
        )
    version = value.get("version") or (listed.version if listed else None)
    error = value.get("error")
    if version is None and error is None:
        error = f"`{value.get('path')}` has no version"
    given_ops = value.get("installed_ops")
    ops = {
        str(name): bool(built)
        for name, built in (given_ops.items() if isinstance(given_ops, dict) else ())
    }
    given = value.get("torch_info")
    info = given if any(ops.values()) and isinstance(given, dict) else {}
    accelerator = value.get("accelerator_name") if any(ops.values()) else None
    return _build(
        DeepSpeedInstall,
        {
            "version": version,
            "path": value.get("path"),
            "installed_ops": ops,
            "built_for_torch": _known_version(info.get("version")),
            "built_for_cuda": _known_version(info.get("cuda_version")),
            "built_for_accelerator": accelerator if isinstance(accelerator, str) else None,
            "error": error,
        },
    )


# --- live ----------------------------------------------------------------------------------------


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _is_hung(result: Result) -> bool:
    """Whether the child was ended because it was silent, by dsdoctor or by its own timer."""
    return result.timed_out or (result.returncode == 1 and b"\nTimeout (" in b"\n" + result.stderr)


def _bad_ending(result: Result) -> str | None:
    """How a failed child ended, in words."""
    status = result.returncode
    if status is None or status == 0:
        return None
    if status < 0:
        return f"signal {-status} ({_signal_name(-status)})"
    if os.name == "nt" and status >= _WINDOWS_CRASH:
        return f"exception 0x{status:08X}"
    return f"exit status {status}"


#: Python/traceback.c of CPython 3.14.
_C_STACK = re.compile(r"^(?:Current thread's C stack trace|Cannot get C stack)")


def _tail(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    # faulthandler of Python 3.14 adds the C stack, which would push out the Python frames
    native = [number for number, line in enumerate(lines) if _C_STACK.search(line)]
    lines = lines[: native[0]] if native else lines
    return "\n".join(line[:500] for line in lines[-STDERR_LINES:]).rstrip()


class _End(msgspec.Struct, frozen=True):
    """How a child ended before it had finished.

    Attributes:
        died: description for `TorchLive.died`.
        outcome: the same for the import that it was in.
        step: the step that it was in.
    """

    died: str
    outcome: ImportOutcome
    step: str


def _end(records: Records, result: Result) -> _End | None:
    """None if the child took all its steps."""
    if any(record.get("done") for record in records):
        return None
    steps = [record for record in records if "step" in record]
    step = str(steps[-1]["step"]) if steps else "start of the interpreter"
    begun = float(steps[-1].get("at", 0.0)) if steps else 0.0
    waited = max(result.seconds - begun, 0.0)
    number: int | None = None
    if _is_hung(result):
        kind, died = "hang", f"hung for {waited:.0f} s"
        message = f"`{step}` had not ended after {waited:.0f} s"
    elif result.returncode is not None and result.returncode < 0:
        number = -result.returncode
        kind, died, message = "signal", str(_bad_ending(result)), _signal_name(number)
    else:
        died = _bad_ending(result) or "exit status 0"
        kind, message = "exit", died
    outcome = ImportOutcome(
        ok=False,
        error_type=kind,
        message=message,
        traceback=_tail(result.stderr),
        signal=number,
        seconds=round(waited, 3),
    )
    return _End(died=died, outcome=outcome, step=step)


def _outcome(value: Mapping[str, Any]) -> ImportOutcome:
    return ImportOutcome(
        ok=bool(value.get("ok")),
        error_type=value.get("error_type"),
        message=value.get("message"),
        traceback=str(value.get("traceback") or ""),
        seconds=value.get("seconds"),
    )


def _code(value: Mapping[str, Any]) -> int | None:
    """CUDA's error number: from the exception or from its text.

    >>> _code({"error": "Error 804: forward compatibility was attempted on non supported HW"})
    804
    >>> _code({"error": "No CUDA GPUs are available"})
    100
    """
    if isinstance(value.get("code"), int):
        return int(value["code"])
    text = str(value.get("error") or "")
    found = _ERROR_NUMBER.search(text)
    if found:
        return int(found[1])
    return next((code for words, code in _UNNUMBERED.items() if words in text), None)


def parse_live(records: Records, result: Result) -> LiveFacts:
    """Turns the records of `children/torch_live.py` into facts; those of a dead child count too.

    Args:
        records: the child's output, possibly incomplete.
        result: how it ended.
    """
    values = _values(records)
    end = _end(records, result)
    imported = values.get("torch_import")
    if imported is None:
        if end is None or end.step != "import torch":
            # the interpreter does not even start
            broken = _why_silent(records, result, "torch")
            return broken, broken
        why = f"deepspeed not imported: `import torch` ended with {end.died}"
        torch = TorchLive(imported=end.outcome, last_step=end.step, died=end.died)
        return torch, Missing(why=Why.NOT_ASKED, detail=why)
    if imported.get("absent"):
        return (
            Missing(why=Why.ABSENT, detail="`torch` is not installed"),
            Missing(why=Why.ABSENT, detail="`torch` is not installed, deepspeed was not imported"),
        )
    return _torch_live(records, values, end), _deepspeed_live(values, end)


def _last_step(records: Records) -> str:
    return next((str(record["step"]) for record in reversed(records) if "step" in record), "")


_DEEPSPEED_STEPS = ("import deepspeed", "accelerator")


def _torch_live(records: Records, values: Mapping[str, Any], end: _End | None) -> TorchLive:
    build = values.get("torch_build") or {}
    cuda = values.get("cuda") or {}
    arch_list = build.get("arch_list")
    return TorchLive(
        imported=_outcome(values["torch_import"]),
        last_step=_last_step(records),
        # a death in deepspeed is not torch's
        died=end.died if end is not None and end.step not in _DEEPSPEED_STEPS else None,
        cuda_ok=cuda.get("ok"),
        cuda_error=cuda.get("error"),
        cuda_error_code=_code(cuda) if cuda else None,
        devices=_devices(records),
        arch_list=tuple(arch_list) if arch_list else None,
        arch_source=build.get("arch_source"),
        cxx11_abi=build.get("cxx11_abi"),
        nccl=build.get("nccl"),
        bf16_emulated=values.get("bf16"),
        version=values["torch_import"].get("version"),
        file=values["torch_import"].get("file"),
    )


def _devices(records: Records) -> tuple[CudaDevice, ...]:
    found: dict[int, dict[str, Any]] = {}
    for record in records:
        value = record.get("value")
        if record.get("fact") == "device" and isinstance(value, dict):
            found[value["index"]] = {**value, "ok": False, "tried": False}
        elif record.get("fact") == "device_tried" and isinstance(value, dict):
            row = found.setdefault(
                value["index"], {"index": value["index"], "name": "", "major": 0, "minor": 0}
            )
            row.update(ok=bool(value.get("ok")), tried=True)
            if not value.get("ok"):
                row.update(error=value.get("error"), error_code=_code(value))
    # if nothing was tried, no error is known
    rows = ({**row, "ok": row["ok"] or not row["tried"]} for _, row in sorted(found.items()))
    return tuple(msgspec.convert(row, CudaDevice) for row in rows)


def _deepspeed_live(values: Mapping[str, Any], end: _End | None) -> DeepSpeedLive | Missing:
    imported = values.get("deepspeed_import")
    if imported is None:
        if end is not None and end.step == "import deepspeed":
            return DeepSpeedLive(imported=end.outcome)
        if end is not None:
            why = f"deepspeed not imported: torch ended with {end.died} at `{end.step}`"
        else:
            why = "deepspeed not imported: `import torch` failed"
        return Missing(why=Why.NOT_ASKED, detail=why)
    if imported.get("absent"):
        return Missing(why=Why.ABSENT, detail="`deepspeed` is not installed")
    failed = values.get("accelerator_error")
    if end is not None:
        # it was determining the accelerator, which is part of importing `deepspeed`
        return DeepSpeedLive(imported=end.outcome)
    outcome = _outcome(imported)
    if failed is not None:
        outcome = ImportOutcome(
            ok=False, error_type=failed.get("error_type"), message=failed.get("error")
        )
    return DeepSpeedLive(imported=outcome, accelerator=values.get("accelerator"))

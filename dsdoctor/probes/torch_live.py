"""Starts torch, CUDA and DeepSpeed in a child of the examined environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from dsdoctor.api import probe
from dsdoctor.host import Host, HostError
from dsdoctor.interpreter import run_child
from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.model.facts.gpu import Nvml
from dsdoctor.model.facts.python import (
    CudaDevice,
    DeepSpeedLive,
    ImportOutcome,
    PatientChoice,
    TorchLive,
)
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.child_records import Records, bad_ending, signal_name, values_of, why_silent
from dsdoctor.process import Result

LiveFacts = tuple[TorchLive | Missing, DeepSpeedLive | Missing]
#: What `parse_live` returns, in its order.
LIVE_FACTS: tuple[type[Fact], ...] = (TorchLive, DeepSpeedLive)

#: One step of torch: an import from a cold network disk is slow and healthy.
STEP_SECONDS = 120.0
#: All steps together; below the deadline of the whole check, so that partial results are kept.
LIVE_SECONDS = 175.0
#: How much later than the child's own clock the parent gives up.
GRACE_SECONDS = 5.0
#: Lines of stderr that are kept from a child that died.
STDERR_LINES = 15

_ERROR_NUMBER = re.compile(r"\b[Ee]rror:? (\d+)\b")
#: Errors of `cudaGetDeviceCount` for which torch prints its own message, without the number
#: (c10/cuda/CUDAFunctions.cpp, torch 2.9).
_UNNUMBERED = {
    "CUDA driver initialization failed": 3,
    "The NVIDIA driver on your system is too old": 35,
    "No CUDA GPUs are available": 100,
    "CUDA unknown error": 999,
}


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


def _is_hung(result: Result) -> bool:
    """Whether the child was ended because it was silent, by dsdoctor or by its own timer."""
    return result.timed_out or (result.returncode == 1 and b"\nTimeout (" in b"\n" + result.stderr)


#: Python/traceback.c of CPython 3.14.
_C_STACK = re.compile(r"^(?:Current thread's C stack trace|Cannot get C stack)")


def _tail(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    # faulthandler of Python 3.14 adds the C stack, which would push out the Python frames
    native = [number for number, line in enumerate(lines) if _C_STACK.search(line)]
    lines = lines[: native[0]] if native else lines
    return "\n".join(line[:500] for line in lines[-STDERR_LINES:]).rstrip()


class End(msgspec.Struct, frozen=True):
    """How a child ended before it had finished.

    Attributes:
        died: description for `TorchLive.died`.
        outcome: the same for the import that it was in.
        step: the step that it was in.
    """

    died: str
    outcome: ImportOutcome
    step: str


def end_of(records: Records, result: Result) -> End | None:
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
        kind, died, message = "signal", str(bad_ending(result)), signal_name(number)
    else:
        died = bad_ending(result) or "exit status 0"
        kind, message = "exit", died
    outcome = ImportOutcome(
        ok=False,
        error_type=kind,
        message=message,
        traceback=_tail(result.stderr),
        signal=number,
        seconds=round(waited, 3),
    )
    return End(died=died, outcome=outcome, step=step)


def outcome_of(value: Mapping[str, Any]) -> ImportOutcome:
    """How an import ended, from its record."""
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
    return error_number(str(value.get("error") or ""))


def error_number(text: str) -> int | None:
    """The number of the error of CUDA that torch quotes, or whose own message it is.

    >>> error_number("CUDA driver initialization failed, you might not have a CUDA gpu.")
    3
    """
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
    values = values_of(records)
    end = end_of(records, result)
    imported = values.get("torch_import")
    if imported is None:
        if end is None or end.step != "import torch":
            # the interpreter does not even start
            broken = why_silent(records, result, "torch")
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


def _torch_live(records: Records, values: Mapping[str, Any], end: End | None) -> TorchLive:
    build = values.get("torch_build") or {}
    cuda = values.get("cuda") or {}
    arch_list = build.get("arch_list")
    return TorchLive(
        imported=outcome_of(values["torch_import"]),
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


def _deepspeed_live(values: Mapping[str, Any], end: End | None) -> DeepSpeedLive | Missing:
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
    outcome = outcome_of(imported)
    if failed is not None:
        outcome = ImportOutcome(
            ok=False, error_type=failed.get("error_type"), message=failed.get("error")
        )
    return DeepSpeedLive(imported=outcome, accelerator=values.get("accelerator"))

"""`import dsdoctor`: the commands as functions, for scripts and notebooks.

They return the documents that `--format json` prints, as typed objects with a short `repr` and,
in a notebook, the report itself. Nothing that can hang or crash runs in the caller's process.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.model.diagnosis import Diagnosis
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.model.report import Report
from dsdoctor.model.smoke import SmokeReport

if TYPE_CHECKING:
    from dsdoctor.report.text import Line

__all__ = ["Outcome", "check", "diagnose", "recommend", "smoke"]

D = TypeVar("D")
#: Readable on a light and on a dark notebook; the words say the same.
COLORS = {
    "head": "font-weight:bold",
    "sum": "font-weight:bold",
    "fail": "font-weight:bold;color:#d93f3f",
    "crash": "font-weight:bold;color:#d93f3f",
    "warn": "font-weight:bold;color:#a5740c",
    "unknown": "font-weight:bold;color:#9061d0",
    "ok": "color:#2b8a4b",
    "hint": "color:#1a80a0",
    "skip": "opacity:.75",
    "note": "opacity:.75",
}


class Outcome(Generic[D]):
    """What a command found.

    Attributes:
        document: the typed document; its attributes can be read on the outcome itself.
        exit_status: what the command would have exited with.
    """

    def __init__(
        self, document: D, exit_status: int, summary: str, lines: Callable[[], Iterable[Line]]
    ) -> None:
        self.document = document
        self.exit_status = exit_status
        self._summary = summary
        self._lines = lines

    @property
    def ok(self) -> bool:
        """Whether nothing failed and nothing was inconclusive."""
        return self.exit_status == 0

    def to_json(self) -> str:
        """The document as `--format json` prints it."""
        return msgspec.json.format(msgspec.json.encode(self.document), indent=2).decode()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.document, name)

    def __repr__(self) -> str:
        return f"<dsdoctor {self._summary}>"

    def __str__(self) -> str:
        return "\n".join(line.text for line in self._lines()) + "\n"

    def _repr_html_(self) -> str:
        """The report in color, for notebooks; everything in it is escaped."""
        rows = (
            f"<span style='{COLORS[line.style]}'>{html.escape(line.text)}</span>"
            if line.style in COLORS
            else html.escape(line.text)
            for line in self._lines()
        )
        return "<pre style='white-space:pre-wrap'>" + "\n".join(rows) + "\n</pre>"


def _words(value: Sequence[str | int] | str | int | None) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, (str, int)):
        return tuple(str(value).split(","))
    return tuple(str(item) for item in value)


def _text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)


def check(
    config: str | Path | Mapping[str, Any] | None = None,
    *,
    command: Sequence[str] | str = (),
    gpus: Sequence[str | int] | str | int | None = None,
    expect_gpus: int | None = None,
    hostfile: str | Path | None = None,
    python: str | None = None,
    quick: bool = False,
    deep: bool = False,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    timeout: float | None = None,
    paths: Sequence[str | Path] = (),
    writable: Sequence[str | Path] = (),
    checkpoint: str | Path | None = None,
    plan: str | Path | None = None,
    model: str | Path | None = None,
    sequence: int | None = None,
    finetune: str | None = None,
    lora_rank: int | None = None,
    modules_to_save: Sequence[str] = (),
    profile: str | Path | None = None,
    framework: str | None = None,
    like: str | None = None,
    driver: str | None = None,
) -> Outcome[Report]:
    """Checks whether a job will start on this machine, as `dsdoctor check` does.

    Args:
        config: DeepSpeed config of the job: a file, or a dictionary.
        command: command line of the job, judged and not run.
        gpus: indices or UUIDs of the GPUs that the job uses; None = all that are visible.
        expect_gpus: number of GPUs that must be present.
        hostfile: hostfile of the job.
        python: interpreter or environment to examine; None = look for it.
        quick: start neither torch nor deepspeed.
        deep: allow trial compiles and work on the GPUs.
        select: families, ids or names of conditions; empty = all.
        ignore: conditions to leave out.
        timeout: seconds for everything; None = 180.
        paths: data that must exist and be readable.
        writable: output directories; a trial write is made there.
        checkpoint: checkpoint directory to resume from.
        plan: launch plan written by `recommend`.
        model: preset, size such as `7B`, or config.json, for the memory that the run needs.
        sequence: sequence length of `model`, in tokens.
        finetune: how `model` is trained: `full` or `lora`.
        lora_rank: rank of the adapters.
        modules_to_save: modules that are trained in full next to the adapters (`embed_tokens`,
            `lm_head`, `vision`, or `NAME=COUNT`).
        profile: requirements: a name or a TOML file.
        framework: what passes the config to DeepSpeed (`hf`, `lightning`, `accelerate`, `native`);
            None = read from the script of `command`.
        like: judge this environment on another machine, such as `8xH100-SXM`.
        driver: with `like`: the version of its driver.

    Raises:
        UsageError: an argument does not fit; the message says what was expected.
    """
    from dsdoctor import packs, settings  # noqa: PLC0415  # `import dsdoctor` stays light
    from dsdoctor.examine import Request, examine, read_machine  # noqa: PLC0415
    from dsdoctor.job import config_file  # noqa: PLC0415
    from dsdoctor.job.request import run_needs, with_job  # noqa: PLC0415
    from dsdoctor.judge import Policy, judge, require_checks  # noqa: PLC0415
    from dsdoctor.model.report import exit_code  # noqa: PLC0415
    from dsdoctor.report import text  # noqa: PLC0415

    if driver is not None and like is None:
        raise UsageError("`driver` requires `like`; pass both")
    registry = packs.load()
    found, _ = settings.without_leftovers(settings.load(), registry)
    units = registry.select(tuple(select), [*found.ignore, *ignore])
    policy = Policy(limits=found.limits)
    require_checks(units, policy)
    with config_file.of(config) as path:
        run = run_needs(
            gpus=None if gpus is None else _words(gpus),
            expect_gpus=expect_gpus,
            config=path,
            hostfile=_text(hostfile),
            quick=quick,
            deep=deep,
            command=(command,) if isinstance(command, str) and command else tuple(command),
        )
        run = with_job(
            run,
            paths=tuple(map(str, paths)),
            writable=tuple(map(str, writable)),
            checkpoint=_text(checkpoint),
            plan=_text(plan),
            model=_text(model),
            sequence=sequence,
            finetune=finetune,
            lora_rank=lora_rank,
            modules_to_save=",".join(modules_to_save) or None,
            profile=_text(profile),
            framework=framework,
        )
        request = Request(run=run, python=python, timeout=timeout)
        if like is None:
            _, report = examine(request, registry, units, policy)
        else:
            from dsdoctor import compose  # noqa: PLC0415  # only for another machine
            from dsdoctor.host import LocalHost  # noqa: PLC0415

            here = read_machine(request, registry, units)
            node, name = compose.machine_like(like, driver), f"a machine like {like}"
            made = compose.with_job(compose.composed(here, node, name), run, LocalHost(), registry)
            report = judge(made, units, registry, policy)
    counts = ", ".join(f"{number} {name}" for name, number in report.counts.items() if number)
    summary = f"check: {report.verdict.value}: {counts}"
    return Outcome(report, exit_code(report), summary, lambda: text.lines(report))


def diagnose(
    *paths: str | Path, text: str | None = None, expect: Sequence[str] = ()
) -> Outcome[Diagnosis]:
    """Finds out from its logs why a run died, as `dsdoctor diagnose` does.

    Args:
        paths: logs, or folders of logs.
        text: the text of a log in place of files, such as `traceback.format_exc()`.
        expect: what must have been active, such as `zero3` or `4gpus`.

    Raises:
        UsageError: a path does not exist or cannot be read.
    """
    from dsdoctor import logs, packs  # noqa: PLC0415  # `import dsdoctor` stays light
    from dsdoctor.model.diagnosis import exit_code  # noqa: PLC0415
    from dsdoctor.report import diagnosis as report  # noqa: PLC0415

    if text is not None and paths:
        raise UsageError("a text and paths were passed; pass one of them")
    if text is None and not paths:
        raise UsageError("no log was passed; expected paths of logs or of folders with logs")
    signatures = logs.signatures_of(packs.load())
    try:
        if text is not None:
            source = logs.Source("text", data=text.encode("utf-8", "replace"))
            found = logs.diagnose([source], signatures, expect=expect)
        else:
            found = logs.diagnose_paths([str(path) for path in paths], signatures, expect=expect)
    except logs.ReadError as error:
        raise UsageError(str(error)) from None
    return Outcome(
        found,
        exit_code(found),
        f"diagnosis: {found.outcome.value}: {found.summary}",
        lambda: report.lines(found),
    )


def smoke(
    *,
    gpus: Sequence[str | int] | str | int | None = None,
    cpu: int | None = None,
    config: str | Path | None = None,
    model: str | Path | None = None,
    plan: str | Path | None = None,
    full_size: bool = False,
    steps: int | None = None,
    precision: str | None = None,
    launcher: str | None = None,
    hostfile: str | Path | None = None,
    python: str | None = None,
    timeout: float = 300.0,
    bisect: bool = False,
    bisect_budget: float = 600.0,
) -> Outcome[SmokeReport]:
    """Proves launch settings with a short real training run, as `dsdoctor smoke` does.

    The ranks are processes of their own, and none of them is left when this returns.

    Args:
        gpus: indices or UUIDs of the GPUs to run on; None = all that are visible.
        cpu: run this many ranks on CPUs instead.
        config: DeepSpeed config to try.
        model: as for `recommend`, or `tiny`.
        plan: a launch.json that `recommend` wrote.
        full_size: build the planned model at full size instead of a small one.
        steps: optimizer steps, 3 or more; None = the default of the command.
        precision: `bf16`, `fp16` or `fp32`.
        launcher: `deepspeed` or `torchrun`.
        hostfile: hostfile of the run.
        python: interpreter or environment to run in; None = look for it.
        timeout: seconds for one run, not counting the compilation of ops.
        bisect: after a failure, look for one setting that makes the run work.
        bisect_budget: seconds for that search.

    Raises:
        UsageError: the run cannot start here, or root requested it in an environment of another
            account: the command drops root's privileges for that, a function cannot.
    """
    import dataclasses  # noqa: PLC0415  # `import dsdoctor` stays light

    from dsdoctor import interpreter, packs  # noqa: PLC0415
    from dsdoctor.host import LocalHost, account  # noqa: PLC0415
    from dsdoctor.machines import this_machine  # noqa: PLC0415
    from dsdoctor.model.smoke import EXIT  # noqa: PLC0415
    from dsdoctor.report import smoke as report  # noqa: PLC0415
    from dsdoctor.smoke import request  # noqa: PLC0415
    from dsdoctor.smoke.run import ProofOptions, prove  # noqa: PLC0415

    if steps is not None and steps < request.FEWEST_STEPS:
        raise UsageError(f"`steps` is {steps}; expected {request.FEWEST_STEPS} or more")
    registry = packs.load()
    chosen = interpreter.choose(LocalHost(), python).executable
    account.refuse_foreign(chosen)
    words = None if gpus is None else _words(gpus)
    asked = request.SmokeOptions(
        gpus=None if words is None else ",".join(words),
        cpu=cpu,
        config=_text(config),
        model=_text(model),
        plan=_text(plan),
        full_size=full_size,
        precision=precision,
        launcher=launcher,
        hostfile=_text(hostfile),
    )
    if steps is not None:
        asked = dataclasses.replace(asked, steps=steps)
    made = request.plan(asked, lambda: this_machine.read(words, registry))
    found = prove(
        made, chosen, registry, ProofOptions(timeout=timeout, budget=bisect_budget, bisect=bisect)
    )
    return Outcome(
        found,
        EXIT[found.verdict],
        f"smoke: {found.verdict}: {found.summary}",
        lambda: report.lines(found, 100),
    )


def recommend(
    model: str | Path,
    *,
    gpus: Sequence[str | int] | str | int | None = None,
    like: str | None = None,
    gpu_memory_gib: float | None = None,
    gpu_count: int = 1,
    compute_capability: tuple[int, int] = (8, 0),
    host_memory_gib: float | None = None,
    **options: Any,
) -> Outcome[LaunchPlan]:
    """Computes launch settings for a model, as `dsdoctor recommend` does.

    Args:
        model: a config.json, the name of a preset, or a size such as `1.5B`.
        gpus: GPUs of this machine to use; None = all that are visible.
        like: plan for another machine, such as `8xH100-SXM`.
        gpu_memory_gib: plan for another machine, whose GPUs have this much memory.
        gpu_count: how many of those.
        compute_capability: of those.
        host_memory_gib: host memory to plan with; None = what this machine has, else not known.
        options: fields of `dsdoctor.recommend.options.PlanOptions`, such as `sequence`,
            `micro_batch`, `global_batch`, `precision` or `finetune`.

    Raises:
        UsageError: the model or the product is not known, or an option does not fit.
    """
    given = {"gpus": gpus, "like": like, "gpu_memory_gib": gpu_memory_gib}
    named = [f"`{name}`" for name, value in given.items() if value is not None]
    if len(named) > 1:
        raise UsageError(f"{' and '.join(named)} describe different machines; pass one of them")
    import dataclasses  # noqa: PLC0415  # `import dsdoctor` stays light

    from dsdoctor.machines import other_machine, this_machine  # noqa: PLC0415
    from dsdoctor.model.units import GIB  # noqa: PLC0415
    from dsdoctor.packs.loading import load  # noqa: PLC0415
    from dsdoctor.recommend import models  # noqa: PLC0415
    from dsdoctor.recommend.machine import machine_of  # noqa: PLC0415
    from dsdoctor.recommend.options import PlanOptions  # noqa: PLC0415
    from dsdoctor.recommend.planning import recommend as plan_for  # noqa: PLC0415
    from dsdoctor.report.launch_plan import render  # noqa: PLC0415
    from dsdoctor.report.text import Line  # noqa: PLC0415

    shape = models.resolve(str(model))
    if like is not None:
        machine = other_machine.like(like)
    elif gpu_memory_gib is not None:
        machine = machine_of(gpu_gib=gpu_memory_gib, count=gpu_count, cc=compute_capability)
    else:
        machine = this_machine.read(None if gpus is None else _words(gpus), load()).machine()
    if host_memory_gib is not None:
        machine = dataclasses.replace(machine, host_bytes=int(host_memory_gib * GIB))
    try:
        wanted = PlanOptions(**options)
    except TypeError:
        known = ", ".join(f"`{name}`" for name in PlanOptions.__dataclass_fields__)
        raise UsageError(f"an option of `recommend` is not known; expected {known}") from None
    plan = plan_for(machine, shape, wanted)
    return Outcome(
        plan,
        0 if plan.fits else 1,
        f"recommend: {'fits' if plan.fits else 'nothing fits'}",
        lambda: map(Line, render(plan, 100, None).splitlines()),
    )

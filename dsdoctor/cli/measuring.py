"""`recommend --measure`: measures passes of the model itself instead of using a formula."""

from __future__ import annotations

import dataclasses
from typing import Any

from dsdoctor.errors import NotMeasuredError, UsageError
from dsdoctor.host import Host
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.recommend import measured, models
from dsdoctor.recommend.machine import Machine
from dsdoctor.recommend.measured import Measured
from dsdoctor.recommend.options import PlanOptions
from dsdoctor.recommend.planning import Measure, recommend
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape


@dataclasses.dataclass(frozen=True)
class Subject:
    """What to plan for, and how its passes are sized.

    Attributes:
        shape: the model.
        measure: measures its passes, None = use a formula.
        formula: a formula exists if it cannot be measured.
    """

    shape: ModelShape
    measure: Measure | None = None
    formula: bool = True

    def plan(self, machine: Machine, options: PlanOptions) -> LaunchPlan:
        """The launch plan; by formula if measuring is not possible and was not requested.

        Raises:
            UsageError: the request contradicts itself, or the measurement failed.
        """
        try:
            return recommend(machine, self.shape, options, self.measure)
        except NotMeasuredError as error:
            if not self.formula:
                raise
            note = f"activations are computed by formula: {error}"
            machine = dataclasses.replace(machine, notes=(*machine.notes, note))
            return recommend(machine, self.shape, options)


def _interpreter(host: Host, python: str | None) -> str:
    from dsdoctor import interpreter  # noqa: PLC0415  # a formula needs no interpreter

    return interpreter.choose(host, python).executable


def _measure_with(host: Host, python: str, name: str, config: dict[str, Any]) -> Measure:
    from dsdoctor.probes import model_passes  # noqa: PLC0415  # a formula needs no child

    def measure(
        shape: ModelShape, base: Setting, sizes: tuple[int, ...], modes: tuple[bool, ...]
    ) -> tuple[ModelShape, Measured]:
        asked = measured.cases(base, measured.batches_for(sizes), modes, family=shape.family)
        records = model_passes.ask(host, python, config, asked)
        found = measured.read(records, len(asked))
        built = measured.shape_of(records, name) or shape
        if shape.built or shape.stated_parameters is not None:
            return built, found
        counted = {
            name: getattr(built, name)
            for name in ("sizes", "modules", "stacked", "shared", "adapted")
        }
        return dataclasses.replace(shape, **counted), found

    return measure


def subject(
    host: Host,
    text: str,
    python: str | None,
    *,
    wanted: bool | None,
    given: dict[str, int | None],
) -> Subject:
    """What `--model` means, and whether to measure it: by default if it is a file.

    Args:
        host: the machine.
        text: value of `--model`.
        python: value of `--python`.
        wanted: value of `--measure`, None = a file is measured if its environment can.
        given: `layers`, `hidden`, `heads` and `vocab` of a model that is described by its size.

    Raises:
        UsageError: it is not a model, or it can only be measured and that is not possible.
    """
    if wanted is False or (wanted is None and not models.is_file(text)):
        return Subject(models.resolve(text, **given))
    known = models.config_of(text)
    if known is None:
        raise UsageError(
            f"`--measure` runs the model, but only the size of `{text}` is known; pass its "
            "`config.json` or a preset"
        )
    name, config = known
    shape: ModelShape | None = None
    uncovered: UsageError | None = None
    try:
        shape = models.resolve(text, **given)
    except UsageError as error:
        if "model_type" not in config:
            raise
        uncovered = error
    try:
        executable = _interpreter(host, python)
        shape = shape or _built(host, executable, name, config)
    except UsageError as error:
        if uncovered is not None:
            what = getattr(uncovered, "what", str(uncovered))
            raise UsageError(f"{what}; {error}; {models.OTHERWISE}") from None
        raise
    by_formula = wanted is None and not shape.built
    return Subject(shape, _measure_with(host, executable, name, config), by_formula)


def _built(host: Host, executable: str, name: str, config: dict[str, Any]) -> ModelShape:
    """The shape of a model that no formula knows, counted on the model itself."""
    from dsdoctor.probes import model_passes  # noqa: PLC0415  # a formula needs no child

    records = model_passes.ask(host, executable, config, [])
    measured.read(records, 0)
    shape = measured.shape_of(records, name)
    if shape is None:
        raise NotMeasuredError(f"`{executable}` did not build it")
    return shape

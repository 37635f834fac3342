"""The heading of a report: the host, its GPUs, and the environment that was examined."""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.model.facts.gpu import Nvml
from dsdoctor.model.facts.machine import NvidiaKernel
from dsdoctor.model.facts.python import DeepSpeedInstall, TorchBuild
from dsdoctor.model.report import IN_CONTAINER, Report
from dsdoctor.report.text import clean


def gpu_words(report: Report) -> str:
    """The GPUs in words, for a heading; GPUs that could not be read are not called absent."""
    if report.gpus:
        return clean(" + ".join(report.gpus))
    unread = Nvml.key() in report.unread or NvidiaKernel.key() in report.unread
    return "GPUs not read" if unread else "no NVIDIA GPU"


def package_words(report: Report, kind: type[TorchBuild | DeepSpeedInstall]) -> str:
    """A package with its version in words, for a heading."""
    name, patient = ("torch" if kind is TorchBuild else "deepspeed"), report.patient
    version = patient.torch if kind is TorchBuild else patient.deepspeed
    if version:
        return f"{name} {clean(version)}"
    return f"{name} not read" if kind.key() in report.unread else f"no {name}"


def items(report: Report) -> Iterator[str]:
    """The items of the heading."""
    if isinstance(report.judged, int):
        yield from _stated_header(report)
        return
    if isinstance(report.origin, str):
        yield clean(report.origin)
    if report.host or not isinstance(report.origin, str):
        yield clean(report.host or "unknown host")
    yield gpu_words(report)
    if report.driver:
        yield f"driver {clean(report.driver)}"
    patient = report.patient
    if patient.chosen_by == IN_CONTAINER:
        yield "container not examined"
    else:
        python = clean(patient.python or "no Python interpreter")
        yield f"{python} ({clean(patient.chosen_by)})" if patient.chosen_by else python
        yield package_words(report, TorchBuild)
        yield package_words(report, DeepSpeedInstall)
    if report.config:
        yield f"config {clean(report.config)}"


def _stated_header(report: Report) -> Iterator[str]:
    """The items for a paste: only what it states, nothing about what it leaves out."""
    yield clean(str(report.origin))
    if report.gpus:
        yield clean(" + ".join(report.gpus))
    patient = report.patient
    named = (
        ("driver", report.driver),
        ("torch", patient.torch),
        ("deepspeed", patient.deepspeed),
        ("config", report.config),
    )
    for word, value in named:
        if value:
            yield f"{word} {clean(value)}"

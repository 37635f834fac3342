"""`dsdoctor lint`."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from dsdoctor.cli import common, html, job, loading, options
from dsdoctor.errors import MISUSE, UsageError
from dsdoctor.examine import Request, read_machine
from dsdoctor.lint import FileReport, Linter, installed
from dsdoctor.lint_files import find_files
from dsdoctor.model.facts.python import DeepSpeedInstall, Packages
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.masking import mask
from dsdoctor.model.report import Report, Verdict
from dsdoctor.packs.registry import Registry
from dsdoctor.report import machine_readable, sarif
from dsdoctor.report.text import clean

SCHEMA = "dsdoctor/lint"
VERSION = 1
#: Most unjudged launch lines that the text lists.
MOST_NAMED = 5
_RELEASE = r"\d+\.\d+(?:\.\d+)?(?:(?:a|b|rc|\.dev|\.post)\d+)?(?:\+\S{1,20})?"
WORDS = {Status.FAIL: "FAIL", Status.WARN: "WARN", Status.CRASH: "CRASH"}


@click.command("lint")
@click.argument("paths", metavar="FILE|DIR…", nargs=-1, required=True)
@click.option(
    "--deepspeed",
    "version",
    metavar="VERSION",
    help="DeepSpeed release to lint against.",
    show_default="the installed one",
)
@options.output_format("text", "json", "github", "sarif")
@click.option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
@options.selection
@job.framework_option
@click.option(
    "--python", metavar="PATH", help="Environment whose DeepSpeed and accelerate to lint against."
)
@click.option(
    "--fail-on",
    type=click.Choice(["warn", "fail"]),
    default="fail",
    show_default=True,
    help="Exit with 1 at this level or above.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print findings only.")
def command(
    *,
    paths: tuple[str, ...],
    version: str | None,
    framework: str | None,
    form: str,
    output: str | None,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    python: str | None,
    fail_on: str,
    quiet: bool,
) -> int:
    """Check DeepSpeed configs, hostfiles and launch commands in files, without examining a machine.

    Reads ds_config files (JSON or Hjson), DeepSpeed settings in the YAML files of accelerate and
    trainers, hostfiles, `.deepspeed_env` and the launch commands in shell scripts, Kubernetes
    manifests, Compose files, Dockerfiles and CI workflows. The containers of manifests and Compose
    files are compared with what their commands need. A config that one of these files names is
    checked too. Other files in a directory are ignored. If you pass such a file by name, the exit
    status is 2; the rest is still checked.

    Exit status: 0 no failure, 1 a failure, 2 misuse.

    \b
    Examples:
      dsdoctor lint ds_config.json
      dsdoctor lint configs/ scripts/ --format github
      dsdoctor lint --deepspeed 0.16.4 configs/
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    if version is not None and not re.fullmatch(_RELEASE, version):
        raise UsageError(f"`--deepspeed {version}` is not a version; expected one such as 0.16.4")
    form = html.form_of(form, output)
    registry = loading.load_registry()
    settings = common.load_settings(registry)
    wanted = [item for word in select for item in loading.split(word)]
    unwanted = [item for word in ignore for item in loading.split(word)]
    units = registry.select(wanted, [*settings.ignore, *unwanted])
    against, packages = (version, None) if version else _installed(python, registry)
    linter = Linter(
        registry,
        units,
        against,
        common.policy(settings, ()),
        framework,
        packages,
        chosen=python is not None,
    )
    reports, refused = _lint_all(linter, paths)
    if reports or not refused:
        loading.write(_rendered(reports, registry, form, against, quiet=quiet), output)
    for reason in refused:
        common.warn(mask(reason))
    if refused:
        return MISUSE
    statuses = {finding.status for report in reports for finding in report.findings}
    bad = {Status.FAIL, Status.CRASH} | ({Status.WARN} if fail_on == "warn" else set())
    return 1 if statuses & bad else 0


def _lint_all(linter: Linter, paths: Sequence[str]) -> tuple[list[FileReport], list[str]]:
    """The reports, and why files that the user passed could not be judged."""
    reports: list[FileReport] = []
    refused: list[str] = []
    files = find_files(paths)
    for path, shown, named in files:
        try:
            found = linter.lint(path, shown, named=named)
        except UsageError as error:
            refused.append(str(error))
            continue
        if found is not None:
            reports.append(found)
        elif named:
            refused.append(
                f"`{shown}` is not a DeepSpeed config, hostfile, `.deepspeed_env`, launch script,"
                " manifest or Dockerfile"
            )
    _lint_named(linter, reports, {path.resolve() for path, *_ in files})
    return reports, refused


def _lint_named(linter: Linter, reports: list[FileReport], done: set[Path]) -> None:
    """Adds the reports of the files that these name, and of those that they name in turn."""
    for report in reports:  # grows
        for path in report.names:
            if path.resolve() in done:
                continue
            done.add(path.resolve())
            # one that cannot be read is the job's to refuse
            with contextlib.suppress(UsageError):
                found = linter.lint(path, _shown(path), named=True)
                reports += [found] if found is not None else []


def _shown(path: Path) -> str:
    """A path as the user would write it: from the working folder, where that is shorter."""
    return min(os.path.relpath(path), str(path), key=len)


def _installed(python: str | None, registry: Registry) -> tuple[str | None, Packages | None]:
    """The release of DeepSpeed in the environment, and its packages; None = not known."""
    request = Request(
        run=RunNeeds(quick=True),
        python=python,
        facts=frozenset({DeepSpeedInstall, Packages}),
        timeout=30,
    )
    return installed(read_machine(request, registry))


def _rendered(
    reports: list[FileReport], registry: Registry, form: str, version: str | None, *, quiet: bool
) -> str:
    findings = [finding for report in reports for finding in report.findings]
    if form == "sarif":
        return sarif.render(findings, registry)
    if form == "github":
        bad = any(finding.status is not Status.WARN for finding in findings)
        verdict = Verdict.FAULTY if bad else Verdict.HEALTHY
        return machine_readable.github(Report(findings=findings, verdict=verdict))
    if form == "json":
        document = {
            "schema": SCHEMA,
            "version": VERSION,
            "deepspeed": version,
            "files": [
                {
                    "path": report.path,
                    "kind": report.kind,
                    "findings": report.findings,
                    "not_judged": report.not_judged,
                    "not_followed": [
                        {"line": line, "reason": reason} for line, reason in report.not_followed
                    ],
                }
                for report in reports
            ],
        }
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"
    rows = [row for finding in findings for row in _lines(finding)]
    if not quiet:
        failures = sum(finding.status is not Status.WARN for finding in findings)
        against = f"DeepSpeed {version}" if version else "no particular DeepSpeed release"
        left = [f"{report.path}:{line}" for report in reports for line in report.not_judged]
        checked = sum(report.parts > 0 for report in reports)
        idle = [
            clean(report.path)
            for report in reports
            if not (report.parts or report.not_judged or report.not_followed)
        ]
        if idle:
            more = f" and {len(idle) - MOST_NAMED} more" if len(idle) > MOST_NAMED else ""
            rows.append(f"no launch command in: {', '.join(idle[:MOST_NAMED])}{more}")
        if left:
            more = f" and {len(left) - MOST_NAMED} more" if len(left) > MOST_NAMED else ""
            rows.append(
                f"not judged, because a shell or a template fills in their variables: "
                f"{', '.join(left[:MOST_NAMED])}{more}"
            )
        strange = [
            f"not followed: {clean(report.path)}:{line}: {clean(reason)}"
            for report in reports
            for line, reason in report.not_followed
        ]
        rows += strange[:MOST_NAMED]
        if len(strange) > MOST_NAMED:
            rows.append(f"not followed: {len(strange) - MOST_NAMED} more lines")
        rows.append(
            f"{checked} file{'s' * (checked != 1)} checked against {against}: "
            f"{failures} failure{'s' * (failures != 1)}, {len(findings) - failures} "
            f"warning{'s' * (len(findings) - failures != 1)}"
        )
    return "".join(f"{row}\n" for row in rows)


def _lines(finding: Finding) -> list[str]:
    line = finding.evidence.get("line")
    place = f"{finding.evidence.get('file')}" + (f":{line}" if line else "")
    rows = [
        f"{clean(place)}: {WORDS[finding.status]} {finding.condition} ({finding.id})",
        f"    {clean(finding.message)}",
    ]
    if finding.hint:
        rows.append(f"    hint: {clean(finding.hint)}")
    return rows

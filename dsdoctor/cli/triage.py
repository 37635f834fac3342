"""`dsdoctor triage`: the text of an issue, its logs and its environment, for maintainers."""

from __future__ import annotations

import re

import click
import msgspec

from dsdoctor import logs, reading
from dsdoctor.cli import html, loading, log_heads, pasted
from dsdoctor.cli.options import text_or_json
from dsdoctor.cli.output import show, wants_colour
from dsdoctor.errors import UsageError
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.diagnosis import Diagnosis, exit_code
from dsdoctor.model.report import Report
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.lines import lines_of
from dsdoctor.report import diagnosis as report
from dsdoctor.report.wrap import terminal_columns, wrap

#: A part of the report that may be missing, and the tool whose output contains it.
_ASK = (
    ("driver", "`nvidia-smi`"),
    ("torch", "`python -m torch.utils.collect_env`"),
    ("deepspeed", "`ds_report`"),
)
#: What shows that the devices are not NVIDIA's: their tools, torch for them, DeepSpeed's choice.
_OTHERS = re.compile(
    r"\b(?:npu-smi|hl-smi|rocm-smi|rocminfo|xpu-smi|torch[-_]npu)\b|^- (?:NPU type|CANN version): "
    r"|\bds_accelerator to (?:npu|hpu|xpu|mps)\b|\b\d\.\d{1,2}\.\d\S{0,20}\+(?:rocm|xpu|hpu)",
    re.MULTILINE,
)


@click.command("triage")
@click.argument("issue", metavar="ISSUE.md")
@text_or_json
@click.option(
    "--checks-dir", multiple=True, metavar="DIR", help="Directory with additional checks."
)
@click.option("-o", "--output", metavar="FILE", help="Write the report to FILE.")
def command(issue: str, *, form: str, checks_dir: tuple[str, ...], output: str | None) -> int:
    """Diagnose an issue from the logs and the environment in its text.

    ISSUE.md is a file, or `-` for standard input. Markdown fences, quoted mail and terminal codes
    are removed first. The report shows the cause found in the logs and the problems found in the
    output of `collect_env`, `ds_report`, `nvidia-smi` and other tools, and says what to ask for.

    Exit status: 1 a cause or a failure was found, 2 misuse, 3 neither was found.

    \b
    Examples:
      dsdoctor triage issue.md
      gh issue view 4711 | dsdoctor triage -
    """  # noqa: D301  # \b is click's mark, not an escape for Python's reader
    form = html.form_of(form, output)
    registry = loading.load_registry(checks_dir)
    try:
        data = reading.read(issue)
    except (OSError, DecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"`{issue}` cannot be read: {reason}; expected an issue's text") from None
    text, whole = log_heads.beginning(issue, data)
    known = logs.signatures_of(registry)
    if last := pasted.last_read(text, whole=whole):
        diagnosis = pasted.of_a_log(issue, data, last, known)
    else:
        diagnosis = pasted.diagnosed(issue, lines_of(text), known)
    diagnosis = pasted.with_environment(diagnosis, environment_of(text), registry)
    if form == "json":
        document = msgspec.json.format(msgspec.json.encode(diagnosis), indent=2).decode() + "\n"
        loading.write(document, output)
    elif output is None and wants_colour():
        show(lambda width: report.lines(diagnosis, width=width, of_issue=True))
    else:
        loading.write(report.render(diagnosis, of_issue=True), output)
    if form == "text" and output is None:
        _ask(diagnosis, text)
    return 1 if exit_code(diagnosis) == 1 else 3


def _ask(diagnosis: Diagnosis, text: str) -> None:
    """What the reporter should add if the text leaves it out."""
    environment = diagnosis.environment
    known = environment if isinstance(environment, Report) else Report()
    have = {
        "driver": known.driver,
        "torch": known.patient.torch,
        "deepspeed": known.patient.deepspeed,
    }
    elsewhere = _OTHERS.search(text)
    missing = [
        tool for name, tool in _ASK if not have[name] and not (name == "driver" and elsewhere)
    ]
    if missing:
        asked = f"ask for the output of {', '.join(missing)}"
        click.echo("\n".join(wrap(asked, terminal_columns(100), "", "", break_long=False)))

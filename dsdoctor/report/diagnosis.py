"""A diagnosis as plain text."""

from __future__ import annotations

from dsdoctor.model.diagnosis import Diagnosis, Line, Outcome

WORDS = {
    Outcome.CAUSE: "CAUSE",
    Outcome.USER_CODE: "USER CODE",
    Outcome.UNRECOGNISED: "UNRECOGNISED",
    Outcome.CLEAN: "CLEAN",
}


def _where(line: Line) -> str:
    rank = "" if line.rank is None else f" rank {line.rank}"
    return f"{line.file}:{line.line}{rank}: {line.text}"


def render(diagnosis: Diagnosis) -> str:
    """The text that `diagnose` prints."""
    out: list[str] = []
    for place, cause in enumerate(diagnosis.causes):
        head = "CAUSE" if place == 0 else "or   "
        out.append(f"{head}  {cause.condition} ({cause.confidence:.0%})")
        out.append(f"       {cause.message}")
        out += [f"       {_where(line)}" for line in cause.evidence]
        if cause.masks:
            out.append(f"       explains: {', '.join(cause.masks)}")
        out.append(f"       hint: {cause.hint}")
        out.append("")
    if diagnosis.outcome is not Outcome.CAUSE:
        out.append(f"{WORDS[diagnosis.outcome]}  {diagnosis.summary}")
    error = diagnosis.first_error
    if error is not None and diagnosis.outcome is not Outcome.CLEAN:
        rank = "" if error.rank is None else f" on rank {error.rank}"
        what = f"{error.type}: {error.message}" if error.message else error.type
        out.append(f"first error{rank}: {what} ({error.file}:{error.line})")
    out += [f"  considered: {_where(line)}" for line in diagnosis.considered]
    for answer in diagnosis.expectations:
        proof = f" ({_where(answer.evidence)})" if answer.evidence is not None else ""
        out.append(f"expect {answer.name}: {answer.state}, {answer.message}{proof}")
    if diagnosis.causes:
        name = diagnosis.causes[0].condition
        out.append(f"`dsdoctor explain {name}` tells more")
    plural = "" if diagnosis.files == 1 else "s"
    out.append(f"{diagnosis.files} log{plural}, {diagnosis.lines} lines read")
    return "\n".join(out) + "\n"

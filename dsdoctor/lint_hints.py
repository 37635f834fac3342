"""Hints about variables, for a file that sets them: nobody can `unset` those in a shell."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dsdoctor.model.finding import Finding

#: How the hints of conditions ask for it.
_RUN = re.compile(r"run `unset (?P<names>[A-Za-z_]\w*(?: [A-Za-z_]\w*)*)`")
_SAID = re.compile(r"\bunset `(?P<names>[A-Za-z_]\w*)`")


def in_file(finding: Finding, lines: Mapping[str, int], file: str, line: int) -> tuple[str, int]:
    """The hint of a finding about variables that a file sets, and the line that it is about.

    Args:
        finding: of a check that judged the variables as those of a machine.
        lines: the line of each variable.
        file: the name of the file.
        line: the line, as far as the finding knows it.

    >>> from dsdoctor.model.finding import Status
    >>> hint, about = "run `unset A B`, or C", {"variable": "B"}
    >>> one = Finding(status=Status.WARN, message="", hint=hint, evidence=about)
    >>> in_file(one, {"A": 3, "B": 4}, "a.yaml", 1)
    ('remove `A` and `B` from lines 3 and 4 of `a.yaml`, or C', 4)
    """
    evidence = finding.evidence
    named = evidence.get("variables")
    about = [*named] if isinstance(named, dict) else [str(evidence.get("variable"))]
    own = sorted(lines[name] for name in about if name in lines)

    def removed(found: re.Match[str]) -> str:
        names = found["names"].split()
        at = sorted({lines[name] for name in names if name in lines})
        if not at:
            return found[0]
        where = _joined([str(one) for one in at])
        what = _joined([f"`{name}`" for name in names])
        return f"remove {what} from line{'s' * (len(at) > 1)} {where} of `{file}`"

    hint = _SAID.sub(removed, _RUN.sub(removed, finding.hint))
    return hint, own[0] if own else line


def _joined(words: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))

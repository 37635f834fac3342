"""Whether the interpreter that is examined can parse the training script and its own modules."""

from __future__ import annotations

import posixpath
import sys

from dsdoctor.api import LaunchCommand, Missing, Patient, RunNeeds, ScriptSyntax, probe
from dsdoctor.framework import syntax_of
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.interpreter import run_child
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.probes.script_imports import examined_script, imports_of

#: Seconds for all files; they may be on a slow network disk.
SECONDS = 30.0
#: More modules than most scripts have next to them.
MOST = 50


@probe
def script_syntax(
    host: Host,
    run: RunNeeds,
    command: LaunchCommand,
    choice: PatientChoice,
    patient: Patient | Missing,
) -> ScriptSyntax | Missing:
    """Finds the files from here; a child of the interpreter parses them and runs nothing."""
    script = examined_script(run, command, choice)
    path = posixpath.normpath(posixpath.join(run.cwd, script))
    texts = {path: read_text(host, path)}
    _add_own(host, path, texts)
    said, _ = run_child(
        host, choice.executable, "parse_files", list(texts), timeout=SECONDS, cwd=run.cwd
    )
    records = [record for record in said if record.get("file") in texts]
    if not records:
        return Missing(why=Why.BROKEN, detail=f"`{choice.executable}` parsed no file")
    wrong = next((record for record in records if not record.get("ok")), None)
    if wrong is None:
        return ScriptSyntax(script=script, parsed=len(records))
    file = str(wrong["file"])
    own = sys.version_info[:2]
    older = not isinstance(patient, Missing) and _release(patient.version) < own
    return ScriptSyntax(
        script=script,
        parsed=len(records),
        file=posixpath.relpath(file, run.cwd) if not posixpath.isabs(script) else file,
        line=int(wrong["line"]),
        error_type=str(wrong["error_type"]),
        error=str(wrong["error"]),
        newer=f"{own[0]}.{own[1]}" if older and syntax_of(texts[file]) is not None else None,
    )


def _release(version: str) -> tuple[int, ...]:
    """The first two numbers of a version of Python.

    >>> _release("3.9.18")
    (3, 9)
    """
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())


def _add_own(host: Host, script: str, texts: dict[str, str]) -> None:
    """Adds the modules next to a script that it imports, directly or through each other.

    Python puts the folder of the script first on the path, so a file there is what is imported,
    unless Python itself has loaded a module of that name.
    """
    folder = posixpath.dirname(script)
    waiting = [script]
    while waiting and len(texts) < MOST:
        names = (imports_of(texts[waiting.pop()]) or {}).keys() - sys.stdlib_module_names
        for name in sorted(names):
            for file in (f"{name}/__init__.py", f"{name}.py"):  # in Python's order
                path = posixpath.join(folder, file)
                if path in texts:
                    break
                try:
                    texts[path] = read_text(host, path)
                except HostError:
                    continue
                waiting.append(path)
                break

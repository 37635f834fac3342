"""How variables of a fix reach the shell that starts a job, without editing startup files.

Each fix has its own snippet in `env.d`, and one loader reads all of them. A conda environment loads
it on activation (`activate.d`); otherwise the user sources the loader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dsdoctor.api import Env, FixRequest, Patient, Reach, Step, Write, prepended


def base_of(patient: Patient, request: FixRequest) -> tuple[str, Reach]:
    """Directory for the files of fixes, and the reach of a write there.

    For a system interpreter they go to the user's home directory.
    """
    if patient.kind == "system":
        return request.state, Reach.HOME
    return f"{patient.prefix.rstrip('/')}/opt/dsdoctor", Reach.ENV


def _single_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def snippet(fix: str, variables: Mapping[str, str]) -> str:
    """Lines of a POSIX shell that set variables; "" unsets one.

    >>> print(snippet("x", {"A": "1 2", "B": "", "PATH": "/c/bin:$PATH"}), end="")
    # written by `dsdoctor fix x`; `dsdoctor fix --undo` removes it
    export A='1 2'
    unset B
    case ":$PATH:" in *:'/c/bin':*) ;; *) PATH='/c/bin'":$PATH" ;; esac; export PATH
    """
    lines = [f"# written by `dsdoctor fix {fix}`; `dsdoctor fix --undo` removes it"]
    for name, value in variables.items():
        if not value:
            lines.append(f"unset {name}")
        elif (added := prepended(name, value)) is not None:
            folder = _single_quoted(added[0])
            test = f'case ":${name}:" in *:{folder}:*) ;; *) {name}={folder}{added[1]} ;; esac'
            lines.append(f"{test}; export {name}")
        else:
            lines.append(f"export {name}={_single_quoted(value)}")
    return "\n".join([*lines, ""])


def _restorer(fix: str, variables: Mapping[str, str]) -> tuple[str, str]:
    """What a conda environment runs on activation and deactivation, besides the snippet."""
    tag = re.sub(r"\W", "_", fix).upper()
    save, back = [], []
    for name in variables:
        old = f"_DSDOCTOR_{tag}_{name}"
        save.append(f'export {old}="${{{name}-_unset_}}"')
        back.append(
            f'if [ "${{{old}-}}" = _unset_ ]; then unset {name}; else export {name}="${{{old}-}}"; fi; '
            f"unset {old}"
        )
    return "\n".join([*save, ""]), "\n".join([*back, ""])


def activation(
    fix: str, variables: Mapping[str, str], patient: Patient, request: FixRequest
) -> tuple[tuple[Step, ...], str]:
    """Steps that persist variables, and the line for the shell that starts the job."""
    base, reach = base_of(patient, request)
    loader = f"{base}/activate.sh"
    content = (
        "# sourced by the shell that starts a job; sets the variables of `dsdoctor fix`\n"
        f"for _dsdoctor_file in {_single_quoted(base)}/env.d/*.sh; do\n"
        '  if [ -r "$_dsdoctor_file" ]; then . "$_dsdoctor_file"; fi\n'
        "done\n"
        "unset _dsdoctor_file\n"
    )
    steps: list[Step] = [
        Env(env=dict(variables), why="the following steps and the proof use these variables"),
        Write(
            write=f"{base}/env.d/{fix}.sh",
            content=snippet(fix, variables),
            why="sets them in the shell that starts the job",
            reach=reach,
        ),
        Write(write=loader, content=content, why="loads all such files", reach=reach),
    ]
    if patient.kind == "conda":
        save, back = _restorer(fix, variables)
        folder = f"{patient.prefix.rstrip('/')}/etc/conda"
        steps += [
            Write(
                write=f"{folder}/activate.d/dsdoctor-{fix}.sh",
                content=f"{save}. {_single_quoted(loader)}\n",
                why="`conda activate` runs it",
            ),
            Write(
                write=f"{folder}/deactivate.d/dsdoctor-{fix}.sh",
                content=back,
                why="`conda deactivate` restores the variables",
            ),
        ]
    return tuple(steps), f". {_single_quoted(loader)}"

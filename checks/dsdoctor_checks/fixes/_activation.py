"""How a repair reaches the shell that starts a job, without editing anybody's start-up files.

Each fix has a snippet of its own in `env.d`, and one loader reads them all. A conda environment
loads it by itself (`activate.d`); for any other the user sources the loader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dsdoctor.api import Env, FixRequest, Patient, Reach, Step, Write


def base_of(patient: Patient, request: FixRequest) -> tuple[str, Reach]:
    """Folder for what fixes make for a patient, and how far a write there reaches.

    The packages of a system interpreter belong to the system; what serves it goes to the home.
    """
    if patient.kind == "system":
        return request.state, Reach.HOME
    return f"{patient.prefix.rstrip('/')}/opt/dsdoctor", Reach.ENV


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def snippet(fix: str, variables: Mapping[str, str]) -> str:
    """Lines of a POSIX shell that set variables; "" takes one away.

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
        elif name == "PATH":
            folder = _quoted(value.removesuffix(":$PATH"))
            test = f'case ":$PATH:" in *:{folder}:*) ;; *) PATH={folder}":$PATH" ;; esac'
            lines.append(f"{test}; export PATH")
        else:
            lines.append(f"export {name}={_quoted(value)}")
    return "\n".join([*lines, ""])


def _restorer(fix: str, variables: Mapping[str, str]) -> tuple[str, str]:
    """What a conda environment runs on activation and on deactivation, besides the snippet."""
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
    """Steps that make variables last, and the line for the shell that starts the job."""
    base, reach = base_of(patient, request)
    loader = f"{base}/activate.sh"
    content = (
        "# read by the shell that starts a job: the repairs that dsdoctor made\n"
        f"for _dsdoctor_file in {_quoted(base)}/env.d/*.sh; do\n"
        '  if [ -r "$_dsdoctor_file" ]; then . "$_dsdoctor_file"; fi\n'
        "done\n"
        "unset _dsdoctor_file\n"
    )
    steps: list[Step] = [
        Env(env=dict(variables), why="what the steps that follow and the proof run with"),
        Write(
            write=f"{base}/env.d/{fix}.sh",
            content=snippet(fix, variables),
            why="the same variables for the shell that starts the job",
            reach=reach,
        ),
        Write(write=loader, content=content, why="reads every such file", reach=reach),
    ]
    if patient.kind == "conda":
        save, back = _restorer(fix, variables)
        folder = f"{patient.prefix.rstrip('/')}/etc/conda"
        steps += [
            Write(
                write=f"{folder}/activate.d/dsdoctor-{fix}.sh",
                content=f"{save}. {_quoted(loader)}\n",
                why="`conda activate` reads it by itself",
            ),
            Write(
                write=f"{folder}/deactivate.d/dsdoctor-{fix}.sh",
                content=back,
                why="`conda deactivate` puts the variables back",
            ),
        ]
    return tuple(steps), f". {_quoted(loader)}"

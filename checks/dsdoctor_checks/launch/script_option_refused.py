"""The training script's own parser rejects an argument of the command.

## Why it matters
Every rank stops with `unrecognized arguments` or `error: argument`, often after the job has waited in
a queue. dsdoctor reads the parser from the script's source (argparse, and the dataclasses of
`HfArgumentParser` and `TrlParser` as they are installed); nothing of the script is run. A parser that
other modules add options to is not judged.

## What to do
Correct the option. transformers and trl rename options between releases, such as
`--evaluation_strategy` to `--eval_strategy`: use the name of the installed release.

The deepspeed launcher passes `--local_rank` to every script. A script with a parser of its own has to
declare it, or the launcher needs `--no_local_rank`.

## References
- Python documentation, argparse
- deepspeed launcher/launch.py; torch distributed/launch.py (`--local-rank` since 2.0)
- transformers hf_argparser.py (`parse_args_into_dataclasses`)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    Missing,
    Observation,
    Packages,
    Scope,
    ScriptOptions,
    Signature,
    check,
    fail,
)
from dsdoctor_checks._util import listed

CONDITION = Condition(
    "script-option-refused",
    id="DSD1215",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.OPTION_REFUSED,),
)
HINT = "correct the arguments of the script: its usage is in the lines above"
SIGNATURES = (
    Signature(
        # the title of the box in which tyro prints what it rejects, before it exits with status 2
        pattern="╭─ (?:Unrecognized options|Required options|Parsing error) ─",
        source="tyro 1.0.17 _backends/_argparse_formatter.py, _backends/_tyro_help_formatting.py",
        message="The script's parser (tyro) rejects the command",
        hint="correct the arguments of the script: the lines below this one say which",
        examples=(
            "[rank0]:╭─ Unrecognized options ───────────────────────────╮",
            "╭─ Required options ───────────────────────────────────╮",
            "╭─ Parsing error ──────────────────────────────────────╮",
        ),
        level=Level.STRONG,
    ),
)
#: How the parsers word it.
_SAID = {
    "argparse": "unrecognized arguments",
    "transformers": "Some specified arguments are not used by the HfArgumentParser",
}


@check(CONDITION)
def options_are_known(options: ScriptOptions, packages: Packages | Missing) -> Iterator[Finding]:
    """Fails on what the parser does not know, else on what it rejects."""
    script, passed = options.script, options.by_launcher
    own = [flag for flag in options.unknown if flag != passed]
    evidence = {"script": script, "unknown": list(options.unknown), "refusal": options.refusal}
    if own:
        near = [
            f"replace `{flag}` with `{options.near[flag]}`" for flag in own if flag in options.near
        ]
        it = "them" if len(own) > 1 else "it"
        other = f"remove {it}, or add {it} to the parser of the script"
        version = None if isinstance(packages, Missing) else packages.version("transformers")
        if options.of == "transformers" and version:
            other = (
                f"{'' if near else f'remove {it}, or '}install the releases that the command was"
                f" written for; transformers {version} is installed"
            )
        yield fail(
            f"`{script}` has no option {listed([f'`{flag}`' for flag in own])}",
            effect=f"every rank stops with `{_SAID[options.of]}`",
            hint=f"{listed(near)}, or {other}" if near else other,
            **evidence,
        )
    elif options.unknown:
        switch = "--no_local_rank" if options.launcher == "deepspeed" else "--use_env"
        yield fail(
            f"the launcher passes `{passed}` to `{script}`, whose parser does not accept it",
            effect=f"every rank stops with `unrecognized arguments: {passed}=0`",
            hint=f'add `parser.add_argument("{passed}", type=int)` to the script, or start it with'
            f" `{switch}` and read the variable LOCAL_RANK",
            **evidence,
        )
    elif options.refusal:
        yield fail(
            f"`{script}` rejects its arguments: `{options.refusal}`",
            effect="every rank stops before it loads anything",
            hint="correct the arguments of the script",
            **evidence,
        )

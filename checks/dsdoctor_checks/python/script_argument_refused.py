"""The training script passes an argument that the installed package does not accept.

## Why it matters
transformers, trl and peft rename and remove arguments between releases. Every rank stops with
`TypeError: … got an unexpected keyword argument`, often after the job has waited in a queue.
dsdoctor compares the calls of `transformers`, `trl`, `peft`, `accelerate`, `datasets`, `diffusers`
and Lightning that are certain to run with the installed source; nothing of the script is run.

## What to do
Use the name of the installed release, such as `eval_strategy` for `evaluation_strategy` and
`processing_class` for the `tokenizer` of a trainer; or install the release that the script was written
for.

## References
- transformers, "Migration guide" of version 5; trl, release notes
- Python language reference, "Calls"
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Packages, Scope, ScriptCalls, check, fail
from dsdoctor_checks._util import listed

CONDITION = Condition("script-argument-refused", id="DSD921", scope=Scope.USER_ENV, since="0.1")


@check(CONDITION)
def arguments_are_taken(calls: ScriptCalls, packages: Packages) -> Iterator[Finding]:
    """Fails on the first line with such a call: the script does not come to the others."""
    if not calls.wrong:
        return
    first = calls.wrong[0]
    here = [one for one in calls.wrong if (one.line, one.called) == (first.line, first.called)]
    package = first.package.replace("_", "-")
    version = packages.version(package)
    near = [f"replace `{one.argument}` with `{one.near}`" for one in here if one.near]
    other = f"install the release of {package} that the script was written for"
    if len(near) < len(here):
        other = f"remove what it does not accept, or {other}"
    others = len({(one.line, one.called) for one in calls.wrong}) - 1
    named = "no argument" if len(here) == 1 else "no arguments"
    more = {0: "", 1: "; a later call fails too"}.get(others, f"; {others} later calls fail too")
    yield fail(
        f"`{first.called}` of {package} {version or 'as installed'} has {named}"
        f" {listed([f'`{one.argument}`' for one in here])} (`{calls.script}`, line {first.line}){more}",
        effect="every rank stops with `TypeError: … got an unexpected keyword argument`",
        hint=f"{listed(near)}, or {other}" if near else other,
        script=calls.script,
        line=first.line,
        called=first.called,
        arguments=[one.argument for one in here],
        package=package,
        version=version,
        others=others,
    )

"""Fix plans as text, and as shell commands that can be pasted."""

from __future__ import annotations

import shlex
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from dsdoctor.model.fix_plan import (
    Env,
    Fetch,
    Link,
    LinkNames,
    LinkTree,
    Plan,
    PlanDocument,
    Remove,
    Run,
    Step,
    Tell,
    Write,
    prepended,
)
from dsdoctor.model.redact import mask_tree
from dsdoctor.report.text import clean
from dsdoctor.report.wrap import wrap

END = "DSDOCTOR_END"


def _assigned(name: str, value: str) -> str:
    """The shell command that sets or unsets a variable.

    >>> _assigned("A", "x y"), _assigned("A", ""), _assigned("PATH", "/b:$PATH")
    ("A='x y'", 'unset A', 'PATH=/b":$PATH"')
    """
    if not value:
        return f"unset {name}"
    if (added := prepended(name, value)) is not None:
        return f"{name}={shlex.quote(added[0])}{added[1]}"
    return f"{name}={shlex.quote(value)}"


def words_of(step: Step) -> str:
    """What a step does, in one line."""
    if isinstance(step, Run):
        head = "".join(f"{name}={shlex.quote(value)} " for name, value in step.env.items())
        return head + shlex.join(step.argv)
    if isinstance(step, Write):
        return f"write {step.write} ({len(step.content.encode())} bytes)"
    if isinstance(step, Link):
        return f"link {step.link} -> {step.target}"
    if isinstance(step, LinkTree):
        return f"link the files of {step.source} that {step.link} does not have"
    if isinstance(step, LinkNames):
        return f"link lib*.so to lib*.so.N in {step.link}"
    if isinstance(step, Remove):
        return f"remove {step.remove}"
    if isinstance(step, Fetch):
        size = f", {step.size / 2**20:.0f} MiB" if step.size else ""
        return f"fetch {step.fetch} (sha256 {step.sha256[:12]}…{size}) into {step.into}"
    if isinstance(step, Env):
        return "; ".join(_assigned(name, value) for name, value in step.env.items())
    return step.tell


def _wrapped_command(words: Iterable[str], columns: int) -> Iterator[str]:
    r"""A command line over several lines that can still be copied.

    >>> list(_wrapped_command(["pip", "install", "--target", "/a/b"], 18))
    ['pip install \\', '  --target /a/b']
    """
    line = ""
    for word in words:
        if line and len(line) + len(word) + 3 > columns:
            yield f"{line} \\"
            line = f"  {word}"
        else:
            line = f"{line} {word}" if line else word
    yield line


def _step_lines(step: Step, columns: int) -> Iterator[str]:
    """What a step does, wrapped to a width if its words allow."""
    if isinstance(step, Run):
        words = [f"{name}={shlex.quote(value)}" for name, value in step.env.items()]
        yield from _wrapped_command(
            [*words, *(shlex.quote(clean(word)) for word in step.argv)], columns
        )
    elif isinstance(step, Env):
        for name, value in step.env.items():
            yield clean(_assigned(name, value))
    elif isinstance(step, Tell):
        yield "do this yourself:"
        yield from (f"  {clean(text)}" for text in step.tell.splitlines())
    else:
        yield from textwrap.wrap(
            clean(words_of(step)), columns, subsequent_indent="  ",
            break_on_hyphens=False, break_long_words=False,
        )  # fmt: skip


def masked(plan: Plan) -> Plan:
    """A plan with the secrets in its files and variables masked."""
    return msgspec.convert(mask_tree(msgspec.to_builtins(plan)), Plan)


def render(plan: Plan, width: int | None = None) -> str:
    """A plan as it is shown before the user confirms it."""
    plan = masked(plan)
    columns = max(40, min(width or shutil.get_terminal_size((100, 24)).columns, 110))

    def wrapped(text: str, indent: str, first: str | None = None) -> list[str]:
        begin = indent if first is None else first
        return wrap(clean(text), columns, begin, indent, break_long=False)

    lines = [f"{plan.name} (reach: {plan.reach.value})"]
    lines += wrapped(plan.title, "  ")
    for reason in plan.reasons:
        lines += wrapped(f"because {reason}", "    ", "  ")
    lines.append("")
    for number, step in enumerate(plan.steps, 1):
        first, *diff = step.why.splitlines() or [""]
        lines += wrapped(first if not diff else "these lines change:", "     ", f"  {number}. ")
        lines += [f"     {clean(row)}" for row in ([first, *diff] if diff else [])]
        lines += [f"     {text}" for text in _step_lines(step, columns - 5)]
    lines.append("")
    proofs = [proof.why for proof in plan.proof]
    if plan.proves:
        proofs.append(f"`dsdoctor check` reports {', '.join(plan.proves)} as ok")
    if proofs:
        lines += wrapped(f"proof: {'; '.join(proofs)}", "    ", "  ")
    for why in plan.irreversible:
        lines += wrapped(f"CANNOT BE UNDONE: {why}", "    ", "  ")
    if not plan.only_shown:
        lines += wrapped(f"undo: {plan.undo}", "    ", "  ")
    if plan.activate:
        lines += ["  then, in the shell that starts the job:", f"    {clean(plan.activate)}"]
    return "\n".join([*lines, ""])


# ---- shell -------------------------------------------------------------------------------------


def _secret_step(step: Step) -> str:
    """Replaces a step with a secret: pasting its masked text would overwrite the file."""
    what = f"{words_of(step).splitlines()[0]}: it contains secrets, which are not printed"
    return f"echo {shlex.quote(f'{what}; run dsdoctor fix for it')} >&2; exit 1"


def _octal(text: str) -> str:
    r"""An argument of `printf %b` that prints a text, and contains no control characters.

    >>> _octal("a\\b\x1b[2J\n")
    'a\\\\b\\0033[2J\n'
    """
    return "".join(
        letter.replace("\\", "\\\\")
        if letter.isprintable() or letter in "\n\t"
        else "".join(f"\\0{byte:03o}" for byte in letter.encode("utf-8", "surrogateescape"))
        for letter in text
    )


def _shell_of_write(step: Write) -> Iterator[str]:
    path = shlex.quote(step.write)
    yield f"mkdir -p {shlex.quote(step.write.rpartition('/')[0] or '/')}"
    if any(not (letter.isprintable() or letter in "\n\t") for letter in step.content):
        yield f"printf %b {shlex.quote(_octal(step.content))} > {path}"
    elif step.content.endswith("\n") and END not in step.content:
        yield f"cat > {path} <<'{END}'"
        yield step.content.removesuffix("\n")
        yield END
    else:
        yield f"printf %s {shlex.quote(step.content)} > {path}"
    if step.mode is not None:
        yield f"chmod {step.mode:o} {path}"


def _shell_of_env(step: Env) -> Iterator[str]:
    for name, value in step.env.items():
        yield f"export {_assigned(name, value)}" if value else _assigned(name, value)


def shell_of(step: Step) -> Iterator[str]:
    """A step as lines of a POSIX shell."""
    for text in step.why.splitlines():
        yield from (f"# {line}" for line in textwrap.wrap(clean(text), 100) or [""])
    quote = shlex.quote
    if isinstance(step, Run):
        yield words_of(step)
    elif isinstance(step, Write):
        yield from _shell_of_write(step)
    elif isinstance(step, Link):
        yield f"mkdir -p {quote(step.link.rpartition('/')[0] or '/')}"
        yield f"ln -sfn {quote(step.target)} {quote(step.link)}"
    elif isinstance(step, LinkTree):
        yield f"mkdir -p {quote(step.link)}"
        yield f"cp -rsn {quote(step.source)}/. {quote(step.link)}/"
    elif isinstance(step, LinkNames):
        yield f"for library in {quote(step.link)}/lib*.so.*; do"
        yield '  [ ! -e "$library" ] || [ -e "${library%%.so.*}.so" ] ||'
        yield '    ln -s "${library##*/}" "${library%%.so.*}.so"'
        yield "done"
    elif isinstance(step, Remove):
        yield f"rm -rf -- {quote(step.remove)}"
    elif isinstance(step, Fetch):
        name = quote(step.fetch.rpartition("/")[2])
        yield f"mkdir -p {quote(step.into)}"
        yield f'curl -fL -o "$work"/{name} {quote(step.fetch)}'
        yield f'echo {step.sha256}"  $work"/{name} | sha256sum -c -'
        yield f'tar -xf "$work"/{name} --strip-components=1 -C {quote(step.into)}'
    elif isinstance(step, Env):
        yield from _shell_of_env(step)
    else:
        yield from (f"#   {clean(line)}" for line in step.tell.splitlines())


def shell(plans: list[Plan]) -> str:
    """Plans as shell commands that can be pasted, and stop at the first failure."""
    lines: list[str] = []
    for plan in plans:
        bare = plan.steps
        plan = masked(plan)  # noqa: PLW2901  # the plan is not used unmasked
        mark = "# instead of the one above: " if plan.alternative else "# "
        lines.append(f"{mark}{plan.name}: {clean(plan.title)}")
        lines += [f"# because {clean(reason)}" for reason in plan.reasons]
        shown = zip(plan.steps, bare, strict=True)
        body = [
            line
            for step, as_is in shown
            for line in (shell_of(step) if step == as_is else [_secret_step(step)])
        ]
        if plan.alternative:
            lines += [f"# {line}" for text in body for line in text.splitlines()]
        elif plan.only_shown:
            lines += body
        else:
            lines.append("(set -e")
            if any(isinstance(step, Fetch) for step in plan.steps):
                lines += ["work=$(mktemp -d)", "trap 'rm -rf \"$work\"' EXIT"]
            # not `) && …`: a shell ignores `set -e` in what precedes `&&`
            lines += [*body, ")", *([f"[ $? -eq 0 ] && {plan.activate}"] if plan.activate else [])]
        lines.append("")
    return "\n".join(lines)


def as_json(document: PlanDocument) -> str:
    """The document, secrets masked, indented."""
    tree: Any = mask_tree(document.as_builtins())
    return msgspec.json.format(msgspec.json.encode(tree), indent=2).decode() + "\n"

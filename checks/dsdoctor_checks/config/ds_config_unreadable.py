"""The DeepSpeed config cannot be read.

## Why it matters
DeepSpeed reads its config with hjson, which allows comments and trailing commas, and refuses a key
that stands twice in one section. A file that it cannot read ends every rank inside
`deepspeed.initialize`, after the model has been loaded; for a path that does not exist the error
speaks of base64 padding and never of the file.

## What to do
Mend the line that is named. A text without quotes runs to the end of its line in hjson, commas and
brackets included: put strings in quotes, and write `true`, `false` and `null` in lower case.

## References
deepspeed/runtime/config.py (`DeepSpeedConfig.__init__`), deepspeed/runtime/config_utils.py
(`dict_raise_error_on_duplicate_keys`), https://hjson.github.io/syntax.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, DsConfig, Finding, Scope, check, fail

CONDITION = Condition("ds-config-unreadable", id="DSD1301", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def config_can_be_read(config: DsConfig) -> Iterator[Finding]:
    """Speaks when DeepSpeed would not get past parsing."""
    effect = "every rank stops in `deepspeed.initialize`"
    for key, lines in config.duplicates.items():
        where = " and ".join(str(line) for line in lines)
        yield fail(
            f"`{key}` stands on lines {where} of `{config.path}`, but a key may stand only once",
            effect=effect,
            hint=f"keep one of the lines {where}",
            key=key,
            lines=list(lines),
        )
    if config.error is None or config.duplicates:
        return
    spot = "" if config.error_line is None else f" line {config.error_line}"
    if config.error_column is not None:
        spot += f" column {config.error_column}"
    if config.error == "the file does not exist":
        hint = "give the path of a file that is there, from the folder that the job starts in"
    elif spot:
        hint = f"mend{spot} of the file"
    else:
        hint = "mend the file"
    yield fail(
        f"`{config.path}`{spot} cannot be used as a DeepSpeed config: {config.error}",
        effect=effect,
        hint=hint,
        path=config.path,
        line=config.error_line,
        column=config.error_column,
        error=config.error,
    )

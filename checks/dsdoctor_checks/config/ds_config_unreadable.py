"""The DeepSpeed config cannot be read.

## Why it matters
DeepSpeed parses its config as Hjson, which allows comments and trailing commas, and rejects
duplicate keys in a section. A file that it cannot parse stops every rank in `deepspeed.initialize`,
after the model has been loaded. If the file does not exist, the error is about base64 padding and
does not mention the file.

The Hugging Face Trainer, Accelerate and Lightning read the file with Python's `json` module first,
which accepts neither comments nor trailing commas, and of duplicate keys keeps the last.

## What to do
Correct the line shown in the finding. In Hjson an unquoted string runs to the end of its line,
including commas and brackets: quote strings, and write `true`, `false` and `null` in lower case.

## References
deepspeed/runtime/config.py (`DeepSpeedConfig.__init__`), deepspeed/runtime/config_utils.py
(`dict_raise_error_on_duplicate_keys`), https://hjson.github.io/syntax.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DsConfig,
    Finding,
    Level,
    RunNeeds,
    Scope,
    Signature,
    TracebackRule,
    check,
    fail,
    warn,
)

CONDITION = Condition("ds-config-unreadable", id="DSD1301", scope=Scope.JOB, since="0.1")

#: Frameworks that parse the file with `json.load` (accelerate 1.15 utils/deepspeed.py, lightning
#: 2.5 pytorch/strategies/deepspeed.py `_load_config`, 2026-11-22).
_STRICT = {
    "hf": "the Hugging Face Trainer",
    "accelerate": "Accelerate",
    "lightning": "Lightning",
}


@check(CONDITION)
def config_can_be_read(config: DsConfig, run: RunNeeds) -> Iterator[Finding]:
    """Fails when DeepSpeed could not parse the file."""
    effect = "every rank stops in `deepspeed.initialize`"
    for key, lines in config.duplicates.items():
        numbers = [str(line) for line in dict.fromkeys(lines)]
        where = f"on lines {' and '.join(numbers)}"
        hint = f"keep only one of lines {' and '.join(numbers)}"
        if len(numbers) == 1:
            where, hint = f"twice on line {numbers[0]}", f"keep one `{key}` on line {numbers[0]}"
        framework = _STRICT.get(run.framework) if config.last_counts else None
        if framework is None:
            yield fail(
                f"`{key}` is set {where} of `{config.path}`, but duplicate keys are an error",
                effect=effect,
                hint=hint,
                key=key,
                lines=list(lines),
            )
            continue
        yield warn(
            f"`{key}` is set {where} of `{config.path}`, and {framework} uses the last one",
            effect="the other values are ignored; other frameworks reject the file",
            hint=hint,
            key=key,
            lines=list(lines),
        )
    if config.duplicates:
        return
    if config.error is None:
        if config.strict_error is not None and run.framework in _STRICT:
            yield _not_json(config, _STRICT[run.framework])
        return
    spot = "" if config.error_line is None else f" line {config.error_line}"
    if config.error_column is not None:
        spot += f" column {config.error_column}"
    if config.error.endswith("which is not UTF-8"):
        hint = "save the file as UTF-8 (`iconv -f GBK -t UTF-8` converts Chinese text)"
    elif config.error.endswith("expected UTF-8"):
        hint = "save the file as UTF-8 (`>` of Windows PowerShell 5 writes UTF-16)"
    elif config.error == "the file does not exist":
        hint = "correct the path; it is relative to the directory where the job starts"
    elif spot:
        hint = f"correct{spot} of the file"
    else:
        hint = "correct the file"
    yield fail(
        f"`{config.path}`{spot} cannot be used as a DeepSpeed config: {config.error}",
        effect=effect,
        hint=hint,
        path=config.path,
        line=config.error_line,
        column=config.error_column,
        error=config.error,
    )


def _not_json(config: DsConfig, framework: str) -> Finding:
    spot = "" if config.strict_line is None else f" line {config.strict_line}"
    return fail(
        f"`{config.path}`{spot} is not plain JSON, which {framework} requires:"
        f" {config.strict_error}",
        effect="`json.decoder.JSONDecodeError` when the config is loaded, before the model",
        hint="save the file without a byte order mark"
        if "BOM" in (config.strict_error or "")
        else "remove comments and trailing commas, and quote all names and strings",
        path=config.path,
        line=config.strict_line,
        error=config.strict_error,
    )


HINT = "correct the line named in the error"

SIGNATURES = (
    Signature(
        pattern="HjsonDecodeError: ",
        source="hjson 2.0-3.1 scanner.py, decoder.py",
        examples=(
            "hjson.scanner.HjsonDecodeError: Bad key name (eof): line 10 column 23 (char 182)",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="existing deepspeed config",
        source="deepspeed 0.19.8 runtime/config.py",
        examples=(
            "ValueError: Expected a string path to an existing deepspeed config, or a dictionary. Received: configs/ds_zero2.json",
        ),
        message="The DeepSpeed config that was passed is no dictionary and no path of a file that exists here",
        hint="pass the dictionary itself, or the path of the file as this process sees it; each node needs the file",
        level=Level.STRONG,
    ),
    Signature(
        pattern="JSONDecodeError: ",
        source="python 3.5-3.14 Lib/json/decoder.py, as Python prints an exception",
        examples=(
            "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
            "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 5 column 3 (char 80)",
        ),
        level=Level.WEAK,
        near=("deepspeed", "ds_config"),
    ),
)

TRACEBACK_RULES = (
    # what is no path of an existing file is decoded as base64
    TracebackRule(
        file="deepspeed/runtime/config.py",
        function="__init__",
        kinds=("Error",),  # of binascii
        source="deepspeed 0.19.8 runtime/config.py",
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/deepspeed/runtime/config.py", line 661, in __init__\n    config_decoded = base64.urlsafe_b64decode(config).decode("utf-8")\nbinascii.Error: Incorrect padding',
    ),
)

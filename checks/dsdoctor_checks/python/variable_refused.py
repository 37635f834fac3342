"""A variable has a value with which torch or DeepSpeed cannot be imported.

## Why it matters
torch reads `TORCH_LOGS` and `TORCH_DISTRIBUTED_DEBUG` while it is imported, and DeepSpeed
`DS_ACCELERATOR`. They stop at a value that they do not know, and at an empty one, which a container or
a job template often leaves. Every rank exits at the import, and reinstalling the package does not help.
`PYTHONHOME` of another Python, and a `PYTHONHASHSEED` that is no number, stop Python itself, dsdoctor too.

## What to do
Unset the variable, or set a value that the message lists. `export NAME=` is not enough: an empty value
is rejected as well.

## References
- torch/_logging/_internal.py: `_parse_log_settings`, `_init_logs`
- torch/csrc/distributed/c10d/debug.cpp
- DeepSpeed accelerator/real_accelerator.py: `get_accelerator`
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dsdoctor.api import (
    Condition,
    DeepSpeedLive,
    Environment,
    Finding,
    LaunchCommand,
    Level,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    TorchLive,
    Why,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._util import fixable, job_environment, unset_by, variable

CONDITION = Condition(
    "variable-refused",
    id="DSD923",
    scope=Scope.JOB,
    since="0.1",
    fixes=("unset-variables",),
)


class _Rule(NamedTuple):
    """How the error of one variable reads.

    Attributes:
        variable: its name.
        pattern: matches the error's message.
        expected: what is accepted, or why it is rejected; may use the groups of the pattern.
        hint: what to know besides that it can be unset.
    """

    variable: str
    pattern: str
    expected: str
    hint: str = ""


_NOT_USED = Missing(why=Why.NOT_ASKED, detail="the job does not use DeepSpeed")
_DEBUG = _Rule(
    "TORCH_DISTRIBUTED_DEBUG",
    r"value of TORCH_DISTRIBUTED_DEBUG must be",
    "torch accepts OFF, INFO and DETAIL",
)
_LEVELS = ("OFF", "INFO", "DETAIL")
_RULES = (
    _DEBUG,
    _Rule(
        "DS_ACCELERATOR",
        r"DS_ACCELERATOR must be one of (?P<values>.{1,300}?)\.\s+Value \"",
        "DeepSpeed accepts {values}",
        "DeepSpeed then chooses the accelerator itself",
    ),
    _Rule(
        "DS_ACCELERATOR",
        r"\b[A-Z]{2,8}_Accelerator requires (?P<package>[\w.]+),? (?:which is not installed|with XPU support)",
        "DeepSpeed does not find a working `{package}` for it",
        "DeepSpeed then chooses the accelerator itself",
    ),
    _Rule(
        "TORCH_LOGS",
        r"Invalid log settings: ",
        "this torch does not know a name in it",
        "`TORCH_LOGS=help python -c 'import torch'` lists the names",
    ),
    _Rule(
        "TORCH_LOGS",
        r"'dict' object has no attribute 'get_log_level_pairs'",
        "torch cannot be imported with it",
    ),
)


def _said(live: TorchLive | DeepSpeedLive | Missing) -> str:
    """The words with which an import failed; "" = it did not."""
    if isinstance(live, Missing) or live.imported.ok:
        return ""
    return f"{live.imported.message or ''}\n{live.imported.traceback}"


def _refused(
    env: Environment, torch: TorchLive | Missing, deepspeed: DeepSpeedLive | Missing
) -> tuple[_Rule, str, str] | None:
    """The rule that the error of an import follows, what was imported, and what is expected."""
    for package, live in (("torch", torch), ("deepspeed", deepspeed)):
        text = _said(live)
        for rule in _RULES if text else ():
            found = re.search(rule.pattern, text)
            if found and env.get(rule.variable) is not None:
                words = {
                    key: re.sub(r"[][\"']", "", said) for key, said in found.groupdict().items()
                }
                return rule, package, rule.expected.format(**words)
    return None


@check(CONDITION)
def variables_are_accepted(
    env: Environment,
    torch: TorchLive | Missing,
    deepspeed: DeepSpeedLive | Missing,
    build: TorchBuild | Missing,
    run: RunNeeds,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Judges the variables that an import reports, and the one whose values never changed."""
    if isinstance(build, TorchBuild) and not build.installed:
        yield skip("torch is not installed")
        return
    unused = run.without_deepspeed
    refused = _refused(env, torch, _NOT_USED if unused else deepspeed)
    if refused is None:
        level = variable(job_environment(env, command), "TORCH_DISTRIBUTED_DEBUG")
        if level is None or level.upper() in _LEVELS:
            yield ok()
            return
        # not every torch reads it at `import torch`, but all do at `import torch.distributed`
        refused = _DEBUG, "torch.distributed", _DEBUG.expected
    rule, package, expected = refused
    value = variable(job_environment(env, command), rule.variable) or ""
    shown = f"is `{value}`" if value else "is set but empty"
    more = f"; {rule.hint}" if rule.hint else ""
    finding = fail(
        f"`{rule.variable}` {shown}; {expected}",
        effect=f"`import {package}` fails in every rank",
        hint=f"{unset_by(command, rule.variable)}{more}",
        variable=rule.variable,
        value=value,
        package=package,
    )
    yield fixable(finding, command, rule.variable)


HINT = "unset the variable that the message names; an empty value is rejected as well"

SIGNATURES = (
    Signature(
        # Python prints its paths only where it cannot start
        pattern=r"^\s{0,8}PYTHONHOME = '(?P<value>[^']{1,300})'$",
        source="python 3.8-3.14 Python/pathconfig.c, Modules/getpath.py: `Python path configuration:`",
        message="`PYTHONHOME` is `{value}`, where this Python does not find its own library",
        hint="run `unset PYTHONHOME`, and remove it from the startup file or the module that sets it",
        examples=("  PYTHONHOME = '/opt/python3.9'",),
        not_examples=("PYTHONHOME = '/opt/python3.9' is what the module sets",),
        level=Level.CERTAIN,
        masks=("script-module-missing",),
    ),
    Signature(
        pattern=r"^Fatal Python error: (?:\w{1,40}: )?PYTHONHASHSEED must be",
        source="python 3.3-3.14 Python/initconfig.c, Python/bootstrap_hash.c",
        message="`PYTHONHASHSEED` is neither `random` nor a number, and Python does not start",
        hint="unset `PYTHONHASHSEED`, or set it to a number below 4294967296",
        examples=(
            'Fatal Python error: config_init_hash_seed: PYTHONHASHSEED must be "random" or an integer in range [0; 4294967295]',
            'Fatal Python error: PYTHONHASHSEED must be "random" or an integer in range [0; 4294967295]',
        ),
        not_examples=("PYTHONHASHSEED must be set",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"\bDS_ACCELERATOR must be one of .{1,300}?\.\s+Value \"(?P<value>[^\"]{0,60})\" is not supported",
        source="deepspeed 0.8-0.19 accelerator/real_accelerator.py",
        message='`DS_ACCELERATOR` is "{value}", which DeepSpeed does not know',
        hint="unset `DS_ACCELERATOR`, so that DeepSpeed chooses the accelerator, or set one of the names in the message, in lower case",
        examples=(
            "ValueError: DS_ACCELERATOR must be one of ['cuda', 'cpu', 'xpu', 'npu', 'mps']. Value \"gpu\" is not supported",
            'ValueError: DS_ACCELERATOR must be one of "cuda", "cpu", or "xpu".  Value "CUDA" is not supported',
        ),
        not_examples=("DS_ACCELERATOR must be one of these. Value is not supported",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"ValueError: (?P<kind>NPU|SDAA|MPS|HPU|MLU|SUPA|KLXPU|XPU)_Accelerator requires (?P<package>[\w.]{1,60}), which is not installed on this system",
        source="deepspeed 0.8-0.19 accelerator/real_accelerator.py: only with DS_ACCELERATOR",
        message="`DS_ACCELERATOR` selects an accelerator whose package does not work here: `{package}`",
        hint="unset `DS_ACCELERATOR`, so that DeepSpeed chooses the accelerator; on a machine with such devices, install `{package}`",
        examples=(
            *(
                f"ValueError: {kind}_Accelerator requires {package}, which is not installed on this system."
                for kind, package in (
                    ("NPU", "torch_npu"),
                    ("SDAA", "torch_sdaa"),
                    ("MPS", "torch.mps"),
                    ("HPU", "habana_frameworks.torch.hpu"),
                    ("MLU", "torch_mlu"),
                    ("SUPA", "torch_supa"),
                    ("KLXPU", "torch_xmlir"),
                    ("XPU", "intel_extension_for_deepspeed"),
                )
            ),
        ),
        not_examples=("torch_npu, which is not installed on this system",),
        level=Level.CERTAIN,
        masks=("script-module-missing",),
    ),
    Signature(
        pattern=r"ValueError: XPU_Accelerator requires PyTorch with XPU support\W",
        source="deepspeed 0.18-0.19 accelerator/real_accelerator.py: only with DS_ACCELERATOR",
        message="`DS_ACCELERATOR` selects an Intel GPU, but this torch is not built for one or finds none",
        hint="unset `DS_ACCELERATOR`, so that DeepSpeed chooses the accelerator; on a machine with Intel GPUs, install the XPU build of torch and its driver",
        examples=(
            "ValueError: XPU_Accelerator requires PyTorch with XPU support: XPU_Accelerator requires PyTorch with XPU support (torch.xpu).",
        ),
        not_examples=("ValueError: XPU_Accelerator requires PyTorch with XPU supported",),
        level=Level.CERTAIN,
        masks=("script-module-missing",),
    ),
    Signature(
        pattern=r"The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL\.",
        source="torch 1.11-2.15 torch/csrc/distributed/c10d/debug.cpp",
        message="`TORCH_DISTRIBUTED_DEBUG` has a value other than OFF, INFO and DETAIL",
        hint="unset `TORCH_DISTRIBUTED_DEBUG`, or set it to `OFF`, `INFO` or `DETAIL`",
        examples=(
            "ValueError: The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.",
            "RuntimeError: The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"^Invalid log settings: (?P<value>.{1,200}?), must be a comma separated list of (?:fully|registerered)",
        source="torch 2.0-2.15 torch/_logging/_internal.py: _invalid_settings_err_msg",
        message="`TORCH_LOGS` contains a name that this torch does not know: `{value}`",
        hint="unset `TORCH_LOGS`, or correct it: `TORCH_LOGS=help python -c 'import torch'` lists the names",
        examples=(
            "Invalid log settings: +dynam0,graphs, must be a comma separated list of fully",
            "Invalid log settings: dynam0, must be a comma separated list of registerered log or artifact names.",
        ),
        not_examples=("Invalid names: debug, must be a comma separated list of fully",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"AttributeError: 'dict' object has no attribute 'get_log_level_pairs'",
        source="torch 2.0-2.15 torch/_logging/_internal.py: _parse_log_settings of an empty text",
        message="`TORCH_LOGS` is set but empty, with which torch cannot be imported",
        hint="unset `TORCH_LOGS`; an empty value is rejected as well",
        examples=("AttributeError: 'dict' object has no attribute 'get_log_level_pairs'",),
        level=Level.CERTAIN,
    ),
)

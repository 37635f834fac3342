"""How `deepspeed-missing` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "deepspeed-missing"
TITLE = "deepspeed is not installed here, or is shadowed or incomplete"
HINT = "install it into the environment that runs the job: `python -m pip install deepspeed`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor="deepspeed",
        pattern=(r"No module named '?deepspeed'?(?:$|[^.\w])|No module named 'deepspeed\.[\w.]+'"),
        examples=(
            "ModuleNotFoundError: No module named 'deepspeed'",
            "ImportError: No module named deepspeed",
        ),
        not_examples=("ModuleNotFoundError: No module named 'transformers.deepspeed'",),
        weight=66,
    ),
    Signature(
        anchor=("deepspeed",),
        pattern=(
            r"deepspeed: (?:command )?not found|exec: \x22?deepspeed\x22?: "
            r"|deepspeed: No such file|cannot find command 'deepspeed'"
        ),
        examples=("bash: deepspeed: command not found", "sh: 1: deepspeed: not found"),
        not_examples=("deepspeed --num_gpus 2 train.py",),
        weight=66,
    ),
    Signature(
        anchor=(
            "requires DeepSpeed",
            "DeepSpeed is not installed",
            "install deepspeed",
            "DeepSpeed is not available",
        ),
        pattern=r"(?i)(?:requires|need)s? DeepSpeed|DeepSpeed is not (?:installed|available)|(?:please|must|need to) install deepspeed|to use deepspeed.{0,40}install|`?pip install deepspeed`?",
        examples=(
            "ImportError: --deepspeed requires DeepSpeed: `pip install deepspeed`.",
            "ValueError: DeepSpeed is not installed => run x",
        ),
        not_examples=("DeepSpeed info: version=0.14",),
        weight=52,
        near=("Error",),
    ),
    Signature(
        anchor="deepspeed",
        pattern=(
            r"module 'deepspeed' has no attribute '(?:initialize|init_distributed"
            r"|zero|comm|add_config_arguments)'"
        ),
        examples=(
            "AttributeError: partially initialized module 'deepspeed' has no attribute 'initialize'",
        ),
        not_examples=("module 'deepspeed.ops' has no attribute 'x'",),
        weight=60,
    ),
)

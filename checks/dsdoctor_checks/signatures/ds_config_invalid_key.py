"""How `ds-config-invalid-key` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "ds-config-invalid-key"
TITLE = "the DeepSpeed config has an unknown, misplaced or malformed entry"
HINT = "correct the key that the message names"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor="validation error",
        pattern=r"\d+ validation errors? for (?:DeepSpeed|\w*Config)\w*",
        examples=("ValidationError: 1 validation error for DeepSpeedZeroConfig",),
        not_examples=("validation error 0.2",),
        weight=60,
    ),
    Signature(
        anchor=("extra fields not permitted", "Extra inputs are not permitted"),
        pattern=r"[Ee]xtra (?:fields not|inputs are not) permitted",
        examples=("  Extra inputs are not permitted [type=extra_forbidden]",),
        not_examples=("extra",),
        weight=56,
    ),
    Signature(
        anchor=(
            "Duplicate keys in DeepSpeed",
            "existing deepspeed config",
            "DeepSpeedConfigError",
            "JSONDecodeError",
            "HjsonDecodeError",
            "requires --deepspeed_config",
            "not a supported DeepSpeed Optimizer",
            "does not recognize LR scheduler",
            "is not a valid DeepSpeedConfig",
        ),
        pattern=(
            r"Duplicate keys in DeepSpeed|existing deepspeed config|^\S*DeepSpeedConfigError: "
            r"|HjsonDecodeError: |requires --deepspeed_config|not a supported DeepSpeed Optimizer"
            r"|does not recognize LR scheduler"
        ),
        examples=(
            "ValueError: Duplicate keys in DeepSpeed config: ['a']",
            "AssertionError: DeepSpeed does not recognize LR scheduler Foo",
        ),
        not_examples=("raise DeepSpeedConfigError(message)",),
        weight=60,
    ),
    Signature(
        anchor="got an unexpected keyword argument",
        pattern=(
            r"(?:FusedAdam|DeepSpeedCPUAdam|FusedLamb|WarmupLR|WarmupDecayLR"
            r"|OneCycle|DeepSpeed\w*Config\w*)(?:\.__init__)?\(\) got an unexpected"
        ),
        examples=("TypeError: FusedAdam.__init__() got an unexpected keyword argument 'x'",),
        not_examples=("Foo() got an unexpected keyword argument 'x'",),
        weight=56,
    ),
    Signature(
        anchor="JSONDecodeError",
        pattern=r"JSONDecodeError: ",
        examples=("json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",),
        not_examples=("raise JSONDecodeError(",),
        weight=40,
        near=("deepspeed", "ds_config"),
    ),
)

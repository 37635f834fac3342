"""How `ds-config-auto-values` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "ds-config-auto-values"
TITLE = "`auto` in the DeepSpeed config reaches DeepSpeed unresolved"
HINT = 'replace every "auto" by a value, or pass the config through the Hugging Face trainer'
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor="not supported between instances of",
        pattern=(
            r"'[<>]=?' not supported between instances of '(?:str' and '(?:int"
            r"|float)|(?:int|float)' and 'str)'"
        ),
        examples=("TypeError: '>' not supported between instances of 'str' and 'int'",),
        not_examples=("'>' not supported between instances of 'list' and 'int'",),
        weight=71,
        masks=("ds-config-batch-mismatch",),
        near=(
            "deepspeed",
            "gradient_clipping",
            "train_batch",
            "_take_model_step",
            "_do_sanity_check",
            "auto",
        ),
    ),
    Signature(
        anchor="can't multiply sequence by non-int of type 'str'",
        pattern=r"can't multiply sequence by non-int of type 'str'",
        examples=("TypeError: can't multiply sequence by non-int of type 'str'",),
        not_examples=("can't multiply",),
        weight=52,
        near=("deepspeed",),
    ),
    Signature(
        anchor="multi_tensor_adam",
        pattern=r"multi_tensor_adam\(\): incompatible function arguments",
        examples=("TypeError: multi_tensor_adam(): incompatible function arguments.",),
        not_examples=("multi_tensor_adam ok",),
        weight=50,
    ),
    Signature(
        anchor=("'auto'", '"auto"', "auto"),
        pattern=r"(?i)(?:invalid|unable|could not|cannot|not|unexpected|error).{0,80}['\x22]auto['\x22]|input_value='auto'",
        examples=(
            "ValueError: could not convert string to float: 'auto'",
            "Input should be a valid integer [type=int_parsing, input_value='auto', input_type=str]",
        ),
        not_examples=("'auto' filled in",),
        weight=64,
        masks=("ds-config-invalid-key",),
        not_near=("device_map", "hf:", "to 'auto'"),
    ),
    Signature(
        anchor="value is not a valid",
        pattern=r"value is not a valid (?:integer|float|boolean|number)",
        examples=("value is not a valid integer (type=type_error.integer)",),
        not_examples=("valid integer",),
        weight=30,
    ),
    Signature(
        anchor="unsupported operand type(s) for",
        pattern=(
            r"unsupported operand type\(s\) for [/*%+-]+=?: '(?:str' and '(?:int"
            r"|float)|(?:int|float)' and 'str)'"
        ),
        examples=("TypeError: unsupported operand type(s) for /: 'str' and 'int'",),
        not_examples=("unsupported operand",),
        weight=48,
        near=("deepspeed/runtime",),
    ),
)

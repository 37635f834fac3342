"""Wordings of `deepspeed-torch-incompatible` if torch is the older of the two."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

_NEAR = ("/deepspeed/", "\\deepspeed\\")

SIGNATURES = (
    Signature(
        pattern=r"module 'torch\.(?:library' has no attribute '(?:custom_op|register_fake|register_autograd)'|amp' has no attribute 'custom_(?:fwd|bwd)')",
        source="python 3.7-3.14 Objects/moduleobject.c: names that torch 2.4 added",
        message="This DeepSpeed needs torch 2.4 or newer",
        hint="install torch 2.4 or newer; for torch 2.1 and 2.2, run `python -m pip install 'deepspeed<0.18.3'`; for torch 2.3, `python -m pip install 'deepspeed==0.19.8'`",
        examples=(
            "AttributeError: module 'torch.library' has no attribute 'custom_op'",
            "AttributeError: module 'torch.library' has no attribute 'register_fake'",
            "AttributeError: module 'torch.library' has no attribute 'register_autograd'",
            "AttributeError: module 'torch.amp' has no attribute 'custom_fwd'",
            "AttributeError: module 'torch.amp' has no attribute 'custom_bwd'",
        ),
        level=Level.STRONG,
        near=_NEAR,
    ),
    Signature(
        pattern=r"module 'torch\.compiler' has no attribute 'is_compiling'",
        source="python 3.7-3.14 Objects/moduleobject.c: a name that torch 2.3 added",
        message="This DeepSpeed needs torch 2.3 or newer",
        hint="install torch 2.3 or newer, or, for torch 2.1 and 2.2, run `python -m pip install 'deepspeed>=0.15.4,<0.18.3'`",
        examples=("AttributeError: module 'torch.compiler' has no attribute 'is_compiling'",),
        level=Level.STRONG,
        near=_NEAR,
    ),
    Signature(
        pattern="count_used_parameters_in_backward requires internal PyTorch APIs",
        source="deepspeed 0.18.3-0.19.8 runtime/utils.py: names that torch 2.3 added",
        message="ZeRO of this DeepSpeed needs torch 2.3 or newer",
        hint="install torch 2.3 or newer, or, for torch 2.1 and 2.2, run `python -m pip install 'deepspeed<0.18.3'`",
        examples=(
            "AssertionError: count_used_parameters_in_backward requires internal PyTorch APIs that are not available in this PyTorch build.",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="'NoneType' object has no attribute 'next_functions'",
        source="python 3.3-3.14 Objects/object.c: what torch 2.3 and 2.4.0 return without gradients",
        message="ZeRO of DeepSpeed 0.18.3 to 0.18.6 needs torch 2.4.1 or newer",
        hint="install torch 2.4.1 or newer, or upgrade DeepSpeed: with torch 2.3, to 0.19.8 or newer",
        examples=("AttributeError: 'NoneType' object has no attribute 'next_functions'",),
        level=Level.STRONG,
        near=("in count_used_parameters_in_backward",),
    ),
    Signature(
        pattern=r"register_forward_pre_hook\(\) got an unexpected keyword argument '(?:prepend|with_kwargs)'",
        source="python 3.3-3.14 Python/ceval.c: arguments that torch 2.0 added",
        message="This DeepSpeed needs torch 2.0 or newer",
        hint="install torch 2.0 or newer, or, for torch 1.13, run `python -m pip install 'deepspeed<0.16.5'`",
        examples=(
            "TypeError: Module.register_forward_pre_hook() got an unexpected keyword argument 'prepend'",
            "TypeError: register_forward_pre_hook() got an unexpected keyword argument 'with_kwargs'",
        ),
        level=Level.STRONG,
        near=_NEAR,
    ),
    Signature(
        pattern=r"No module named 'torch\.utils\._sympy'",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py: a package that torch 2.0 added",
        message="This DeepSpeed needs torch 2.4 or newer",
        hint="install torch 2.4 or newer, or, for torch 1.13, run `python -m pip install 'deepspeed<0.16.5'`",
        examples=("ModuleNotFoundError: No module named 'torch.utils._sympy'",),
        level=Level.STRONG,
        near=_NEAR,
        masks=("dependency-version-conflict",),
    ),
)

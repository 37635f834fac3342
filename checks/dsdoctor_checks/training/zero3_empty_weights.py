"""ZeRO-3 weights have size 0 because they were not gathered.

## Why it matters
ZeRO-3 partitions the parameters. A parameter that is not gathered has size 0, so code that loads,
saves or initializes it finds an empty tensor.

## What to do
Load and change weights in `deepspeed.zero.GatheredParameters`. Save with
`stage3_gather_16bit_weights_on_model_save`, or convert a checkpoint with `zero_to_fp32.py`.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("zero3-empty-weights", id="DSD1751", scope=Scope.JOB, since="0.1")

HINT = "load in `deepspeed.zero.GatheredParameters`, save with `stage3_gather_16bit_weights_on_model_save`, or convert with `zero_to_fp32.py`"

SIGNATURES = (
    Signature(
        pattern=r"(?:shape|is) torch\.Size\(\[0\]\)|vec \(0\)|'weight' must be 2-D",
        source="torch 1.0-2.13 nn/modules/module.py; aten/src/ATen/native/Blas.cpp, Embedding.cpp",
        examples=(
            "size mismatch for w: copying a param with shape torch.Size([0]) from checkpoint",
            "RuntimeError: 'weight' must be 2-D",
            "the shape in current model is torch.Size([0]).",
            "RuntimeError: size mismatch, got input (10), mat (10x4096), vec (0)",
        ),
        level=Level.CERTAIN,
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"weight of (?:size|shape) \[0\]|cannot be multiplied \(\d+x\d+ and 0x0\)|weight should have at least three dimensions",
        source="torch 1.0-2.13 aten/src/ATen/native/Convolution.cpp, LinearAlgebra.cpp",
        examples=(
            "RuntimeError: expected weight to be at least 1 at dimension 0, but got weight of size [0] instead",
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (1024x4096 and 0x0)",
            "RuntimeError: weight should have at least three dimensions",
        ),
        not_examples=(
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x768 and 1024x10)",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"shape torch\.Size\(\[1\]\) from checkpoint, the shape in current model is torch\.Size\(\[\d+, \d+",
        source="torch 1.0-2.13 nn/modules/module.py",
        examples=(
            "size mismatch for k_proj.weight: copying a param with shape torch.Size([1]) from checkpoint, the shape in current model is torch.Size([768, 768]).",
            "copying a param with shape torch.Size([1]) from checkpoint, the shape in current model is torch.Size([512, 3584]).",
        ),
        not_examples=(
            "copying a param with shape torch.Size([1]) from checkpoint, the shape in current model is torch.Size([2]).",
        ),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"shape torch\.Size\(\[\d+, \d+[\d, ]{0,40}\]\) from checkpoint, the shape in current model is torch\.Size\(\[[01]\]\)",
        source="torch 1.0-2.13 nn/modules/module.py",
        examples=(
            "size mismatch for fc.weight: copying a param with shape torch.Size([2, 32]) from checkpoint, the shape in current model is torch.Size([1]).",
            "size mismatch for fc.weight: copying a param with shape torch.Size([64, 32]) from checkpoint, the shape in current model is torch.Size([0]).",
        ),
        not_examples=(
            "size mismatch for b: copying a param with shape torch.Size([2]) from checkpoint, the shape in current model is torch.Size([1]).",
        ),
        masks=("checkpoint-mismatch",),
    ),
    Signature(
        pattern=r"size of tensor a \(0\) must match|must match the size of tensor b \(0\)",
        source="torch 0.4-2.13 aten/src/ATen/ExpandUtils.cpp",
        examples=(
            "RuntimeError: The size of tensor a (0) must match the size of tensor b (4096) at non-singleton dimension 1",
            "RuntimeError: The size of tensor a (768) must match the size of tensor b (0) at non-singleton dimension 0",
        ),
    ),
    Signature(
        pattern=r"must match the existing size \(0\)",
        source="torch 1.0-2.13 aten/src/ATen/ExpandUtils.cpp",
        examples=("must match the existing size (0)",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"expected tensor \[\d[\d, ]*\] and src \[0\]",
        source="torch 2.13.0 _refs/__init__.py",
        examples=(
            "RuntimeError: inconsistent tensor size, expected tensor [4096] and src [0] to have the same number of elements",
        ),
        not_examples=("RuntimeError: inconsistent tensor size, expected tensor [4096] and src",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"cannot be multiplied \(\d+x\d+ and 0x\d+\)",
        source="torch 2.13.0 _inductor/kernel/flex_gemm/runtime.py",
        examples=("RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x768 and 0x768)",),
        not_examples=(
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (8x768 and 512x768)",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern="(?:mat2|self) must be a matrix, got 1-D tensor",
        source="torch 1.8-2.13 aten/src/ATen/native/LinearAlgebra.cpp",
        examples=(
            "RuntimeError: mat2 must be a matrix, got 1-D tensor",
            "self must be a matrix, got 1-D tensor",
        ),
        level=Level.WEAK,
        requires=("deepspeed", "DeepSpeed", "ZeRO", "zero3"),
    ),
    Signature(
        pattern=r"tensors must be 2-D|out of bounds for dimension 0 with size 0\b|is invalid for input of size 0\b",
        source="torch 1.0-2.13 aten/src/ATen/native",
        examples=(
            "RuntimeError: tensors must be 2-D",
            "IndexError: index 0 is out of bounds for dimension 0 with size 0",
            "RuntimeError: shape '[8, 64]' is invalid for input of size 0",
        ),
        not_examples=(
            "IndexError: index 1 is out of bounds for dimension 0 with size 04",
            "no size is invalid for input of size 07",
        ),
        level=Level.WEAK,
        near=(
            "_init_weights",
            "padding_idx",
            "stage3",
            "zero3",
            "ZeRO-3",
            "zero_stage 3",
            "ZeRO stage 3",
            "deepspeed/runtime/zero",
            "torch/nn/functional.py",
            "resize_token_embeddings",
        ),
    ),
)

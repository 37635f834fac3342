"""Choose the operators that torch chooses on a CUDA device, while tensors are on the meta device.

Some functions of torch dispatch by device before an operator is reached: attention takes a flash or
memory-efficient kernel, dropout keeps one byte an element as its mask. On the meta device they
would take the path of the CPU, which saves other tensors.

Standard library and the torch of the environment; Python 3.8 and later.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

aten = torch.ops.aten
#: Widest attention head that torch's flash kernel supports.
FLASH_WIDTH = 256
#: The memory-efficient kernel reads its bias in rows of a multiple of this many elements.
BIAS_ALIGN = 8

#: Ops that autocast runs in 16 bits, and in fp32 (torch's "CUDA Op-Specific Behavior").
_TO_LOW = frozenset(
    getattr(torch, name)
    for name in ("matmul", "bmm", "mm", "addmm", "baddbmm", "einsum", "conv1d", "conv2d", "conv3d")
) | {functional.linear, torch.Tensor.matmul, torch.Tensor.__matmul__}
_TO_FP32 = frozenset(
    {
        functional.layer_norm,
        functional.softmax,
        functional.log_softmax,
        functional.cross_entropy,
        functional.nll_loss,
        torch.softmax,
        torch.log_softmax,
        torch.pow,
        torch.rsqrt,
        torch.exp,
        torch.sum,
        torch.cumsum,
        torch.Tensor.pow,
        torch.Tensor.__pow__,
        torch.Tensor.softmax,
        torch.Tensor.sum,
        torch.Tensor.exp,
    }
)


class CudaChoices(TorchFunctionMode):
    """Replaces operators that depend on the device, and casts as autocast does if requested."""

    def __init__(self, autocast: Any = None) -> None:
        """`autocast` is the 16-bit type, None = no autocast."""
        super().__init__()
        self.autocast = autocast
        self.casts: dict[int, Any] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call as a CUDA device would make it."""
        kwargs = kwargs or {}
        if func is functional.scaled_dot_product_attention:
            if self.autocast is not None:
                args = tuple(self._low(entry) for entry in args)
            return attention(*args, **kwargs)
        if func in (functional.dropout, torch.dropout) and args[0].is_meta:
            return dropout(*args, **kwargs)
        if self.autocast is not None:
            if func in _TO_LOW:
                args = tuple(self._low(entry) for entry in args)
                kwargs = {name: self._low(value) for name, value in kwargs.items()}
            elif func in _TO_FP32:
                args = tuple(self._high(entry) for entry in args)
        return func(*args, **kwargs)

    def _low(self, entry: Any) -> Any:
        if not isinstance(entry, torch.Tensor) or entry.dtype is not torch.float32:
            return entry
        if not (entry.is_leaf and entry.requires_grad):
            return entry.to(self.autocast)
        if id(entry) not in self.casts:  # the copy of a weight is kept until autocast ends
            self.casts[id(entry)] = entry.to(self.autocast)
        return self.casts[id(entry)]

    def _high(self, entry: Any) -> Any:
        if isinstance(entry, torch.Tensor) and entry.dtype is self.autocast:
            return entry.float()
        return entry


def dropout(tensor: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """On CUDA, one operator that keeps a mask of one byte an element."""
    del inplace
    if not training or p == 0:
        return tensor
    return torch.native_dropout(tensor, p, True)[0]


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """The kernel that torch uses on a GPU of compute capability 8.0 or newer.

    Flash without a mask in 16 bits with heads up to 256 wide; else the memory-efficient kernel,
    for which a boolean mask becomes a bias in the type of the queries. Neither broadcasts keys over
    heads unless `enable_gqa` is set (`check_batch_size_and_num_heads_dense` of sdp_utils_cpp.h):
    without it, such a call takes the path that stores the scores, in fp32.
    """
    width = query.shape[-1]
    if not enable_gqa and not query.shape[-3] == key.shape[-3] == value.shape[-3]:
        return torch.ops.aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale
        )[0]
    half = query.dtype in (torch.float16, torch.bfloat16)
    if attn_mask is None and half and width <= FLASH_WIDTH and value.shape[-1] == width:
        pad = -width % 8
        if pad:
            query, key, value = (functional.pad(part, (0, pad)) for part in (query, key, value))
        out = aten._scaled_dot_product_flash_attention(
            query,
            key,
            value,
            dropout_p,
            is_causal,
            False,
            scale=scale,
        )[0]
        return out[..., :width] if pad else out
    if enable_gqa:
        times = query.shape[-3] // key.shape[-3]
        key, value = (part.repeat_interleave(times, -3) for part in (key, value))
    bias = None
    if attn_mask is not None:
        bias = attn_mask
        if bias.is_meta is False:
            bias = torch.empty_like(bias, device="meta")
        if bias.dtype is torch.bool:
            bias = torch.zeros_like(bias, dtype=query.dtype).masked_fill_(
                bias.logical_not(), torch.finfo(query.dtype).min
            )
        extra = -bias.shape[-1] % BIAS_ALIGN
        if extra:
            bias = functional.pad(bias, (0, extra))[..., : bias.shape[-1]]
        bias = bias.expand(query.shape[0], query.shape[1], query.shape[2], key.shape[2])
    return aten._scaled_dot_product_efficient_attention(
        query,
        key,
        value,
        bias,
        True,
        dropout_p,
        is_causal,
        scale=scale,
    )[0]

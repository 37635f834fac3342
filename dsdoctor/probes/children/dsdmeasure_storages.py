"""Follow every storage that torch allocates, from its first op to its release.

A dispatch mode sees each operator below autograd: a returned tensor is an allocation unless its
storage is known, and a finalizer on the storage runs when the last tensor (saved for the backward
pass, held by Python, or kept by the engine) releases it. On the meta device nothing is computed, so
a model of any size takes no memory.

Standard library and the torch of the environment; Python 3.8 and later.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

#: torch's CUDA caching allocator rounds every block up to this.
BLOCK = 512
#: Integer tensors on the CPU (token ids, masks) up to this many elements keep their values, so that
#: a model can look at them; larger ones become shapes.
REAL_ELEMENTS = 1 << 22

aten = torch.ops.aten


def rounded(size: int) -> int:
    """Bytes that the caching allocator takes for a block."""
    return -(-size // BLOCK) * BLOCK


class StorageMeter(TorchDispatchMode):
    """Current and peak bytes of all storages that were allocated while it was active."""

    def __init__(self, experts: int = 0, chosen: int = 0, *, real: bool = False) -> None:
        """Routers of a mixture of experts are assumed to choose experts equally often.

        With `real`, tensors are not replaced by shapes: allocations on the CPU are counted.
        """
        super().__init__()
        self.live = 0
        self.peak = 0
        self.experts = experts
        self.real = real
        self.share = chosen / experts if experts else 0.5
        self.image_share = 0.0
        self.known: dict[int, int] = {}
        self.adopted: list[Any] = []
        self.guessed: set[str] = set()
        self.results: dict[Any, Any] = {}

    def adopt(self, tensor: torch.Tensor) -> None:
        """Excludes a storage from the count: a weight, which is counted elsewhere.

        The tensor is kept alive, since a model may replace a buffer (GPT-J's positions): a new
        storage at the address of a freed one would not be counted.
        """
        storage = tensor.untyped_storage()
        self.adopted.append(storage)
        self.known[storage._cdata] = 0

    def reset(self) -> None:
        """Resets the peak to the current bytes."""
        self.peak = self.live

    def transient(self, size: int) -> None:
        """Counts memory that a kernel takes only while it runs."""
        self.peak = max(self.peak, self.live + size)

    def _track(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.known:
            return
        size = rounded(storage.nbytes())
        self.known[key] = size
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._release, key).atexit = False

    def _release(self, key: int) -> None:
        self.live -= self.known.pop(key, 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs an operator on shapes, and counts what it returns."""
        kwargs = dict(kwargs or {})
        out = self._run(func, args, kwargs)
        for leaf in tree_flatten(out)[0]:
            if isinstance(leaf, torch.Tensor):
                self._track(leaf)
        size = workspace(func, args)
        if size:
            self.transient(size)
        return out

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        if self.real:
            return func(*args, **kwargs)
        flat = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, torch.Tensor)]
        on_meta = any(leaf.is_meta for leaf in flat)
        on_cpu = any(not leaf.is_meta for leaf in flat)
        if on_meta and func in _VALUES and not (self.image_share and func in _MASKED):
            self.guessed.add(str(func))
            return self._guess(func, args)
        if on_meta and self.image_share and func in _MASKED:
            return self._masked(func, args)
        if on_meta:
            args, kwargs = tree_map(_shape_of, (args, kwargs)) if on_cpu else (args, kwargs)
            if kwargs.get("device") is not None:
                kwargs["device"] = torch.device("meta")  # a shape has no values to bring back
        elif "device" in kwargs:
            kwargs["device"] = self._place(func, args, kwargs)
            if kwargs["device"].type == "meta":
                args, kwargs = tree_map(_shape_of, (args, kwargs))
        elif on_cpu and func not in _VALUES and _large(func, args, kwargs):
            args, kwargs = tree_map(_shape_of, (args, kwargs))
        if func is _GROUPED and args[0].dtype is not torch.bfloat16:
            return _grouped(args, kwargs)
        return self._repeated(func, args, kwargs)

    def _repeated(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operator, from a cache for the same shapes: layers are alike.

        Shape functions are Python and take a millisecond. Only results that share no storage with
        an argument are created again from their shapes.
        """
        schema = func._schema
        if schema.is_mutable or any(value.alias_info for value in schema.returns):
            return func(*args, **kwargs)
        leaves, spec = tree_flatten((args, kwargs))
        if any(isinstance(leaf, torch.Tensor) and not leaf.is_meta for leaf in leaves):
            return func(*args, **kwargs)  # its values may count
        key = (func, str(spec), *(_named(leaf) for leaf in leaves))
        made = self.results.get(key)
        if made is None:
            out = func(*args, **kwargs)
            inputs = {leaf.untyped_storage()._cdata for leaf in leaves if _is_meta(leaf)}
            parts = list(out) if isinstance(out, (tuple, list)) else [out]
            if all(_is_meta(part) for part in parts) and not any(
                part.untyped_storage()._cdata in inputs for part in parts
            ):
                shapes = [(tuple(part.shape), part.stride(), part.dtype) for part in parts]
                self.results[key] = (
                    type(out) if len(parts) != 1 or out is not parts[0] else None,
                    shapes,
                )
            return out
        kind, shapes = made
        parts = [
            torch.empty_strided(size, stride, dtype=dtype, device="meta")
            for size, stride, dtype in shapes
        ]
        return parts[0] if kind is None else kind(parts)

    def _place(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Runs an operator that creates a tensor: a small one keeps its values, on the CPU."""
        kind = kwargs.get("dtype")
        if kind is not None and kind.is_floating_point and func not in _FROM_INTEGERS:
            return torch.device("meta")
        return torch.device("meta" if _large(func, args, kwargs) else "cpu")

    def _masked(self, func: Any, args: Any) -> Any:
        """The elements that the mask of image tokens selects, whose share is known."""
        if func is aten.masked_scatter_backward.default:
            return torch.empty(args[2], dtype=args[0].dtype, device="meta")
        tensor, masks = args[0], args[1]
        mask = masks[0] if isinstance(masks, (list, tuple)) else masks
        if mask is None or mask.dtype is not torch.bool:
            return func(tensor, *tree_map(_shape_of, args[1:]))
        picked = round(mask.numel() * self.image_share)
        rest = tensor.shape[mask.dim() :]
        return torch.empty((picked, *rest), dtype=tensor.dtype, device="meta")

    def _guess(self, func: Any, args: Any) -> Any:
        """A guess for shapes that depend on values: equal use of experts, masks that keep all."""
        tensor = args[0]
        if func is aten._local_scalar_dense.default:
            return False if tensor.dtype is torch.bool else 1
        if func is aten.equal.default:
            return True
        kept = max(1, int(tensor.numel() * self.share))
        if func is aten.masked_select.default:
            return torch.empty((kept,), dtype=tensor.dtype, device="meta")
        if tensor.dim() == 2 and self.experts:  # noqa: PLR2004  # (choice, token) of one expert
            kept = max(1, tensor.numel() // self.experts)
        return torch.empty((kept, tensor.dim()), dtype=torch.long, device="meta")


_VALUES = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.equal.default,
}


#: Operators that select elements by a mask, for images among the tokens.
_MASKED = {aten.index.Tensor, aten.masked_select.default, aten.masked_scatter_backward.default}


#: Products of each expert's tokens; `functional.grouped_mm` is there from torch 2.10 on.
_GROUPED = aten._grouped_mm.default if hasattr(torch.nn.functional, "grouped_mm") else None


def _grouped(args: Any, kwargs: Any) -> Any:
    """What CUDA returns for types other than bf16, which the shape function refuses.

    One group after another is multiplied into the same result (`_grouped_mm_fallback` of torch
    2.10's GroupedBlas.cpp).
    """
    half = [
        torch.empty_strided(leaf.size(), leaf.stride(), dtype=torch.bfloat16, device="meta")
        if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
        else leaf
        for leaf in args
    ]
    rest = {key: value for key, value in kwargs.items() if key != "out_dtype"}
    out = aten._grouped_mm.default(*half, **rest)
    return torch.empty_strided(out.size(), out.stride(), dtype=args[0].dtype, device="meta")


def _is_meta(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and leaf.is_meta


def _named(leaf: Any) -> Any:
    """The part of an argument that determines the shape of the result."""
    if isinstance(leaf, torch.Tensor):
        return (tuple(leaf.shape), leaf.stride(), leaf.dtype, leaf.requires_grad)
    return (type(leaf).__name__, str(leaf))


#: Operators that may create a small real floating-point tensor: copies of positions and masks.
_FROM_INTEGERS = {aten._to_copy.default, aten.arange.default, aten.arange.start}


def _shape_of(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor) and not leaf.is_meta:
        return torch.empty_strided(leaf.size(), leaf.stride(), dtype=leaf.dtype, device="meta")
    return leaf


def _large(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operator on real integers would return more than is worth computing."""
    shapes, named = tree_map(_shape_of, (args, kwargs))
    if "device" in named:
        named["device"] = torch.device("meta")
    try:
        out = func(*shapes, **named)
    except Exception:  # an operator that looks at values has no shape function
        return False
    leaves = [leaf for leaf in tree_flatten(out)[0] if isinstance(leaf, torch.Tensor)]
    return any(leaf.numel() > REAL_ELEMENTS for leaf in leaves)


def workspace(func: Any, args: Any) -> int:
    """Bytes that the CUDA kernel of an operator takes in addition to its result.

    The backward pass of flash attention sums the gradient of the queries in fp32, and with grouped
    queries it creates the gradients of keys and values for every query head before it sums them
    (`flash_api.cpp` of torch 2.9: `dq_accum`, `dk_expanded`, `dv_expanded`).
    """
    if func not in _FLASH_BACKWARD:
        return 0
    query, key = args[1], args[2]
    batch, heads, length, width = query.shape
    size = 4 * batch * heads * (-(-length // 128) * 128) * (-(-width // 32) * 32)
    if key.shape[1] != heads:
        size += 2 * 2 * batch * heads * key.shape[2] * width
    return int(size)


_FLASH_BACKWARD = {
    getattr(aten, name).default
    for name in ("_scaled_dot_product_flash_attention_backward",)
    if hasattr(aten, name)
}

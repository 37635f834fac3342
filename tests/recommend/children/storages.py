"""Bytes of the storages that operators make; imported by the scripts beside it."""

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Made(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
    """Storages that operators have made and that something, autograd too, keeps.

    Attributes:
        bytes: of those that are kept now.
        peak: the most that were kept at any moment.
    """

    def __init__(self, but: "Iterable[torch.Tensor]" = ()) -> None:
        """But: tensors whose storages are not counted."""
        super().__init__()
        self.known = {tensor.untyped_storage()._cdata for tensor in but}
        self.bytes = self.peak = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Counts a storage when it is first seen, and its end."""
        made = func(*args, **(kwargs or {}))
        for thing in tree_leaves(made):
            if isinstance(thing, torch.Tensor):
                storage = thing.untyped_storage()
                if storage._cdata not in self.known:
                    self.known.add(storage._cdata)
                    self.bytes += storage.nbytes()
                    self.peak = max(self.peak, self.bytes)
                    weakref.finalize(storage, self.gone, storage._cdata, storage.nbytes())
        return made

    def gone(self, key: int, size: int) -> None:
        """Nothing holds this storage any longer."""
        self.bytes -= size
        self.known.discard(key)

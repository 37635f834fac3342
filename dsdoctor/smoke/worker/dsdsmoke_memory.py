"""Sums the tensors that a DeepSpeed engine holds; runs in the patient, Python 3.8 and later."""

from __future__ import annotations

from typing import Any, Dict, Set, Tuple

import torch

#: Attributes with buffers for communication or checkpoints, not model states.
BUFFERS = (
    "bucket", "ipg_buffer", "temp_grad_buffer", "params_to_reduce", "swap", "trace", "timer",
    "event", "stream", "dummy", "zero_buffer", "__gathered", "norm_for_param",
)  # fmt: skip
DEEPEST = 6


class Sum:
    """Counts each storage once, no matter how many views it has."""

    def __init__(self) -> None:
        self.devices: Dict[str, int] = {}
        self.parts: Dict[str, int] = {}
        self._storages: Set[Tuple[str, int]] = set()
        self._visited: Set[int] = set()

    def _take(self, tensor: Any, name: str) -> None:
        try:
            storage = tensor.untyped_storage()
            key, size = (str(tensor.device), storage.data_ptr()), storage.nbytes()
        except (RuntimeError, NotImplementedError):
            return
        if key[1] and key not in self._storages:
            self._storages.add(key)
            device = tensor.device.type
            self.devices[device] = self.devices.get(device, 0) + size
            self.parts[name] = self.parts.get(name, 0) + size

    def _tensor(self, value: Any, name: str) -> None:
        self._take(value.detach(), name)
        if value.grad is not None:
            self._take(value.grad, name + ".grad")
        part = getattr(value, "ds_tensor", None)
        if isinstance(part, torch.Tensor):
            self._take(part.detach(), name + ".ds_tensor")

    def walk(self, value: Any, name: str, depth: int = 0) -> None:
        """Everything that can be reached from a value through containers."""
        if id(value) in self._visited or depth > DEEPEST:
            return
        if isinstance(value, torch.Tensor):
            self._visited.add(id(value))
            self._tensor(value, name)
        elif isinstance(value, dict):
            self._visited.add(id(value))
            for item in [*value.keys(), *value.values()]:
                self.walk(item, name, depth + 1)
        elif isinstance(value, (list, tuple, set)):
            self._visited.add(id(value))
            for item in list(value):
                self.walk(item, name, depth + 1)


def model_states(engine: Any) -> Dict[str, Dict[str, int]]:
    """Bytes of weights, gradients, master weights and optimizer state of this rank.

    Walks the module and everything that the optimizer's attributes reach. By device, and by the
    attribute that was met first.
    """
    found = Sum()
    for parameter in engine.module.parameters():
        found.walk(parameter, "module")
    outer = engine.optimizer
    for optimizer, prefix in ((outer, ""), (getattr(outer, "optimizer", None), "inner.")):
        for name, value in list(vars(optimizer).items()) if optimizer is not None else []:
            if not any(word in name for word in BUFFERS):
                found.walk(value, prefix + name)
    return {"bytes": found.devices, "parts": found.parts}

"""Sums the tensors that a DeepSpeed engine holds; runs in the patient, on Python 3.8 and newer."""

#: Attributes that hold buffers of communication or checkpoint machinery, not model states.
BUFFERS = (
    "bucket", "ipg_buffer", "params_to_reduce", "swap", "trace", "timer", "event", "stream",
    "dummy", "zero_buffer", "__gathered", "norm_for_param",
)  # fmt: skip
DEEPEST = 6


def model_states(engine, torch):
    """Bytes by device of weights, gradients, master weights and optimizer state of this rank.

    Walks the module and everything that the optimizer's attributes reach. A storage is counted
    once, whoever views it.
    """
    storages, visited, rows = {}, set(), {}

    def take(tensor, name):
        try:
            storage = tensor.untyped_storage()
            key = (str(tensor.device), storage.data_ptr())
            size = storage.nbytes()
        except (RuntimeError, NotImplementedError):
            return
        if key[1] == 0 or key in storages:
            return
        storages[key] = size
        device = tensor.device.type
        rows.setdefault(name, {}).setdefault(device, 0)
        rows[name][device] += size

    def walk(value, name, depth):
        if isinstance(value, torch.Tensor):
            if id(value) in visited:
                return
            visited.add(id(value))
            take(value.detach(), name)
            if value.grad is not None:
                take(value.grad, name + ".grad")
            for extra in ("ds_tensor", "_hp_mapping"):
                part = getattr(value, extra, None)
                if isinstance(part, torch.Tensor):
                    take(part.detach(), name + "." + extra)
            return
        if depth > DEEPEST or id(value) in visited:
            return
        if isinstance(value, dict):
            visited.add(id(value))
            for item in list(value.values()):
                walk(item, name, depth + 1)
            for item in list(value):
                if isinstance(item, torch.Tensor):
                    walk(item, name, depth + 1)
        elif isinstance(value, (list, tuple, set)):
            visited.add(id(value))
            for item in list(value):
                walk(item, name, depth + 1)

    for parameter in engine.module.parameters():
        walk(parameter, "module", 0)
    outer = engine.optimizer
    for optimizer, prefix in ((outer, ""), (getattr(outer, "optimizer", None), "inner.")):
        if optimizer is None:
            continue
        for name, value in list(vars(optimizer).items()):
            if not any(word in name for word in BUFFERS):
                walk(value, prefix + name, 0)
    devices = {}
    for parts in rows.values():
        for device, size in parts.items():
            devices[device] = devices.get(device, 0) + size
    return {"bytes": devices, "parts": {name: sum(p.values()) for name, p in rows.items()}}

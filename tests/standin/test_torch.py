"""What a real CUDA build of torch says on the stand-ins."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.standin import bed, build

pytestmark = [pytest.mark.standin, pytest.mark.timeout(300)]
Shown = Callable[..., dict[str, str]]


def words(env: dict[str, str], code: str) -> str:
    done = bed.python(code, env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_torch_sees_the_machine(shown: Shown) -> None:
    code = """
import torch
p = torch.cuda.get_device_properties(1)
print(torch.cuda.is_available(), torch.cuda.device_count(), p.name, p.total_memory >> 30, p.multi_processor_count, torch.cuda.get_device_capability(1))
print(p.uuid, torch.cuda.can_device_access_peer(0, 1), torch.cuda.nccl.version(), torch.backends.cudnn.version() > 90000)
"""
    first, second = words(shown(), code).splitlines()
    assert first == "True 2 NVIDIA H100 80GB HBM3 4 132 (9, 0)"
    nccl = build.pinned("nvidia-nccl")  # 22705
    release = (nccl // 10000, nccl // 100 % 100, nccl % 100)
    assert second == f"939936e6-d92c-5d8e-91df-3ff710f1ee78 True {release} True"


def test_operators_allocator_streams_and_events_work(shown: Shown) -> None:
    code = """
import torch
torch.manual_seed(0)
x, w = torch.randn(32, 16), torch.randn(8, 16)
want = torch.nn.functional.linear(x, w).log_softmax(-1).sum().item()
w = w.cuda().requires_grad_()
with torch.cuda.stream(torch.cuda.Stream()):
    begun = torch.cuda.Event(enable_timing=True); ended = torch.cuda.Event(enable_timing=True)
    begun.record()
    loss = torch.nn.functional.linear(x.cuda(), w).log_softmax(-1).sum()
    loss.backward()
    ended.record()
torch.cuda.synchronize()
assert ended.query() and begun.elapsed_time(ended) > 0
assert abs(loss.item() - want) < 1e-3 and w.grad.is_cuda and w.grad.norm() > 0
before = torch.cuda.memory_allocated()
kept = torch.empty(1 << 20, device="cuda:0")
print(torch.cuda.memory_allocated() - before, loss.device, x.cuda(1).device)
"""
    assert words(shown(), code) == f"{4 << 20} cuda:0 cuda:1"


def test_what_the_cpu_names_otherwise_works(shown: Shown) -> None:
    """Convolutions are cuDNN's on a GPU, and only there are whole numbers counted."""
    code = """
import torch
torch.manual_seed(0)
x, w, b = torch.randn(2, 3, 16), torch.randn(4, 3, 3), torch.randn(4)
wants, gets = [], []
for device, found in (("cpu", wants), ("cuda", gets)):
    given = [part.to(device).detach().requires_grad_() for part in (x, w, b)]
    out = torch.nn.functional.conv1d(*given, stride=2, padding=1)
    out.square().sum().backward()
    found += [out.detach(), *(part.grad for part in given)]
assert all(torch.allclose(want, got.cpu(), atol=1e-4) for want, got in zip(wants, gets))
chosen = torch.tensor([0, 2, 2, 1, 2], dtype=torch.int32, device="cuda")
print(torch.histc(chosen, bins=4, min=0, max=3).tolist())
"""
    assert words(shown(), code) == "[1, 1, 3, 0]"


@pytest.mark.parametrize("expandable", ["True", "False"])
def test_memory_runs_out_with_torch_s_own_words(shown: Shown, expandable: str) -> None:
    code = """
import torch
kept = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
try:
    torch.empty(3 << 30, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError as error:
    print(error)
"""
    env = shown(variables={"PYTORCH_CUDA_ALLOC_CONF": f"expandable_segments:{expandable}"})
    text = words(env, code)
    assert re.match(
        r"CUDA out of memory\. Tried to allocate 3\.00 GiB\. GPU 0 has a total capacity of 4\.00 GiB of which"
        r" 2\.\d+ GiB is free\. Of the allocated memory 1024\.00 MiB is allocated by PyTorch, and ",
        text,
    ), text

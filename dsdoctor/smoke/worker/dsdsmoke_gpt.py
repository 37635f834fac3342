"""A small GPT in plain torch, tokens with a structure that can be learned, and a reference run.

Runs in the patient, Python 3.8 and later.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

#: Every next token follows from the last by this rule, except for some noise.
STEP, SHIFT, NOISE = 5, 17, 0.05
#: Tokens in use: a few steps are enough to learn that the others never occur.
ALPHABET = 32


class Norm(nn.Module):
    """RMSNorm, or LayerNorm with a bias."""

    def __init__(self, width: Any, bias: Any) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x: Any) -> Any:
        if self.bias is not None:
            return functional.layer_norm(x, x.shape[-1:], self.weight, self.bias)
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return wide.to(x.dtype) * self.weight


def rotate(x: Any, cos: Any, sin: Any) -> Any:
    """Rotary position embedding."""
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


class Block(nn.Module):
    """A block of attention and MLP with the given shape."""

    def __init__(self, shape: Any) -> None:
        super().__init__()
        self.shape = shape
        hidden, dim = shape["hidden"], shape["head_dim"]
        query, kv = shape["heads"] * dim, shape["kv_heads"] * dim
        inner, bias = shape["intermediate"], bool(shape.get("norm_bias"))
        self.norm1, self.norm2 = Norm(hidden, bias), Norm(hidden, bias)
        self.q = nn.Linear(hidden, query, bias=bool(shape.get("qkv_bias")))
        self.k = nn.Linear(hidden, kv, bias=bool(shape.get("qkv_bias")))
        self.v = nn.Linear(hidden, kv, bias=bool(shape.get("qkv_bias")))
        self.out = nn.Linear(query, hidden, bias=bool(shape.get("out_bias")))
        mlp_bias = bool(shape.get("mlp_bias"))
        self.up = nn.Linear(hidden, inner, bias=mlp_bias)
        self.gate = nn.Linear(hidden, inner, bias=mlp_bias) if shape["gated"] else None
        self.down = nn.Linear(inner, hidden, bias=mlp_bias)

    def attend(self, x: Any) -> Any:
        shape = self.shape
        batch, length, _ = x.shape
        dim, heads, kv = shape["head_dim"], shape["heads"], shape["kv_heads"]
        q = self.q(x).view(batch, length, heads, dim).transpose(1, 2)
        k = self.k(x).view(batch, length, kv, dim).transpose(1, 2)
        v = self.v(x).view(batch, length, kv, dim).transpose(1, 2)
        if not shape.get("positions"):
            steps = torch.arange(length, device=x.device, dtype=torch.float32)
            rates = 10000.0 ** (
                -torch.arange(0, dim, 2, device=x.device, dtype=torch.float32) / dim
            )
            angles = torch.outer(steps, rates).repeat(1, 2)
            cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
            q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if kv != heads:
            k = k.repeat_interleave(heads // kv, 1)
            v = v.repeat_interleave(heads // kv, 1)
        if shape.get("attention") == "eager":
            scores = q @ k.transpose(-1, -2) / math.sqrt(dim)
            mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(mask, float("-inf"))
            y = scores.float().softmax(-1).to(v.dtype) @ v
        else:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, heads * dim))

    def forward(self, x: Any) -> Any:
        x = x + self.attend(self.norm1(x))
        h = self.norm2(x)
        if self.gate is not None:
            h = functional.silu(self.gate(h)) * self.up(h)
        else:
            h = functional.gelu(self.up(h))
        return x + self.down(h)


class Gpt(nn.Module):
    """A decoder; `forward` returns the mean loss of predicting the next token."""

    def __init__(self, shape: Any) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape["vocab"], shape["hidden"])
        positions = shape.get("positions") or 0
        self.position = nn.Embedding(positions, shape["hidden"]) if positions else None
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape["layers"]))
        self.norm = Norm(shape["hidden"], bool(shape.get("norm_bias")))
        self.head = (
            None if shape["tied"] else nn.Linear(shape["hidden"], shape["vocab"], bias=False)
        )
        for parameter in self.parameters():
            # under zero.Init a parameter is an empty stub here
            if parameter.dim() > 1 and parameter.numel():
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens: Any) -> Any:
        x = self.embed(tokens[:, :-1])
        if self.position is not None:
            x = x + self.position(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            if self.shape.get("checkpointing") and torch.is_grad_enabled():
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        x = self.norm(x)
        weight = self.embed.weight if self.head is None else self.head.weight
        logits = functional.linear(x, weight) if self.head is None else self.head(x)
        return functional.cross_entropy(
            logits.float().view(-1, logits.shape[-1]), tokens[:, 1:].reshape(-1)
        )


def sample(seed: Any, step: Any, index: Any, count: Any, length: Any, vocab: Any) -> Any:
    """`count` sequences of a step, starting at `index`: equal on every rank and device."""
    rows = []
    used = min(vocab, ALPHABET)
    for number in range(index, index + count):
        generator = torch.Generator().manual_seed(seed * 1000003 + step * 1009 + number)
        start = torch.randint(0, used, (1,), generator=generator).item()
        row = [start]
        for _ in range(length):
            row.append((row[-1] * STEP + SHIFT) % used)
        tokens = torch.tensor(row)
        noisy = torch.rand(length + 1, generator=generator) < NOISE
        other = torch.randint(0, used, (length + 1,), generator=generator)
        rows.append(torch.where(noisy, other, tokens))
    return torch.stack(rows)


def reference(job: Any, device: Any, dtype: Any, counted: int) -> Any:
    """A single process without DeepSpeed, with the same seed, data and optimizer.

    Weights in the training precision, master weights and AdamW in fp32, gradients of the whole
    global batch: the result that every ZeRO stage must reproduce.

    counted: steps that the engine's Adam had counted before the first one. DeepSpeed 0.19.8 takes
    an empty step to make the states of its 16-bit optimizer of stage 0, so that Adam's bias
    correction is one step ahead there: its first update is 0.74 of what torch's would be.

    Returns its losses, and the norm of the gradients of its first step.
    """
    torch.manual_seed(job["seed"])
    model = Gpt(job["shape"]).to(device=device, dtype=dtype)
    masters = [p.detach().float().clone().requires_grad_() for p in model.parameters()]
    o = job["adam"]
    kind = torch.optim.AdamW if o["decoupled"] else torch.optim.Adam
    optimizer = kind(
        masters, lr=job["lr"], betas=tuple(o["betas"]), eps=o["eps"],
        weight_decay=o["weight_decay"],
    )  # fmt: skip
    for master in masters:
        master.grad = torch.zeros_like(master)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    for _ in range(counted):
        optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] = job["lr"]
    losses, first_norm = [], 0.0
    micro, world, passes = job["micro_batch"], job["world"], job["accumulation"]
    for step in range(job["steps"]):
        total = 0.0
        for master in masters:
            master.grad = torch.zeros_like(master)
        for number in range(world * passes):
            tokens = sample(
                job["seed"], step, number * micro, micro, job["sequence"], job["shape"]["vocab"]
            )
            loss = model(tokens.to(device))
            loss.backward()
            total += loss.item()
            for parameter, master in zip(model.parameters(), masters):
                master.grad += parameter.grad.float() / (world * passes)
                parameter.grad = None
        if step == 0 or job["clip"]:
            norm = norm_of(master.grad for master in masters)
        if step == 0:
            first_norm = norm
        if job["clip"]:
            for master in masters:
                master.grad *= min(1.0, job["clip"] / (norm + 1e-6))
        optimizer.step()
        with torch.no_grad():
            for parameter, master in zip(model.parameters(), masters):
                parameter.copy_(master)
        losses.append(total / (world * passes))
    return losses, first_norm


def norm_of(gradients: Any) -> Any:
    """The norm of all gradients together, summed in fp32."""
    norms = [torch.linalg.vector_norm(gradient.float()) for gradient in gradients]
    return torch.linalg.vector_norm(torch.stack(norms)).item()

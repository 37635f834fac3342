"""dsdoctor: says whether a DeepSpeed / PyTorch GPU job will start, before it starts."""

from __future__ import annotations

__version__ = "0.1.0"

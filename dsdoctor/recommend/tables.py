"""How old the figures are that `recommend` computes with.

Sources: what DeepSpeed 0.19.8 allocates for each parameter (runtime/zero), the published
`config.json` of each preset, and measured sizes of CUDA contexts. No machine can be asked for them.
"""

from __future__ import annotations

#: The oldest day on which one of them was compared with its source.
FACTS_AS_OF = "2026-11-21"

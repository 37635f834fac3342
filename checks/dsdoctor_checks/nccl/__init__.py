"""NCCL: its settings, and what it needs from the node."""

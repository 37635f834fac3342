"""NCCL: its environment and what it needs of the host."""

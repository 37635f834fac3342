"""Containers, and the GPUs that they receive."""

"""Conditions of the NVIDIA driver and of reaching its GPUs."""

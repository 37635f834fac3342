"""Conditions of number formats and of unlike GPUs."""

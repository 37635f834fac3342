"""Conditions of the DeepSpeed config."""

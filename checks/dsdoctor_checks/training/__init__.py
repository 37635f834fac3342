"""Failures of a training run itself."""

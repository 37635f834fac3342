"""Conditions of the family training."""

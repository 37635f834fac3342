"""Conditions of the family container."""

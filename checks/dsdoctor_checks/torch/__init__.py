"""Conditions of the torch build and of starting it."""

"""Cures: one fix, one file; a cure may serve several conditions."""

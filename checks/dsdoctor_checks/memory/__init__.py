"""Conditions of the family memory."""

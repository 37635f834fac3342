"""Conditions of the family storage."""

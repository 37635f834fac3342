"""Fixes: planned from facts, shown, applied, proven and undone."""

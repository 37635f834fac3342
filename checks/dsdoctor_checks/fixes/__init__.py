"""Fixes: one fix, one file; a fix may cover several conditions."""

"""Scenarios that provoke real failures, one module per family."""

"""The version, on the ground floor: every layer may import it."""

__version__ = "0.1.0"

"""The version, in the lowest layer: every module may import it."""

__version__ = "0.1.0"

"""The interpreter of the environment, and its packages."""

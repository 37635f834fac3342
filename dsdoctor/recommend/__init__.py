"""From machine and model to launch settings: pure functions."""

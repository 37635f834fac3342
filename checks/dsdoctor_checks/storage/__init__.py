"""File systems, checkpoints and the model hub."""

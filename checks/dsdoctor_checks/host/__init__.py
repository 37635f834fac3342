"""The host: memory, shared memory, limits of processes."""

"""GPU memory, host memory and shared memory."""

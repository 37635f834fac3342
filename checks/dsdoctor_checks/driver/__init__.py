"""The NVIDIA driver, and whether a process can reach its GPUs."""

"""The health of each GPU that the run would use, as NVML reports it."""

"""Number formats, and GPUs that differ from each other."""

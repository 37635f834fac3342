"""Building DeepSpeed's ops: compilers, ninja, headers, the extension cache."""

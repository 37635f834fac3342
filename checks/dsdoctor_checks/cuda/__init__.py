"""The CUDA toolkit that DeepSpeed compiles its ops with."""

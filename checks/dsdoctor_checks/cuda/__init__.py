"""Conditions of the CUDA toolkit that DeepSpeed compiles its ops with."""

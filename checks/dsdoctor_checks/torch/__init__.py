"""The torch build, and whether it imports and starts CUDA."""

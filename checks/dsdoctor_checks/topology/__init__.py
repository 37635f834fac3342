"""How the GPUs of a run reach each other."""

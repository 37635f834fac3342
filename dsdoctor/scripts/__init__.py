"""Training scripts, read from their syntax tree: what they take, call, read and prepare."""

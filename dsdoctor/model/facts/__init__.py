"""One module for each kind of fact."""

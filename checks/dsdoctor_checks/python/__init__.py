"""The patient's interpreter and its packages."""

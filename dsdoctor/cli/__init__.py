"""The command line: parse, call the API, render."""

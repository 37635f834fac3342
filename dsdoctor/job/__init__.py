"""The job before it starts: its options, its command line, and where it will start."""

"""Machines that a job may run on: this one now, this one when a job last worked, and others."""

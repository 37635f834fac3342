"""Conditions of the launch command, the hostfile and the master port."""

"""From text that people paste about a machine to the facts that it states, and no others.

A reader parses one format (`collect_env`, `ds_report`, `nvidia-smi`, …). It finds the output of any
version of its tool in a text, and states fields of facts with their lines. A field that two parts
of a text state differently counts as unknown, and the snapshot says so. Pure: text in, snapshot
out.
"""

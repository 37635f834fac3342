"""The gate before a job: a decision within a time budget, in the format of a scheduler.

`supervise` starts `worker` (which reads and judges the machine) and never waits for it longer than
the budget; `decide` turns a verdict into pass or block; `outputs` formats it for Slurm, Kubernetes,
node-problem-detector, Nagios, Prometheus and syslog. What runs before every job imports only the
standard library: see tests/hook/test_supervise.py.
"""

"""The gate before a job: a decision within a budget, in the words of a scheduler.

`supervise` starts `worker` (which reads and judges the machine) and never waits for it longer than
the budget; `decide` turns a verdict into pass or block; `outputs` says it to Slurm, Kubernetes,
node-problem-detector, Nagios, Prometheus and syslog. What runs before every job imports the
standard library only: see tests/hook/test_supervise.py.
"""

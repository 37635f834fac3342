"""`dsdoctor run -- CMD`: start a job, watch it, keep what a post-mortem needs, name the cause.

`supervise` starts the command and relays its streams byte for byte; two children sample the host
and the GPUs (`probes/children/watch_*.py`); `ending` turns what was kept into the last ten lines.
The job never depends on the watcher: if that dies, the job goes on unwatched.
"""

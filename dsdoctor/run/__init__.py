"""`dsdoctor run -- CMD`: start a job, watch it, store what a post-mortem needs, report the cause.

`supervise` starts the command and relays its streams byte for byte; two children sample the host
and the GPUs (`probes/children/watch_*.py`); `ending` turns the stored data into the last ten lines.
The job never depends on the watcher: if the watcher dies, the job continues unwatched.
"""

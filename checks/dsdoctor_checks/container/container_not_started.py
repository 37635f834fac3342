"""The job's container did not start.

## Why it matters
No part of the job has run: the container runtime could not read the image, mount a folder, or set up
the container. Slurm or the kubelet then ends the other tasks, and their messages are a consequence.

## What to do
Correct what the runtime reports: a wrong image path, a mount whose source is not on the node or whose
target is not in the image, or a full cache. Then test the image on the node that failed:
`apptainer exec IMAGE true`, or `srun --container-image=IMAGE true`.

## References
- https://apptainer.org/docs/user/latest/bind_paths_and_mounts.html
- https://github.com/NVIDIA/pyxis/wiki
- https://kubernetes.io/docs/concepts/containers/images/#imagepullbackoff
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope

from . import _container_not_started_signatures

CONDITION = Condition("container-not-started", id="DSD1152", scope=Scope.JOB, since="0.1")

HINT = "correct what the container runtime reports, then test the image on that node (`apptainer exec IMAGE true`)"

SIGNATURES = _container_not_started_signatures.SIGNATURES

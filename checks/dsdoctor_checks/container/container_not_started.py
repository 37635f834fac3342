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

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("container-not-started", id="DSD1152", scope=Scope.JOB, since="0.1")

HINT = "correct what the container runtime reports, then test the image on that node (`apptainer exec IMAGE true`)"

#: What ends the other tasks of a step without a container.
_VICTIMS = ("job-cancelled", "host-oom-killed", "rank-killed", "rendezvous-timeout")

#: Nothing of the job ran, so a crash there is that of a hook, whose output the runtime prints.
_HOOKS = (*_VICTIMS, "native-crash")

#: A message that names the reason, such as a full disk or a denied folder, says more than these.
SIGNATURES = (
    Signature(
        pattern=r"^FATAL: +container creation failed: (?P<why>.{1,300})",
        source="apptainer 1.0-1.4, singularity 3.5-3.11 internal/app/starter/master_linux.go",
        message="the container was not created: {why}",
        examples=(
            "FATAL:   container creation failed: mount hook function failure: mount /data->/data error: while mounting /data: destination /data doesn't exist in container",
        ),
        not_examples=("the test expects FATAL:   container creation failed: mount /data",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"^FATAL: +could not open image (?P<image>/\S{1,300}): (?P<why>.{1,300})",
        source="apptainer 1.0-1.4, singularity 3.5-3.11 internal/pkg/runtime/launch",
        message="the image `{image}` could not be opened: {why}",
        examples=(
            "FATAL:   could not open image /data/torch.sif: failed to retrieve path for /data/torch.sif: lstat /data/torch.sif: no such file or directory",
            "FATAL:   could not open image /data/torch.sif: the image's architecture (arm64) could not run on the host's (amd64)",
        ),
        not_examples=("FATAL:   could not open image torch.png: unknown format",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"(?:^|error: )pyxis: (?:couldn't start container|container start failed with error code: \d+|failed to create container filesystem|failed to import docker image)",
        source="pyxis 0.9-0.20 pyxis_slurmstepd.c",
        examples=(
            "slurmstepd: error: pyxis: couldn't start container",
            "pyxis: couldn't start container",
            "slurmstepd: error: pyxis: container start failed with error code: 1",
            "slurmstepd: error: pyxis: failed to create container filesystem",
            "slurmstepd: error: pyxis: failed to import docker image",
        ),
        not_examples=("the pyxis: couldn't start containers of old images, says the wiki",),
        masks=_HOOKS,
    ),
    Signature(
        pattern=r"pyxis: couldn't mkdir (?P<folder>/\S{1,200}): ",
        source="pyxis 0.2-0.20 pyxis_slurmd.c, pyxis_slurmstepd.c, pyxis_dirs.c",
        message="pyxis cannot create its folder `{folder}` on the node",
        hint="an administrator sets a `runtime_path` that exists on each node in pyxis's line of `plugstack.conf`",
        examples=(
            "[2019-09-24T10:10:06.901] [321.0] error: pyxis: couldn't mkdir /run/pyxis/1000: No such file or directory",
        ),
        not_examples=("pyxis: couldn't mkdir a folder: ",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"nvidia-container-cli: (?P<why>(?:ldcache|mount|container|device|detection) error: .{1,200})",
        source="libnvidia-container 1.0-1.17 src/error.c, src/cli/main.c",
        message="NVIDIA's hook could not set up the container: {why}",
        hint="correct what the hook reports; where only some nodes fail, compare their driver, libnvidia-container and limits with those of a node that works",
        examples=(
            "slurmstepd: error: pyxis:     nvidia-container-cli: ldcache error: process /sbin/ldconfig terminated with signal 9",
            "nvidia-container-cli: mount error: file creation failed: /var/lib/docker/overlay2/x: file exists: unknown.",
            "nvidia-container-cli: container error: cgroup subsystem devices not found: unknown.",
            "nvidia-container-cli: device error: 7: unknown device: unknown.",
            "nvidia-container-cli: detection error: nvml error: insufficient permissions",
        ),
        not_examples=("nvidia-container-cli: mount errors are rare",),
        level=Level.STRONG,
        masks=_HOOKS,
    ),
    Signature(
        pattern=r"\b(?:Reason: +|\d/\d +)(?:ErrImagePull|ImagePullBackOff|InvalidImageName|CreateContainerConfigError|CreateContainerError|RunContainerError)\b|kubelet +(?:\S+ +)?Failed to pull image ",
        source="kubernetes 1.20-1.34 pkg/kubelet/images/types.go, pkg/kubelet/kuberuntime/kuberuntime_container.go",
        examples=(
            "      Reason:       ErrImagePull",
            "      Reason:       ImagePullBackOff",
            "train-worker-3   0/1   ImagePullBackOff   0   4m",
            "      Reason:       InvalidImageName",
            "      Reason:       CreateContainerConfigError",
            "      Reason:       CreateContainerError",
            "train-worker-3   0/1   RunContainerError   2   4m",
            'Warning  Failed  2m  kubelet  Failed to pull image "lab/train:9": not found',
        ),
        not_examples=("retried after ImagePullBackOff", "Reason: RunContainerErrors"),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"\d+ Insufficient nvidia\.com/gpu",
        source="kubernetes 1.8-1.34 pkg/scheduler/framework/plugins/noderesources/fit.go",
        examples=("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",),
        not_examples=("what is meant by Insufficient nvidia.com/gpu",),
        message="no node had as many free GPUs as the pod requests",
        hint="look at `kubectl describe nodes`: where `Allocatable` lists fewer GPUs than the pod requests, "
        "or none, request fewer, or install NVIDIA's device plugin; else wait until other pods end",
        # the scheduler tries again until it finds one
        unless=("Successfully assigned ",),
        level=Level.STRONG,
        masks=("no-gpu-visible",),
    ),
)

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
_VICTIMS = (
    "job-cancelled",
    "host-oom-killed",
    "rank-killed",
    "rendezvous-timeout",
    "slurm-step-not-started",
)

#: Nothing of the job ran, so a crash there is that of a hook, whose output the runtime prints.
_HOOKS = (*_VICTIMS, "native-crash")

#: A message that names the reason, such as a full disk or a denied folder, says more than these.
SIGNATURES = (
    Signature(
        pattern=r"\d tasks in gang unschedulable: (?P<why>.{1,200})",
        source="Volcano 1.0-1.13 pkg/scheduler/plugins/gang, pkg/scheduler/cache",
        message="Volcano has not started the job: {why}",
        hint="compare what all its pods request together with what is free (`kubectl describe nodes`, `kubectl describe queue`): request fewer, lower `minAvailable`, or wait until other jobs end",
        examples=(
            "3/0 tasks in gang unschedulable: pod group is not ready, 3 minAvailable, 3 Pending",
        ),
        not_examples=("4 tasks in gang unschedulable: ",),
    ),
    Signature(
        pattern=r"couldn't assign flavors to pod set \S{1,63}: (?P<why>.{1,200})",
        source="Kueue 0.3-0.14 pkg/scheduler",
        message="Kueue has not admitted the job: {why}",
        hint="wait until other jobs of the queue end, request fewer GPUs, or ask for a larger quota: `kubectl describe clusterqueue` shows what it has",
        examples=(
            "couldn't assign flavors to pod set workers: insufficient unused quota for nvidia.com/gpu in flavor h100, 8 more needed",
        ),
        not_examples=("couldn't assign flavors to pod set main, so it waits",),
    ),
    Signature(
        pattern=r"enroot-(?:switchroot|nsenter): failed to execute: (?P<program>\S{1,300}): (?P<why>.{1,100})",
        source="enroot 3.0-4.1 bin/enroot-switchroot.c, bin/enroot-nsenter.c",
        message="enroot could not start `{program}` in the container: {why}",
        hint="see that the image contains it (`enroot start IMAGE ls -l PROGRAM`) and is of this machine's architecture; a path of the host is visible there only if it is mounted",
        examples=(
            "enroot-switchroot: failed to execute: /bin/bash: No such file or directory",
            "enroot-nsenter: failed to execute: bash: Exec format error",
        ),
        not_examples=("enroot-switchroot: failed to execute: ",),
        level=Level.STRONG,
        masks=_HOOKS,
    ),
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
        hint="correct what the hook reports; where only some nodes fail, compare their driver, `libnvidia-container` and limits with those of a node that works",
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
        pattern=r"\b(?:Reason: +|\d/\d +)(?:Init:)?(?:ErrImagePull|ImagePullBackOff|InvalidImageName|CreateContainer(?:Config)?Error|RunContainerError|StartError|ContainerCannotRun)\b|kubelet +(?:\S+ +)?Failed to pull image ",
        source="kubernetes 1.20-1.34 pkg/kubelet/images/types.go, pkg/kubelet/kuberuntime/kuberuntime_container.go",
        examples=(
            "      Reason:       ErrImagePull",
            "      Reason:       ImagePullBackOff",
            "train-worker-3   0/1   ImagePullBackOff   0   4m",
            "      Reason:       InvalidImageName",
            "      Reason:       CreateContainerConfigError",
            "      Reason:       CreateContainerError",
            "train-worker-3   0/1   RunContainerError   2   4m",
            "train-worker-3   0/1   Init:StartError   2   4m",
            "      Reason:       ContainerCannotRun",
            'Warning  Failed  2m  kubelet  Failed to pull image "lab/train:9": not found',
        ),
        not_examples=("retried after ImagePullBackOff", "Reason: RunContainerErrors"),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"\bFailed +\S{1,20} (?:\(x\d+ over \S+\) +)? *kubelet(?:, \S+)? +Error: (?!ErrImagePull|ImagePullBackOff|.{0,600}(?:nvidia-container-cli|executable file not found|[Nn]o space left))(?P<why>\S.{1,300})",
        source="kubernetes 1.8-1.34 pkg/kubelet/kuberuntime/kuberuntime_container.go: FailedToCreateContainer, FailedToStartContainer",
        message="the kubelet could not start the container: {why}",
        hint="correct what the message reports: the command, a mount, a device or the runtime of that node",
        examples=(
            "Warning  Failed     12s   kubelet  Error: failed to create containerd task: failed to create shim task: OCI runtime create failed: x: unknown",
            'Warning  Failed  12s (x3 over 55s)  kubelet, gpu-3  Error: failed to start container "train": Error response from daemon: x',
        ),
        not_examples=(
            "Warning  Failed  2m (x4 over 3m)  kubelet  Error: ErrImagePull",
            "what the kubelet Error: prefix means",
        ),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"no runtime binary found from candidate list: \[(?P<names>[^\]\n]{0,100})\]",
        source="nvidia-container-toolkit 1.4-1.18 internal/oci/runtime_low_level.go",
        message="NVIDIA's container runtime found none of the runtimes that it calls: {names}",
        hint="install `runc` or `crun` on the node, on the PATH of the container engine, or list the one that is there under `runtimes` in `/etc/nvidia-container-runtime/config.toml`",
        examples=(
            "error constructing low-level runtime: error locating runtime: no runtime binary found from candidate list: [docker-runc runc crun]",
        ),
        not_examples=("no runtime binary found from candidate list: [runc",),
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
    Signature(
        pattern=r"pyxis: +\[ERROR\] (?P<why>\S.{1,300})",
        source="enroot 3.0-4.1 src/common.sh, printed by pyxis 0.9-0.20 common.c",
        message="enroot could not start the container: {why}",
        examples=(
            "slurmstepd: error: pyxis:     [ERROR] No such file or directory: /data/train.sqsh",
            "pyxis:     [ERROR] URL https://registry-1.docker.io/v2/lab/train/manifests/9 returned error code: 401 Unauthorized",
        ),
        not_examples=("pyxis: the line [ERROR] above",),
        level=Level.STRONG,
        masks=_HOOKS,
    ),
    Signature(
        pattern=r"enroot-(?:mount|nsenter|mksquashovlfs|aufs2ovlfs|switchroot): failed to (?!execute)(?P<why>.{1,300})",
        source="enroot 3.0-4.1 bin/*.c",
        message="enroot could not set up the container: failed to {why}",
        hint="correct a mount whose source does not exist; for namespaces, compare `sysctl user.max_user_namespaces` with a node that works: `No space left on device` is that limit, not a full disk",
        examples=(
            "slurmstepd: error: pyxis:     enroot-mount: failed to mount: /data at /run/enroot/data: No such file or directory",
            "enroot-nsenter: failed to create user namespace: No space left on device",
            "enroot-mksquashovlfs: failed to mount overlay: a:b: Invalid argument",
            "enroot-aufs2ovlfs: failed to get capabilities: Operation not permitted",
            "enroot-switchroot: failed to change directory: /work: No such file or directory",
        ),
        not_examples=("enroot-switchroot: failed to execute: python: No such file or directory",),
        level=Level.STRONG,
        masks=_HOOKS,
    ),
    Signature(
        pattern=r"pyxis: (?P<why>child \d+ (?:failed with error code: \d+|terminated with signal \d+)|container exited too soon|container start error: .{1,200}|importer \S{1,200} failed with exit code \d+)",
        source="pyxis 0.9-0.20 enroot.c, importer.c, pyxis_slurmstepd.c",
        message="the container did not start: {why}",
        examples=(
            "slurmstepd: error: pyxis: child 24131 failed with error code: 1",
            "pyxis: child 24131 terminated with signal 9",
            "slurmstepd: error: pyxis: container exited too soon",
            "slurmstepd: error: pyxis: container start error: Cannot allocate memory",
            "pyxis: importer /usr/bin/import failed with exit code 1",
        ),
        not_examples=("pyxis: importer failed with exit code 1",),
        level=Level.WEAK,
        masks=_HOOKS,
    ),
    Signature(
        pattern=r"pyxis: --container-mounts: (?P<why>source path does not exist: \S{1,300}|invalid format: .{1,200})",
        source="pyxis 0.9-0.20 args.c, pyxis_slurmstepd.c",
        message="`--container-mounts` is wrong: {why}",
        hint="correct `--container-mounts=SOURCE:TARGET[:FLAGS]`; the source must exist on every node of the job",
        examples=(
            "slurmstepd: error: pyxis: --container-mounts: source path does not exist: /data/own",
            "srun: error: pyxis: --container-mounts: invalid format: /data;/data",
        ),
        not_examples=("pyxis: --container-mounts: argument",),
        level=Level.CERTAIN,
        masks=_HOOKS,
    ),
    Signature(
        pattern=r"^FATAL:   (?P<why>(?:[Uu]nable to (?:handle|open|build)|[Ww]hile (?!checking)|image .{0,120}not |stat /|mount |[Ff]ailed to |--fakeroot |User namespace |Unprivileged installation |unsupported )\S?.{1,300})",
        source="apptainer 1.0-1.4, singularity 3.5-4.3 cmd/internal/cli/actions.go, internal/pkg/runtime",
        message="the container did not start: {why}",
        examples=(
            "FATAL:   Unable to handle docker://lab/train uri: failed to get checksum for docker://lab/train: unauthorized",
            "FATAL:   unable to open the image",
            "FATAL:   Unable to build x",
            "FATAL:   While making image from oci registry: error fetching image to cache",
            "FATAL:   while extracting /data/train.sif: root filesystem extraction failed",
            "FATAL:   image /data/x.sif is not readable",
            "FATAL:   stat /data/x.sif: no such file or directory",
            "FATAL:   mount /x failed",
            "FATAL:   Failed to create an image cache handle: x",
            "FATAL:   failed to create a new image cache handle",
            "FATAL:   --fakeroot requires either being in /etc/subuid or the fakeroot command",
            "FATAL:   User namespace required but not allowed by configuration.",
            "FATAL:   Unprivileged installation found, user namespace needed but not allowed by configuration.",
            "FATAL:   unsupported image",
        ),
        not_examples=("FATAL:   password authentication failed for user postgres",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"^ERROR *: Failed to create user namespace: (?P<why>.{1,200})",
        source="apptainer 1.0-1.4, singularity 3.0-4.3 cmd/starter/c/starter.c",
        message="the container needs a user namespace, which this node does not allow: {why}",
        hint="ask an administrator to enable user namespaces (`sysctl user.max_user_namespaces`, `kernel.unprivileged_userns_clone`) or to install apptainer with setuid",
        examples=("ERROR  : Failed to create user namespace: user namespace disabled",),
        not_examples=("the ERROR : Failed to create user namespace: x",),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"Error response from daemon: (?!could not select device driver|[Uu]nknown (?:or invalid )?runtime|CDI |.{0,600}(?:nvidia-container-cli|executable file not found|[Nn]o space left))(?P<why>\S.{0,300})",
        source="docker 1.10-29 cli: what the daemon answers to `docker run`",
        message="Docker could not start the container: {why}",
        examples=(
            "docker: Error response from daemon: pull access denied for lab/x, repository does not exist or may require 'docker login'.",
            'docker: Error response from daemon: invalid mount config for type "bind": bind source path does not exist: /data.',
        ),
        not_examples=(
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
        ),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"(?:Cannot|permission denied while trying to) connect to the [Dd]ocker (?:daemon|API)",
        source="docker 1.10-29 client/errors.go",
        message="Docker does not run here, or this user may not use it",
        hint="start it (`sudo systemctl start docker`), or add the user to the group `docker` and log in again",
        examples=(
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
            "docker: permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
            "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock",
        ),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"^(?:\[[^\]]{0,60}\] ?)?(?:exec (?P<program>/\S{1,200}): |standard_init_linux\.go:\d+: exec user process caused:? \"?)exec format error",
        source="runc 1.0-1.4 libcontainer/standard_init_linux.go; Linux ENOEXEC",
        message="The image was built for another processor architecture than this machine has",
        hint="use an image of this architecture (`docker pull --platform linux/amd64 IMAGE`, or arm64), or begin the entry script with `#!/bin/sh`",
        examples=(
            "exec /usr/bin/python: exec format error",
            "standard_init_linux.go:228: exec user process caused: exec format error",
            'standard_init_linux.go:211: exec user process caused "exec format error"',
        ),
        not_examples=("the word exec format error",),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"FailedScheduling\b.{0,120}? (?P<why>(?:\d+/\d+ nodes are available: |persistentvolumeclaim |pod has unbound |no nodes available).{1,300})",
        source="kubernetes 1.8-1.34 pkg/scheduler: events",
        message="no node takes the pod: {why}",
        hint="compare what the pod requests (GPUs, CPUs, memory, tolerations, node selector, volume claims) with `kubectl describe nodes`",
        unless=("Successfully assigned ",),
        examples=(
            "Warning  FailedScheduling  2m  default-scheduler  0/5 nodes are available: 5 Insufficient memory.",
            'Warning  FailedScheduling  2m  default-scheduler  persistentvolumeclaim "data" not found',
            "Warning  FailedScheduling  2m  default-scheduler  pod has unbound immediate PersistentVolumeClaims.",
            "Warning  FailedScheduling  9s  default-scheduler  no nodes available to schedule pods",
        ),
        not_examples=("0/5 nodes are available: 5 Insufficient memory.",),
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"\b(?:FailedMount|FailedAttachVolume|FailedCreatePodSandBox)\b +\S.{0,80}? (?P<why>(?:MountVolume|AttachVolume|Multi-Attach|Unable to attach|Failed to create pod sandbox).{1,300})",
        source="kubernetes 1.8-1.34 pkg/kubelet, pkg/controller/volume: events",
        message="the kubelet could not prepare the pod: {why}",
        hint="correct what it names: a secret, config map or claim that does not exist, a volume that another node holds, or the container runtime of the node",
        examples=(
            'Warning  FailedMount  2m  kubelet  MountVolume.SetUp failed for volume "x" : secret "y" not found',
            'Warning  FailedAttachVolume  1m  attachdetach-controller  Multi-Attach error for volume "pvc-1"',
            'Warning  FailedAttachVolume  1m  attachdetach-controller  AttachVolume.Attach failed for volume "pvc-1" : timed out',
            "Warning  FailedMount  1m  kubelet  Unable to attach or mount volumes: timed out",
            "Warning  FailedCreatePodSandBox  3s  kubelet  Failed to create pod sandbox: rpc error: code = Unknown",
        ),
        not_examples=("FailedMount of x", "FailedAttachVolume of x", "FailedCreatePodSandBox of x"),
        level=Level.WEAK,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"\bUnexpectedAdmissionError\b.{0,200}(?P<why>Allocate failed due to .{1,300})",
        source="kubernetes 1.10-1.34 pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/cm/devicemanager",
        message="the kubelet had no device left for the pod: {why}",
        hint="delete the pod and let it be created again; if it comes back, restart NVIDIA's device plugin on that node and look for unhealthy GPUs",
        examples=(
            "Warning  UnexpectedAdmissionError  2s  kubelet  Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 8, Available: 4, which is unexpected",
        ),
        not_examples=("Allocate failed due to x",),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"pods? \"[^\"]{1,253}\" is forbidden: (?P<why>(?:exceeded quota|violates PodSecurity|error looking up service account).{1,300})",
        source="kubernetes 1.8-1.34 plugin/pkg/admission",
        message="the pod was not created: {why}",
        hint="request no more than `kubectl describe quota` leaves, or change what the message names",
        examples=(
            'Error creating: pods "train-worker-0" is forbidden: exceeded quota: gpu, requested: requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=4',
            'pod "x" is forbidden: violates PodSecurity "restricted:latest"',
            'pods "x" is forbidden: error looking up service account lab/train',
        ),
        not_examples=('pods "x" is forbidden: see the policy',),
        level=Level.STRONG,
        masks=_VICTIMS,
    ),
    Signature(
        pattern=r"\bkubelet(?:, \S+)? +(?:Error: (?:ErrImagePull|ImagePullBackOff)\b|Back-off pulling image \S)",
        source="kubernetes 1.8-1.34 pkg/kubelet/images/image_manager.go, kuberuntime_container.go",
        message="the kubelet could not pull the container's image",
        hint="read the other events of the pod: they say why; correct the image's name or tag, or give the pod an `imagePullSecrets` for the registry",
        examples=(
            "Warning  Failed  2m (x4 over 3m)  kubelet  Error: ErrImagePull",
            "Warning  Failed  2m (x4 over 3m)  kubelet, gpu-3  Error: ImagePullBackOff",
            'Normal  BackOff  2m (x4 over 3m)  kubelet  Back-off pulling image "reg.lab.io/bert:v9"',
        ),
        not_examples=("kubelet  Error: ErrImagePulls", "kubelet  Back-off pulling image "),
        masks=_VICTIMS,
    ),
)

"""The Ray cluster has fewer GPUs or CPUs than the job asks for.

## Why it matters
Ray starts a task, an actor or a placement group only when the cluster has what it asks for.
Otherwise it waits, forever by default, or the framework gives up after its own limit. A node that
has not joined, GPUs that an earlier job holds, and a node whose GPUs Ray does not see have the same
effect.

## What to do
Run `ray status`: it shows the nodes that joined, what they have and what is asked for. Start the missing nodes, end
earlier jobs that hold GPUs, or ask for fewer. If a node shows no GPU, check `CUDA_VISIBLE_DEVICES` where `ray start`
ran, or pass `--num-gpus`.

## References
- Ray python/ray/autoscaler/_private/autoscaler.py, python/ray/train, vLLM vllm/executor/ray_utils.py
- https://docs.ray.io/en/latest/ray-core/scheduling/resources.html
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("ray-resources-missing", id="DSD1661", scope=Scope.JOB, since="0.1")

HINT = "use `ray status` to compare what the cluster has with what the job asks for; start the missing nodes, end jobs that hold GPUs, or ask for fewer"

SIGNATURES = (
    Signature(
        pattern=r"Total available GPUs (?P<have>[\d.]+) is less than total desired GPUs (?P<want>[\d.]+)",
        source="verl 0.1-0.6 trainer/ppo/ray_trainer.py and projects built on it",
        message="Ray has {have} GPUs, but the job asks for {want}",
        examples=(
            "ValueError: Total available GPUs 8.0 is less than total desired GPUs 16",
            "ValueError: Total available GPUs 0 is less than total desired GPUs 8",
        ),
        not_examples=("the number is less than total desired GPUs 8",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"(?:Error: )?No available node types can fulfill resource requests? (?:defaultdict\(<class 'float'>, )?(?P<want>\{[^}]{1,200}\})",
        source="ray 1.9-2.52 python/ray/autoscaler/_private/autoscaler.py",
        message="No node of the Ray cluster has {want}",
        examples=(
            "(autoscaler) Error: No available node types can fulfill resource request {'GPU': 8.0}. Add suitable node types to this cluster to resolve this issue.",
            "(autoscaler) No available node types can fulfill resource requests {'CPU': 1.0, 'GPU': 1.0}*8",
            "(autoscaler +5s) Error: No available node types can fulfill resource request defaultdict(<class 'float'>, {'GPU': 4.0}). Add suitable node types to this cluster to resolve this issue.",
        ),
        not_examples=("No available node types can fulfill resource request of the job",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="Cannot provide a placement group of",
        source="vllm 0.6-0.15 executor/ray_utils.py",
        message="Ray could not reserve the GPUs that vLLM asks for in time",
        examples=(
            "ValueError: Cannot provide a placement group of placement_group_specs=[{'GPU': 1.0}, {'GPU': 1.0}] within 1800 seconds. See `ray status` to make sure the cluster has enough resources.",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"The number of required \w{1,20} exceeds the total number of available \w{1,20} in the (?:placement group|cluster)",
        source="vllm 0.4-0.15 executor/ray_utils.py, v1/executor/ray_utils.py",
        message="The cluster or placement group of Ray has fewer GPUs than vLLM needs",
        hint="reserve as many GPUs as tensor and pipeline parallelism need together, or lower them; compare with `ray status`",
        examples=(
            "ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group.",
            "ValueError: The number of required NPUs exceeds the total number of available NPUs in the placement group.",
            "ValueError: The number of required GPUs exceeds the total number of available GPUs in the cluster.",
        ),
        not_examples=("The number of required parts exceeds the total number of available GPUs",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="[Pp]lacement group creation timed out",
        source="ray 1.12-2.52 python/ray/train/_internal/backend_executor.py",
        message="Ray could not reserve what the workers ask for in time",
        examples=(
            "TimeoutError: Placement group creation timed out. Make sure your cluster either has enough resources or use an autoscaling cluster.",
            "TimeoutError: placement group creation timed out",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Failed to create placement group with \d+ bundles",
        source="SkyRL 0.1-0.3 utils/utils.py: get_ray_pg_ready_with_timeout",
        message="Ray could not reserve what the workers ask for in time",
        examples=(
            "RuntimeError: Failed to create placement group with 8 bundles (requiring 8.0 GPUs, 8.0 CPUs total) in 180 seconds.",
        ),
        not_examples=("Failed to create placement group with bundles",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"The following resource request cannot be scheduled right now: (?P<want>\{[^}]{1,200}\})",
        source="ray 1.9-2.52 python/ray/autoscaler/_private/autoscaler.py",
        message="Ray waits for {want}, which no node has free",
        examples=(
            "(autoscaler) Warning: The following resource request cannot be scheduled right now: {'GPU': 1.0}. This is likely due to all cluster resources being claimed by actors.",
        ),
        not_examples=("The following resource request cannot be scheduled right now: GPU",),
        level=Level.WEAK,
        final=True,
    ),
    Signature(
        # a task that only takes long has the same words: Ray says before that it waits
        pattern=r"\bGetTimeoutError: Get timed out",
        source="ray 1.9-2.54 python/ray/_raylet.pyx, exceptions.py",
        message="Ray waited for resources that no node has free, until the script's limit",
        examples=("ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.",),
        not_examples=("class MyGetTimeoutError: Get timed out",),
        requires=("The following resource request cannot be scheduled right now",),
    ),
)

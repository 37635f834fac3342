"""The cloud provider could not start the machine that the job asks for.

## Why it matters
No part of the job has run. Either the provider has no capacity for that machine type in the region
or zone, or a quota of the account does not allow it. A lack of capacity passes with time; a quota
does not.

## What to do
Check whether the message is about capacity or about a quota. For capacity, try other zones, regions
or machine types, or wait (`sky launch --retry-until-up`). For a quota, ask the provider to raise it
for that machine type in that region.

## References
- https://docs.skypilot.co/en/latest/cloud-setup/quota.html
- https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
- https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition(
    "instance-not-provisioned",
    id="DSD1662",
    scope=Scope.JOB,
    since="0.1",
    transient="capacity may be free later",
)

HINT = "if the message is about capacity, try another zone, region or machine type, or wait; if it is about a quota, ask the provider to raise it"

SIGNATURES = (
    Signature(
        pattern=r"\bResourcesUnavailableError: (?P<why>(?:Failed to (?:provision|acquire)|Catalog does not contain|No (?:resource|cloud)).{0,200})",
        source="skypilot 0.1-0.10 sky/exceptions.py, sky/optimizer.py, sky/backends/cloud_vm_ray_backend.py",
        message="SkyPilot could not start the machines: {why}",
        examples=(
            "sky.exceptions.ResourcesUnavailableError: Failed to provision all possible launchable resources. Relax the task's resource requirements: 1x GCP({'T4': 1})",
            "sky.exceptions.ResourcesUnavailableError: Failed to acquire resources in all zones in us-east1.",
            "sky.exceptions.ResourcesUnavailableError: Catalog does not contain any instances satisfying the request",
            "ResourcesUnavailableError: No resource satisfying the request",
            "ResourcesUnavailableError: No cloud is enabled for it",
        ),
        not_examples=("ResourcesUnavailableError: see the log",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bCapacityError: Unable to provision requested ML compute capacity|\bInsufficientInstanceCapacity\b.{0,200}|\bInsufficientCapacityError\b",
        source="Amazon SageMaker and EC2 API: reasons of a failed start",
        message="AWS has no capacity for that instance type in the zone",
        examples=(
            "Failed. Reason: CapacityError: Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error.",
            "An error occurred (InsufficientInstanceCapacity) when calling the RunInstances operation: We currently do not have sufficient capacity",
            "botocore: InsufficientCapacityError",
        ),
        not_examples=(
            "InsufficientInstanceCapacityX",
            "InsufficientCapacityErrors",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bResourceLimitExceeded\b.{0,200}service limit '(?P<kind>[^']{1,100})' is (?P<limit>\d+)|\b(?:VcpuLimitExceeded|MaxSpotInstanceCountExceeded)\b",
        source="Amazon SageMaker and EC2 API: quotas",
        message="A quota of the AWS account does not allow the instance",
        hint="ask AWS (Service Quotas) to raise the limit for that instance type in that region, or use one within the quota",
        examples=(
            "An error occurred (ResourceLimitExceeded) when calling the CreateTrainingJob operation: The account-level service limit 'ml.p4d.24xlarge for training job usage' is 0 Instances",
            "An error occurred (VcpuLimitExceeded) when calling the RunInstances operation",
            "An error occurred (MaxSpotInstanceCountExceeded) when calling the RunInstances operation",
        ),
        not_examples=(
            "see the service limit 'a' is 0",
            "VcpuLimitExceededX",
            "MaxSpotInstanceCountExceededX",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bZONE_RESOURCE_POOL_EXHAUSTED\b|The zone '[^']{1,200}' does not have enough resources available",
        source="Google Compute Engine API: reasons of a failed start",
        message="Google Cloud has no capacity for that machine type in the zone",
        examples=(
            "code: ZONE_RESOURCE_POOL_EXHAUSTED",
            "The zone 'projects/x/zones/us-central1-a' does not have enough resources available to fulfill the request.",
        ),
        not_examples=(
            "ZONE_RESOURCE_POOL_EXHAUSTED_X",
            "The zone '' does not have enough resources available",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Quota '(?P<quota>[\w-]{1,80})' exceeded\.",
        source="Google Compute Engine API: quotas",
        message="The quota `{quota}` of the Google Cloud project does not allow the machine",
        hint="ask Google (IAM & Admin, Quotas) to raise it for that region, or use a region or machine type within the quota",
        examples=("Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 0.0 in region us-central1.",),
        not_examples=("Quota 'of the user' exceeded.",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bThe following quota metrics exceed quota limits:",
        source="Vertex AI API v1: quotas of custom jobs",
        message="A quota of Vertex AI does not allow the machine",
        hint="ask Google (IAM & Admin, Quotas) to raise the quota that the message names for that region, or use a region or machine type within the quota",
        examples=(
            "429 The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_nvidia_a100_gpus",
        ),
        not_examples=("xThe following quota metrics exceed quota limits: x",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bResources are insufficient in region: ?\S",
        source="Vertex AI API v1 and AI Platform Training: capacity",
        message="Google Cloud has no capacity for that machine type in the region",
        examples=(
            "Resources are insufficient in region: us-central1. Please try a different region.",
        ),
        not_examples=("Resources are insufficient in region: ",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bresults in exceeding approved (?P<quota>[\w ]{1,80}?) quota\b",
        source="Azure Compute API: quotas of virtual machines, also through AzureML and AKS",
        message="The quota `{quota}` of the Azure subscription does not allow the machine",
        hint="ask Azure to raise that quota in the region, or use a region or VM size within the quota",
        examples=(
            "Operation could not be completed as it results in exceeding approved standardNCADSA100v4Family Cores quota. Current Limit: 0",
        ),
        not_examples=("one that results in exceeding approved budgets",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\b(?:Zonal|Overconstrained(?:Zonal)?)?Allocation(?:Failed|Request)\b.{0,200}(?:[Aa]llocation failed|cannot be provisioned|capacity)",
        source="Azure Compute API: capacity",
        message="Azure has no capacity for that VM size in the region",
        examples=(
            "Code: AllocationFailed Message: Allocation failed. We do not have sufficient capacity for the requested VM size in this region.",
            "(ZonalAllocationFailed) Allocation failed. We do not have sufficient capacity in this zone.",
            "OverconstrainedAllocationRequest: The VM size (or combination) required cannot be provisioned due to constraints.",
            "(AllocationFailed) no capacity",
        ),
        not_examples=(
            "AllocationFailed: a tensor",
            "OverconstrainedAllocationRequest: see the constraints",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bThere are no longer any instances available with the requested specifications|\bNot enough capacity to fulfill launch request",
        source="RunPod API: podFindAndDeployOnDemand; Lambda Cloud API v1: instance-operations/launch",
        message="The provider has no capacity for that machine type",
        examples=(
            "There are no longer any instances available with the requested specifications. Please refresh and try again.",
            "instance-operations/launch/insufficient-capacity: Not enough capacity to fulfill launch request.",
        ),
        not_examples=(
            "xThere are no longer any instances available with the requested specifications",
            "xNot enough capacity to fulfill launch request",
        ),
        level=Level.STRONG,
    ),
)

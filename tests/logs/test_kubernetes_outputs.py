"""Outputs of a real cluster (Kubernetes 1.20.2, containerd 1.6.20, kubectl 1.32.4; 2026-11-29).

Each pod was made to end, or not to start, in the way that its file's name says, and these are the
words of `kubectl describe pod`, `kubectl get events` and `kubectl get pod -o yaml` about it. Lines
about the cluster's DNS were removed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor import diagnose

FOLDER = Path(__file__).with_name("kubernetes")


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        pytest.param("oom.describe", "host-oom-killed", id="memory-limit-describe"),
        pytest.param("oom.yaml", "host-oom-killed", id="memory-limit-yaml"),
        pytest.param("evicted-disk.describe", "disk-full", id="ephemeral-storage-describe"),
        pytest.param("evicted-disk.events", "disk-full", id="ephemeral-storage-events"),
        pytest.param("noimage.events", "container-not-started", id="no-such-image-events"),
        pytest.param("noimage.yaml", "container-not-started", id="no-such-image-yaml"),
        pytest.param("noconfig.events", "container-not-started", id="no-such-configmap"),
        pytest.param("rootless.events", "container-not-started", id="image-runs-as-root"),
        pytest.param("nomount.events", "container-not-started", id="no-such-volume-claim"),
        pytest.param("toomanygpus.events", "container-not-started", id="more-gpus-than-a-node-has"),
        pytest.param("nosuchcmd.events", "launch-file-missing", id="no-such-program"),
        pytest.param("segv.describe", "native-crash", id="segmentation-fault"),
        pytest.param("deadline.describe", "job-time-limit", id="deadline-describe"),
        pytest.param("deadline.events", "job-time-limit", id="deadline-events"),
        pytest.param("victim.describe", "job-preempted", id="preempted-describe"),
        pytest.param("victim.events", "job-preempted", id="preempted-events"),
        pytest.param("tainted.events", "node-failed", id="taint-that-evicts"),
        pytest.param("deleted.describe", "job-cancelled", id="deleted-by-a-user"),
    ],
)
def test_the_cause_is_named(name: str, cause: str) -> None:
    found = diagnose(FOLDER / name)
    assert found.outcome.value == "cause"
    assert found.causes[0].condition == cause


@pytest.mark.parametrize("name", ["crash.events", "liveness.events"])
def test_events_without_a_cause_name_none(name: str) -> None:
    """Why the program exited, or did not answer, is in its own log."""
    assert not diagnose(FOLDER / name).causes

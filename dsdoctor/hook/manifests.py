"""Kubernetes manifests as text, not generated from data, so that they contain comments."""

from __future__ import annotations

from dsdoctor.hook.wrapper import MARK

_CONFIG_MAP = """\
# @MARK@
# The script of the init container; see job.yaml.
apiVersion: v1
kind: ConfigMap
metadata:
  name: dsdoctor-gate
data:
  gate.sh: |
@SCRIPT@
"""

_JOB = """\
# @MARK@
# A training job behind the gate. What matters: initContainers, the volumes, podFailurePolicy.
apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  backoffLimit: 3
  podFailurePolicy:
    rules:
      # status 1: this node is at fault; try again, and do not count it
      - action: Ignore
        onExitCodes:
          containerName: dsdoctor
          operator: In
          values: [1]
      # status 4: the environment or the job is at fault; another node would not help
      - action: FailJob
        onExitCodes:
          containerName: dsdoctor
          operator: In
          values: [4]
  template:
    spec:
      restartPolicy: Never
      initContainers:
        - name: dsdoctor
          image: @IMAGE@
          command: ["/bin/sh", "/dsdoctor/gate.sh"]
          env:
            - name: NODE_NAME
              valueFrom:
                fieldRef:
                  fieldPath: spec.nodeName
          volumeMounts:
            - name: dsdoctor-gate
              mountPath: /dsdoctor
              readOnly: true
            - name: shm
              mountPath: /dev/shm
          # GPUs and /dev/shm as in the training container, or it would look at others
          resources:
            limits:
              nvidia.com/gpu: 8
      containers:
        - name: train
          image: @IMAGE@
          command: ["deepspeed", "train.py", "--deepspeed_config", "ds_config.json"]
          resources:
            limits:
              nvidia.com/gpu: 8
          volumeMounts:
            - name: shm
              mountPath: /dev/shm
      volumes:
        - name: dsdoctor-gate
          configMap:
            name: dsdoctor-gate
        # without it a container has 64 MiB there
        - name: shm
          emptyDir:
            medium: Memory
"""


def config_map(script: str) -> str:
    """The ConfigMap that contains the script."""
    indented = "\n".join(f"    {line}" if line else "" for line in script.splitlines())
    return _CONFIG_MAP.replace("@MARK@", MARK).replace("@SCRIPT@", indented)


def job(image: str) -> str:
    """An example Job behind the gate."""
    return _JOB.replace("@MARK@", MARK).replace("@IMAGE@", image)

"""What `recommend` predicts for a command, if the command line is sufficient."""

from __future__ import annotations

from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.memory import MemoryDemand
from dsdoctor.model.facts.script import TrainingJob
from dsdoctor.model.run_record import Prediction
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.recommend.config_setting import MICRO_BATCH


def predict(snapshot: Snapshot) -> Prediction | None:
    """Peak memory of each GPU by the memory model of `recommend`.

    None unless the command says which model is trained and how, and how long samples are and how
    many a rank gets at once: anything else would be a guess.
    """
    demand, job = snapshot.get(MemoryDemand), snapshot.get(TrainingJob)
    if isinstance(demand, Missing) or isinstance(job, Missing):
        return None
    config = snapshot.run.config or {}
    stated = job.micro_batch or isinstance(config.get(MICRO_BATCH), int)
    known = demand.source == "command" and demand.on_gpu and not demand.assumed
    if not known or job.method != "full" or not job.sequence or not stated:
        return None
    plain = job.checkpointing is False
    return Prediction(
        gpu_bytes=demand.plain_bytes if plain else demand.gpu_bytes,
        assumed="activation checkpointing" if job.checkpointing is None else "",
        host_bytes=demand.host_bytes,
        ranks=demand.ranks_here,
    )

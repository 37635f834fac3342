"""Whether pip may install something into the environment."""

from __future__ import annotations

from dsdoctor.api import Impossible, PackageManagers, Patient


def refusal(patient: Patient, managers: PackageManagers, what: str) -> Impossible | None:
    """Why pip cannot install a package, and what to do; None = it can.

    >>> patient = Patient(executable="/usr/bin/python3", chosen_by="", version="", prefix="/usr",
    ...                   base_prefix="/usr", kind="system")
    >>> print(refusal(patient, PackageManagers(), "torch").why)
    `/usr/bin/python3` is not in a virtual environment; create one and install torch there
    """
    name = f"`{patient.executable}`"
    if patient.kind == "system":
        return Impossible(
            why=f"{name} is not in a virtual environment; create one and install {what} there"
        )
    if not managers.pip:
        return Impossible(why=f"{name} has no pip; run `{patient.executable} -m ensurepip` first")
    return None

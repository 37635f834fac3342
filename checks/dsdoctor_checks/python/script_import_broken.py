"""What the training script imports from an installed package cannot be imported.

## Why it matters
Trainers such as trl and peft use names of transformers, accelerate and huggingface_hub that come and go
with the releases. Every rank stops at the import. dsdoctor tried the import lines of the script, those of
`transformers`, `trl`, `peft`, `accelerate`, `datasets`, `diffusers`, Lightning, pandas, scikit-learn,
TensorBoard and similar packages, in the environment's interpreter, after torch; nothing else of the script was run.

## What to do
Upgrade the package that the script imports from, and the one that the error names, together; or
install the releases that the script was written for.

## References
- Python documentation, "The import statement"
- transformers utils/import_utils.py: a name is imported when it is first used (`_LazyModule`)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DamagedPackages,
    Finding,
    Missing,
    ModuleImports,
    Packages,
    Patient,
    Scope,
    ScriptImports,
    check,
    fail,
    skip,
)
from dsdoctor_checks._imports import how_it_ended
from dsdoctor_checks._pip import pip

from ._modules import PACKAGES
from .package_damaged import reported

CONDITION = Condition(
    "script-import-broken",
    id="DSD919",
    scope=Scope.USER_ENV,
    since="0.1",
    narrower=(
        "glibc-too-old",
        "libstdcxx-too-old",
        "numpy-abi-2",
        "dependency-version-conflict",
        "script-module-missing",
        "cxx-abi-undefined-symbol",
    ),
)
#: The part of torch that imports another package.
_TENSORBOARD = "torch.utils.tensorboard"


@check(CONDITION)
def imports_work(
    imports: ModuleImports,
    script: ScriptImports,
    packages: Packages,
    patient: Patient | Missing,
    damaged: DamagedPackages | Missing,
) -> Iterator[Finding]:
    """Fails at the first import that fails; the script does not come to the others."""
    if not imports.names:
        yield skip("no import of the script was tried")
        return
    broken = [
        name
        for name, outcome in imports.names.items()
        if not outcome.ok and outcome.error_type != "hang"  # that is slow, and may be well
    ]
    if not broken:
        return
    if others := reported(damaged):
        yield skip(f"package-damaged reports {others}")
        return
    name = min(broken, key=lambda one: script.names[one])
    module, _, attribute = name.partition(":")
    statement = f"from {module} import {attribute}" if attribute else f"import {module}"
    root = module.partition(".")[0]
    package = "tensorboard" if module.startswith(_TENSORBOARD) else PACKAGES.get(root, root)
    outcome = imports.names[name]
    version = packages.version(package)
    lacking = re.search(r"No module named '([A-Za-z]\w*)", outcome.message or "")
    wanted = PACKAGES.get(lacking[1], lacking[1]) if lacking else f"-U {package}"
    install = pip(patient, packages, f"install {wanted}")
    yield fail(
        f"`{statement}` (`{script.script}`, line {script.names[name]}) {how_it_ended(outcome)}",
        effect="every rank stops at this line",
        hint=f"run `{install}`, or install the release of {package} that the script was written for"
        f"{f'; {version} is installed' if version else ''}",
        script=script.script,
        line=script.names[name],
        package=package,
        version=version,
        error_type=outcome.error_type,
        error=outcome.message,
        traceback=outcome.traceback,
        error_text=f"{outcome.error_type}: {outcome.message or ''}\n{outcome.traceback}",
        broken=broken,
    )

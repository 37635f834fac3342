"""Who raised an exception: product, release, place, and where that line can be read."""

from __future__ import annotations

from collections.abc import Iterable

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.error_lookup import INTERNAL
from dsdoctor.logs.errors import Error
from dsdoctor.logs.knowledge import Answered
from dsdoctor.logs.products import caller_of, inner_path, package_of, raiser_of
from dsdoctor.model.diagnosis import Explained, RaisedBy

#: Repositories whose tags are `v` and the release, and the folder of the package in them.
REPOSITORIES = {
    "accelerate": ("huggingface/accelerate", "src/"),
    "datasets": ("huggingface/datasets", "src/"),
    "deepspeed": ("deepspeedai/DeepSpeed", ""),
    "diffusers": ("huggingface/diffusers", "src/"),
    "flash_attn": ("Dao-AILab/flash-attention", ""),
    "huggingface_hub": ("huggingface/huggingface_hub", "src/"),
    "peft": ("huggingface/peft", "src/"),
    "torch": ("pytorch/pytorch", ""),
    "transformers": ("huggingface/transformers", "src/"),
    "triton": ("triton-lang/triton", "python/"),
    "trl": ("huggingface/trl", ""),
}
#: How products state their release in a log: `DeepSpeed info: version=0.19.8`, `torch==2.4.0`.
RELEASE = lazy(
    r"(?i)\b(?P<product>accelerate|datasets|deepspeed|diffusers|flash_attn|huggingface_hub"
    r"|peft|torch|transformers|triton|trl)(?: info: version|[ _]version|==| v)[ :=.]{0,6}"
    r"(?P<release>\d{1,4}\.\d{1,3}(?:\.\d{1,3})?)"
)


def issues_of(product: str) -> str:
    """Where a defect of a product is reported, "" where that is not known.

    >>> issues_of("deepspeed")
    'https://github.com/deepspeedai/DeepSpeed/issues'
    """
    found = REPOSITORIES.get(product)
    return f"https://github.com/{found[0]}/issues" if found else ""


def releases_of(lines: Iterable[str]) -> dict[str, str]:
    """The releases that lines of a log state.

    >>> releases_of(["[INFO] DeepSpeed info: version=0.15.1, git-hash=unknown"])
    {'deepspeed': '0.15.1'}
    """
    found: dict[str, str] = {}
    for line in lines:
        for match in RELEASE.finditer(line):
            found.setdefault(match["product"].lower(), match["release"])
    return found


def explained(said: Answered) -> Explained:
    """What the error index says, as it is reported."""
    product = said.entry.product
    url = issues_of(product) if said.kind == INTERNAL else ""
    text = said.text or ("an internal check failed; report it to the authors with this log")
    return Explained(
        kind=said.kind, product=product, text=text, releases=said.entry.releases, url=url
    )


def raised_by(error: Error, releases: dict[str, str]) -> RaisedBy | None:
    """Who raised an exception; None for the user's own code, and if no frame is shown."""
    frame = raiser_of(error.frames)
    product = package_of(frame.file) if frame is not None else ""
    if frame is None or not product:
        return None
    release = releases.get(product, "")
    path = inner_path(frame.file)
    url = ""
    if product in REPOSITORIES and release and path.endswith(".py"):
        repository, folder = REPOSITORIES[product]
        url = f"https://github.com/{repository}/blob/v{release}/{folder}{path}"
        url += f"#L{frame.line}" if frame.line else ""
    caller = caller_of(error.frames)
    return RaisedBy(
        product=product,
        version=release,
        file=path,
        line=frame.line,
        function=frame.function,
        url=url,
        called_from=f"{caller.file}:{caller.line}" if caller is not None else "",
    )

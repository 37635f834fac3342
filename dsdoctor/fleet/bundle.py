"""Builds the collector: one file, standard library only, for Python 3.8 and later."""

from __future__ import annotations

import base64
import importlib.util
import zlib
from pathlib import Path
from types import ModuleType

from dsdoctor.interpreter import CHILDREN
from dsdoctor.model import masking
from dsdoctor.probes import environment
from dsdoctor.version import __version__

_SCRIPTS = ("nvml.py", "static.py", "torch_live.py")


def _packed(source: bytes) -> str:
    return base64.b64encode(zlib.compress(source, 9)).decode()


def _source(module: ModuleType) -> bytes:
    return Path(str(module.__file__)).read_bytes()


def collector() -> str:
    """The collector's source, including the scripts that it runs and the NVML binding."""
    text = (CHILDREN / "collector.py").read_text(encoding="utf-8")
    sources = {name: (CHILDREN / name).read_bytes() for name in _SCRIPTS}
    binding = importlib.util.find_spec("pynvml")
    if binding is not None and binding.origin is not None:
        sources["pynvml.py"] = Path(binding.origin).read_bytes()
    lines = "".join(f'    "{name}": "{_packed(source)}",\n' for name, source in sources.items())
    variables = {
        "names": sorted(environment.NAMES),
        "prefixes": sorted(environment.PREFIXES),
    }
    for old, new in (
        ("PAYLOAD: dict[str, str] = {}\n", f"PAYLOAD = {{\n{lines}}}\n"),
        (
            'VARIABLES: dict[str, list[str]] = {"names": [], "prefixes": []}\n',
            f"VARIABLES = {variables!r}\n",
        ),
        ('VERSION = ""\n', f'VERSION = "{__version__}"\n'),
        ('MASKING = ""\n', f'MASKING = "{_packed(_source(masking))}"\n'),
    ):
        if text.count(old) != 1:
            raise RuntimeError(f"the collector's text has no single line `{old.strip()}`")
        text = text.replace(old, new)
    return text

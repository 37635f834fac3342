"""Commands of a shell script that run a Python program without a launcher."""

from __future__ import annotations

import posixpath

from dsdoctor.probes.command_wrappers import unwrap
from dsdoctor.probes.shell_lines import ShellCommand, commands
from dsdoctor.probes.shell_programs import PYTHON

#: Modules that prepare, look at or serve something, and train nothing.
_TOOLS = frozenset(
    {"pip", "venv", "virtualenv", "ensurepip", "pytest", "unittest", "http.server", "json.tool",
     "compileall", "site", "sysconfig", "zipfile", "tarfile", "build", "black", "isort", "ruff",
     "flake8", "mypy", "pre_commit", "ipykernel", "jupyter", "notebook", "tensorboard.main",
     "nltk.downloader", "spacy", "gdown", "wget", "conda_pack", "deepspeed.env_report",
     "torch.utils.collect_env", "grpc_tools.protoc"}
)  # fmt: skip
#: Scripts that build or install.
_BUILDS = frozenset({"setup.py", "manage.py", "conftest.py"})


def python_commands(text: str) -> list[ShellCommand]:
    r"""The commands that run a script or module with Python, in a script that uses no launcher.

    >>> [one.words for one in python_commands("pip install x\npython3 -u t.py --lr 1")]
    [('python3', '-u', 't.py', '--lr', '1')]
    >>> python_commands("python -m pip install x\npython setup.py install\npython -c 'import x'")
    []
    """
    return [command for command in commands(text) if _runs_program(command.words)]


def _runs_program(words: tuple[str, ...]) -> bool:
    rest, _ = unwrap(list(words))
    if not rest or not PYTHON.fullmatch(posixpath.basename(rest[0])):
        return False
    after = rest[1:]
    while after and after[0].startswith("-") and after[0] not in ("-m", "-c", "-"):
        if after.pop(0) in ("-X", "-W") and after:
            after.pop(0)
    if after[:1] == ["-m"]:
        return len(after) > 1 and after[1] not in _TOOLS
    return bool(after) and after[0].endswith(".py") and posixpath.basename(after[0]) not in _BUILDS

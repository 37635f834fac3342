"""Judges files without a machine: configs, hostfiles, launch lines, manifests, Dockerfiles.

Checks that need only the file run as they do on a machine; those that need a machine do not run and
are not mentioned. The DeepSpeed release is the one installed in the environment, or the one that an
option sets.
"""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dsdoctor import reading, yaml_text
from dsdoctor.errors import UsageError
from dsdoctor.fact_source import Facts
from dsdoctor.hostfile import parse_hostfile
from dsdoctor.judge import JUDGE_SECONDS, Policy, not_judged, unit_findings
from dsdoctor.lint_accelerate import config_of, facts_of, named_file
from dsdoctor.lint_hints import in_file
from dsdoctor.lint_launches import Part, script_parts
from dsdoctor.lint_manifests import manifest_parts, unread
from dsdoctor.lint_variables import script_variables
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.machine import Environment
from dsdoctor.model.facts.python import DeepSpeedInstall, Packages
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.finding import Finding, Status
from dsdoctor.model.snapshot import Snapshot, masked
from dsdoctor.model.snapshot import of as snapshot_of
from dsdoctor.packs.registry import Registry, Unit, needs
from dsdoctor.precedence import without_wider
from dsdoctor.probes.accelerate_sections import Rejection
from dsdoctor.probes.accelerate_values import is_accelerate, verdict
from dsdoctor.probes.config import CONFIG_KEYS, is_config, parse_bytes, parse_config
from dsdoctor.probes.hostfile import parse_env_file

#: Files larger than this are data, not configuration.
LARGEST = 1 << 20
#: Further keys, which files of other programs have too; they count in a file that the user named.
COMMON_KEYS = frozenset(
    {"train_batch_size", "gradient_accumulation_steps", "optimizer", "scheduler",
     "communication_data_type", "prescale_gradients", "data_efficiency", "tensorboard"}
)  # fmt: skip
#: Arguments of a script, in a file that its own parser reads: `bf16` is a boolean there.
_OF_ARGUMENTS = frozenset(
    {"output_dir", "model_name_or_path", "per_device_train_batch_size", "num_train_epochs"}
)
_SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm", ".job", ".pbs", ".lsf", ".bsub")
_YAML = (".yaml", ".yml")
#: Families of conditions that judge commands.
_OF_COMMANDS = ("launch", "cluster")
#: What is known of a file of which only the variables were read.
_VARIABLES = frozenset({Environment})
#: Bytes in which a file that is no text, or is in UTF-16, shows it.
_FIRST = 400
#: Names of Dockerfiles: `Dockerfile`, `Dockerfile.gpu`, `train.dockerfile`, `Containerfile`.
_OF_IMAGE = re.compile(
    r"(?i)(?:docker|container)file(?:[.-][\w.-]+)?|[\w.-]+\.(?:docker|container)file"
)
#: Ends of names of hostfiles.
_OF_HOSTS = frozenset({"", ".cfg", ".conf", ".hostfile", ".list", ".lst", ".txt"})
_SLOTS = re.compile(r"^[^\s#]+[ \t]+slots[ \t]*=", re.MULTILINE)
#: A key of accelerate's, also in a file that is not YAML.
_OF_ACCELERATE = re.compile(r"^(?:distributed_type|compute_environment)[ \t]*:", re.MULTILINE)


@dataclasses.dataclass
class FileReport:
    """One file.

    Attributes:
        path: the file.
        kind: `config`, `hostfile`, `env-file`, `accelerate`, `trainer`, `script`, `manifest` or
            `image`.
        findings: warnings and failures; `evidence` has `file` and, if it is known, `line`.
        parts: how many configs, launch lines and so on were judged.
        not_judged: numbers of launch lines that contain words that only a shell can expand.
        not_followed: lines that start a job in a way that is not understood, with the reason.
        names: configs that it refers to, and that exist.
    """

    path: str
    kind: str
    findings: list[Finding]
    parts: int = 1
    not_judged: tuple[int, ...] = ()
    not_followed: tuple[tuple[int, str], ...] = ()
    names: tuple[Path, ...] = ()


class Linter:
    """Judges file after file.

    Attributes:
        version: the DeepSpeed release that will read the files; None = not known.
        framework: what passes the configs to DeepSpeed; None = not known.
        packages: of the environment that will read the files; None = not known.
        chosen: the user chose that environment, so that what it contains decides which arguments
            a script takes.
    """

    def __init__(
        self,
        registry: Registry,
        units: Iterable[Unit],
        version: str | None,
        policy: Policy,
        framework: str | None = None,
        packages: Packages | None = None,
        *,
        chosen: bool = False,
    ) -> None:
        self.version = version
        self.framework = framework
        self.packages = packages
        self.chosen = chosen
        self._registry = registry
        self._policy = policy
        self._units = [unit for unit in units if unit.check is not None]
        self._others = tuple({unit.family for unit in self._units}.difference(_OF_COMMANDS))
        self._decided: dict[tuple[frozenset[type[Fact]], tuple[str, ...]], list[Unit]] = {}
        self._install = None if version is None else DeepSpeedInstall(version=version)

    def lint(self, path: Path, shown: str, *, named: bool = False) -> FileReport | None:
        """Judges a file; None = DeepSpeed and launchers do not read such a file.

        Args:
            path: the file.
            shown: its name in the report.
            named: the user passed its path, so that its extension does not matter.

        Raises:
            UsageError: it cannot be read.
        """
        try:
            if path.stat().st_size > LARGEST:
                if named:
                    raise UsageError(f"`{shown}` is larger than 1 MiB, which no configuration is")
                return None
            data = reading.read(path, size=LARGEST)
        except FileNotFoundError:
            raise UsageError(
                f"`{shown}` does not exist; expected a file or a directory to lint"
            ) from None
        except (OSError, DecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise UsageError(f"`{shown}` cannot be read: {reason}") from None
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        kind, parts = self._parts(path, shown, data, named=named)
        if not kind and named:
            kind, parts = _named_parts(path, shown, data)
        if not kind:
            if named and (reason := unread(path.name, data)):
                raise UsageError(f"`{shown}` {reason}")
            return None
        # several launches may get a variable that is stated once
        found = {
            msgspec.json.encode(finding): finding
            for part in parts
            for finding in self._judge_part(part, shown)
        }
        strange = tuple((part.line, part.not_followed) for part in parts if part.not_followed)
        left = [part.line for part in parts if part.line and _is_unjudged(part)]
        judged = len(parts) - len(left) - len(strange)
        names = dict.fromkeys(name for part in parts for name in part.names)
        files = dict.fromkeys(filter(None, (named_file(path, name) for name in names)))
        return FileReport(
            shown, kind, [*found.values()], judged, tuple(left), strange, tuple(files)
        )

    def _parts(self, path: Path, shown: str, data: bytes, *, named: bool) -> tuple[str, list[Part]]:
        name = path.name.lower()
        text = data.decode("utf-8-sig", "replace")
        if name.endswith((".json", ".hjson")):
            kind, parts = _config_parts(shown, data)
            return (kind, parts) if kind else _yaml_parts(shown, text, self.packages)
        if name.endswith(_YAML):
            kind, parts = _yaml_parts(shown, text, self.packages)
            return (
                (kind, parts)
                if kind
                else manifest_parts(
                    path,
                    text,
                    self.packages,
                    self._in_config_map,
                    chosen=self.chosen,
                    named=named,
                )
            )
        if _OF_IMAGE.fullmatch(name):
            # only they need the readers of pastes
            from dsdoctor.lint_images import image_parts  # noqa: PLC0415

            parts = image_parts(path, text, self.packages, chosen=self.chosen)
            return ("image" if parts or named else "", parts)
        if name.endswith(".deepspeed_env"):
            return "env-file", [Part([parse_env_file(text, shown)], ("launch",))]
        of_shell = text.startswith("#!") and "sh" in text.split("\n", 1)[0]
        if (name.endswith(_SCRIPTS) or of_shell) and b"\0" not in data[:_FIRST]:
            parts = script_parts(path, text, self.packages, chosen=self.chosen)
            parts += script_variables(parts, text)
            # a script that starts nothing is no mistake of whoever passes all their scripts
            return ("script" if parts or named else "", parts)
        of_hosts = "hostfile" in name and path.suffix.lower() in _OF_HOSTS
        # without a row of its form, it may be the list of another launcher
        if (of_hosts and (named or _SLOTS.search(text))) or _looks_like_hosts(text):
            return "hostfile", [Part([parse_hostfile(text, shown)], ("launch",))]
        return "", []

    def _in_config_map(self, name: str, text: str) -> list[Part]:
        """What a file in a ConfigMap states; there is no ConfigMap in it."""
        if name.lower().endswith(_YAML):
            return _yaml_parts(name, text, self.packages)[1]
        return self._parts(Path(name), name, text.encode(), named=False)[1]

    def _units_for(self, known: frozenset[type[Fact]], families: tuple[str, ...]) -> list[Unit]:
        """The checks that need only these facts; the same for every file of a kind."""
        found = self._decided.get((known, families))
        if found is None:
            found = [u for u in self._units if u.family in families and _decided(u, known)]
            self._decided[known, families] = found
        return found

    def _to_judge(self, part: Part) -> tuple[Facts, Sequence[Unit]]:
        """The facts of a part, and the checks that they decide."""
        if part.snapshot is not None:
            # its commands are parts of their own
            if part.snapshot.facts.keys() == {Environment.key()}:
                return Facts(part.snapshot), self._units_for(_VARIABLES, self._others)
            return Facts(part.snapshot), [u for u in self._units if u.family in self._others]
        run = msgspec.structs.replace(part.run, framework=self.framework or part.run.framework)
        facts: list[Fact] = [run, *part.facts]
        if self._install is not None:
            facts.append(self._install)
        known = frozenset(type(fact) for fact in facts)
        return Facts(masked(snapshot_of(facts))), self._units_for(known, part.families)

    def _judge_part(self, part: Part, shown: str) -> Iterator[Finding]:
        facts, units = self._to_judge(part)
        found: list[Finding] = []
        deadline = time.monotonic() + JUDGE_SECONDS
        for unit in units:
            if time.monotonic() > deadline:
                found.append(not_judged(unit, Status.CRASH))
            else:
                found += unit_findings(unit, facts, self._policy, self._registry)
        for finding in without_wider(found, self._registry):
            if finding.status not in (Status.WARN, Status.FAIL, Status.CRASH):
                continue
            line = finding.evidence.get("line")
            number = line + max(part.line - 1, 0) if isinstance(line, int) else part.line
            stated = finding.evidence.get("stated_at")
            if part.snapshot is not None and stated:
                number = stated[0]["line"]
                hint, number = in_file(finding, part.variables, shown, number)
                finding = msgspec.structs.replace(finding, hint=hint)  # noqa: PLW2901
            evidence = {**finding.evidence, "config_path": shown, "file": shown}
            if number:
                evidence["line"] = number
            yield msgspec.structs.replace(finding, evidence=evidence)


def _is_unjudged(part: Part) -> bool:
    """Whether a piece of a file was only found."""
    return not (part.families or part.not_followed or part.snapshot)


def _decided(unit: Unit, known: frozenset[type[Fact]]) -> bool:
    """Whether the check judges one of the file's facts and needs no others.

    Without facts, the file describes the job all the same (`RunNeeds.manifest`).
    """
    if unit.check is None:
        return False
    wanted = needs(unit.check.function)
    own = known - {RunNeeds, DeepSpeedInstall} or {RunNeeds}
    asked = {need.kind for need in wanted}
    needed = {
        need.kind for need in wanted if not need.may_be_missing and issubclass(need.kind, Fact)
    }
    return bool(own & asked) and needed <= known | {RunNeeds}


def _config_parts(shown: str, data: bytes, *, named: bool = False) -> tuple[str, list[Part]]:
    """A DeepSpeed config; of a file that the user named, less has to speak for it."""
    fact = parse_bytes(data, shown)
    # a file that does not parse is recognized by its keys
    keys = {key.partition(".")[0] for key in fact.lines} if fact.parsed is None else {*fact.parsed}
    certain = is_config(keys, parsed=fact.parsed is not None)
    known = (CONFIG_KEYS | COMMON_KEYS) & keys
    of_script = bool(_OF_ARGUMENTS & keys) and "zero_optimization" not in keys
    # among many others, a key such as `optimizer` is another program's
    most = fact.parsed is None or len(known) * 2 > len(keys)
    if not of_script and (certain or (named and known and most)):
        return "config", [_config_part(fact, shown)]
    return "", []


def _named_parts(path: Path, shown: str, data: bytes) -> tuple[str, list[Part]]:
    """A config that little speaks for, in a file that the user named.

    YAML is one only as a project passes it on as a dict: GPT-NeoX and trainers have sections of the
    same names among settings of their own.
    """
    if not path.name.lower().endswith(_YAML):
        return _config_parts(shown, data, named=True)
    try:
        found = yaml_text.load(data.decode("utf-8-sig", "replace"))
    except ValueError:
        return "", []
    keys = {str(key) for key in found} if isinstance(found, dict) else set()
    of_deepspeed = len(keys & (CONFIG_KEYS | COMMON_KEYS)) * 2 > len(keys)
    if not of_deepspeed or not is_config(keys) or _OF_ARGUMENTS & keys:
        return "", []
    fact = parse_config(json.dumps(found, default=str), shown)
    return "config", [_config_part(msgspec.structs.replace(fact, lines={}), shown)]


def _config_part(fact: Any, shown: str, line: int = 0) -> Part:
    run = RunNeeds(config_path=shown, config=fact.parsed, quick=True)
    return Part([fact], ("config",), line=line, run=run)


def _yaml_parts(shown: str, text: str, packages: Packages | None) -> tuple[str, list[Part]]:
    if not re.search("deepspeed|DEEPSPEED|distributed_type|compute_environment", text):
        return "", []
    try:
        found = yaml_text.load(text)
    except yaml_text.NotYamlError as error:
        if not _OF_ACCELERATE.search(text):
            return "", []
        refused = verdict(Rejection(f"it cannot be read as YAML: {error}", "correct the file"))
        return "accelerate", [Part([refused], ("launch",), line=error.line)]
    except ValueError:
        return "", []
    if not isinstance(found, dict):
        return "", []
    kind = "accelerate" if is_accelerate(found) else "trainer"
    parts: list[Part] = []
    # `deepspeed_config` of accelerate holds arguments of its plugin, not DeepSpeed's keys
    keys = ("deepspeed",) if kind == "accelerate" else ("deepspeed", "deepspeed_config")
    for key in keys:
        inner = found.get(key)
        if isinstance(inner, dict) and CONFIG_KEYS & inner.keys():
            fact = parse_config(json.dumps(inner), shown)
            line = next(
                (n for n, row in enumerate(text.splitlines(), 1) if row.startswith(f"{key}:")), 0
            )
            fact = msgspec.structs.replace(fact, lines={})
            parts.append(_config_part(fact, shown, line))
    if kind == "accelerate":
        parts += [
            Part([fact], ("launch",), line=line) for fact, line in facts_of(found, text, packages)
        ]
    name = config_of(found)
    if name:
        parts.append(Part([], (), names=(name,)))
    return (kind, parts) if kind == "accelerate" or parts else ("", [])


def _looks_like_hosts(text: str) -> bool:
    rows = [row for row in text.splitlines()[:50] if row.strip() and not row.startswith("#")]
    return bool(rows) and all(re.match(r"^\S+\s+slots=\d+\s*$", row) for row in rows)


def installed(snapshot: Snapshot) -> tuple[str | None, Packages | None]:
    """The DeepSpeed release of an environment, and its packages; None = not known."""
    found, packages = snapshot.get(DeepSpeedInstall), snapshot.get(Packages)
    return (
        found.version if isinstance(found, DeepSpeedInstall) else None,
        packages if isinstance(packages, Packages) else None,
    )

"""README.md, README.zh-CN.md and the hand-written pages: in step, linked, and with options that exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import msgspec
import pytest
import yaml

from dsdoctor import profiles
from dsdoctor.cli.main import COMMANDS, group
from dsdoctor.settings import HookSettings, Settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
ENGLISH, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
GENERATED = {DOCS / "cli.md", DOCS / "facts.md", DOCS / "limits.md"}
PAGES = sorted(
    {ENGLISH, CHINESE, ROOT / "CONTRIBUTING.md", ROOT / "checks" / "README.md"}
    | {path for path in DOCS.rglob("*.md") if path.parent.name != "conditions"} - GENERATED
)
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
OPERATORS = {"|", "||", "&&", "&", ";", "<", ">", ">>"}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path) -> list[tuple[str, str]]:
    """Language and text of each fenced block."""
    return [(found[2], found[3]) for found in BLOCK.finditer(path.read_text(encoding="utf-8"))]


def headings(path: Path) -> list[int]:
    """The level of each heading."""
    prose = BLOCK.sub("", path.read_text(encoding="utf-8"))
    return [len(found[0]) for found in re.finditer(r"^#+(?= )", prose, re.MULTILINE)]


def links(path: Path) -> list[str]:
    """Targets of relative links, without anchors."""
    prose = BLOCK.sub("", path.read_text(encoding="utf-8"))
    prose = re.sub(r"`[^`\n]+`", "", prose)  # `kernel[grid](...)` is code
    targets = re.findall(r"\]\(([^)\s]+)\)", prose)
    return [one.partition("#")[0] for one in targets if not re.match(r"[a-z]+:|#", one)]


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of each call of dsdoctor in shell text."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words = list(lexer)
        while words:
            end = next((n for n, word in enumerate(words) if word in OPERATORS), len(words))
            part, words = words[:end], words[end + 1 :]
            starts = [n for n, word in enumerate(part) if Path(word).name == "dsdoctor"]
            # `pip install dsdoctor` and `helm upgrade dsdoctor` start nothing of ours
            if starts and not {"install", "venv", "-C", "helm", "kubectl"} & set(part[: starts[0]]):
                yield part[starts[0] + 1 :]


def has_bounds(kind: object) -> bool:
    """Whether a value can be wrong without a look at the machine."""
    return isinstance(kind, click.Choice | click.IntRange | click.FloatRange)


def parse(args: list[str]) -> None:
    """Parses the arguments as click would, and checks choices and numbers; reads no file.

    Raises:
        click.UsageError: an option, a command or a value does not exist.
    """
    command: click.Command = group
    context = click.Context(group, info_name="dsdoctor")
    while True:
        values, args, _ = command.make_parser(context).parse_args(list(args))
        for parameter in command.params:
            kind: Any = parameter.type
            if has_bounds(kind):
                value = values.get(parameter.name or "")
                each = value if isinstance(value, list | tuple) else [value]
                for one in each:
                    if isinstance(one, str) and "…" not in one:
                        kind.convert(one, parameter, context)
        if not isinstance(command, click.Group) or not args:
            return
        if args[0] not in command.list_commands(context):
            if command is group:
                raise click.UsageError(f"no command {args[0]}")
            return  # `dsdoctor run -- CMD`
        inner = command.get_command(context, args[0])
        assert inner is not None
        command, context, args = inner, click.Context(inner, context, args[0]), args[1:]


def test_both_readmes_have_the_same_headings_blocks_and_links() -> None:
    assert headings(ENGLISH) == headings(CHINESE)
    assert blocks(ENGLISH) == blocks(CHINESE)
    assert [one for one in links(ENGLISH) if one != CHINESE.name] == [
        one for one in links(CHINESE) if one != ENGLISH.name
    ]


def test_the_badges_say_what_the_project_file_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    classifiers = " ".join(project["project"]["classifiers"])
    minors = sorted(int(found) for found in re.findall(r"Python :: 3\.(\d+)", classifiers))
    assert project["tool"]["mypy"]["strict"] is True
    expected = [
        f"python-3.{minors[0]}_to_3.{minors[-1]}-blue",
        f"license-{project['project']['license'].replace('-', '--')}-blue",
        "mypy-strict-blue",
    ]
    text = ENGLISH.read_text(encoding="utf-8")
    assert re.findall(r"img\.shields\.io/badge/([^)]+)\)", text) == expected


def test_the_readme_shows_every_command_that_a_user_starts_with() -> None:
    shown = {args[0] for _, text in blocks(ENGLISH) for args in commands(text) if args}
    assert shown >= {"check", "recommend", "smoke", "run", "diagnose", "lint", "fix", "explain"}
    assert shown <= set(COMMANDS)


def test_the_readme_shows_a_report_as_it_is_printed() -> None:
    (shown,) = [text for language, text in blocks(ENGLISH) if language == "text"]
    printed = (ROOT / "tests" / "golden" / "driver-too-old.txt").read_text()

    def body(text: str) -> str:
        return text.partition("\nfaulty: ")[0]

    assert body(shown) == body(printed)
    assert re.search(r"\nfaulty: \d+ ok, 1 failure, \d+ skipped \(.* s\)\n", shown)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_parses(page: Path) -> None:
    for language, text in blocks(page):
        if language in ("sh", "bash", ""):
            for args in commands(text):
                parse(args)


@pytest.mark.parametrize(
    "args",
    [
        ["check", "--gpu", "0"],
        ["chek"],
        ["run", "--on-hang", "wait", "--", "x"],
        ["recommend", "--model", "gpt2", "--stage", "4"],
    ],
    ids=" ".join,
)
def test_an_invented_option_would_be_found(args: list[str]) -> None:
    with pytest.raises(click.UsageError):
        parse(args)


def test_commands_are_found_behind_pipes_and_launchers() -> None:
    text = (
        "kubectl logs x | dsdoctor diagnose -\nsrun -n 2 dsdoctor run -- a\npipx install dsdoctor"
    )
    assert list(commands(text)) == [["diagnose", "-"], ["run", "--", "a"]]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file(page: Path) -> None:
    assert [one for one in links(page) if not (page.parent / one).exists()] == []


def rows(heading: str) -> list[list[str]]:
    """The rows of the table below a heading of docs/configuration.md."""
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    part = re.split(r"^#+ ", text.partition(f"# {heading}\n")[2], flags=re.MULTILINE)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_reference_of_the_configuration_names_every_key() -> None:
    assert [row[0] for row in rows("`config.toml`")] == [
        f"`{name}`" for name in Settings.__struct_fields__
    ]
    assert [row[0] for row in rows("`[hook]`")] == [
        f"`{name}`" for name in HookSettings.__struct_fields__
    ]


def test_the_bounds_of_the_hook_are_those_of_the_code() -> None:
    written = {row[0].strip("`"): row[1] for row in rows("`[hook]`")}
    for field in msgspec.structs.fields(HookSettings):
        meta: Any = next(iter(getattr(field.type, "__metadata__", ())), None)
        if meta is not None and meta.ge is not None:
            assert written[field.name] == f"number, {meta.ge:g} to {meta.le:g}"


def test_the_reference_of_profiles_names_every_key() -> None:
    written = {(row[0].strip("`"), row[1].strip("`")) for row in rows("Profiles")}
    known = {(table, key) for table, keys in profiles.SCHEMA.items() for key in keys}
    assert written == known | {("packages", "the name of a package")}
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert f"Bundled profiles: {', '.join(f'`{name}`' for name in profiles.bundled())}." in text


def test_the_examples_of_the_configuration_are_read(tmp_path: Path) -> None:
    config, profile = [t for kind, t in blocks(DOCS / "configuration.md") if kind == "toml"]
    file = tmp_path / "config.toml"
    file.write_text(config)
    from dsdoctor import settings

    assert settings.load(file).limits == {"shm-too-small": {"min_mib": 8192}}
    assert profiles.parse(profile, "example").packages == {"transformers": "4.40"}


@pytest.fixture(scope="module")
def navigation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("navigation", DOCS / "navigation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("uri", "boost", "tags"),
    [
        ("conditions/gpu-oom.md", 2, ["The GPU ran out of memory"]),
        ("facts.md", 0.3, None),
        ("run.md", None, None),
    ],
)
def test_a_condition_is_found_by_what_it_names(
    navigation: ModuleType, uri: str, boost: float | None, tags: list[str] | None
) -> None:
    page = types.SimpleNamespace(file=types.SimpleNamespace(src_uri=uri), meta={})
    text = (DOCS / uri).read_text()
    assert navigation.on_page_markdown(text, page=page, config=None, files=None) == text
    assert page.meta.get("search") == (None if boost is None else {"boost": boost})
    assert page.meta.get("tags") == tags


def test_the_site_reaches_every_page_once(navigation: ModuleType) -> None:
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    named = list(navigation.pages_of(navigation.complete(settings["nav"], DOCS)))
    assert sorted(named) == navigation.all_pages(DOCS)


def test_pages_of_the_site_link_only_to_pages_of_the_site() -> None:
    inside = DOCS.resolve()
    leaving = {
        name_of(page): one
        for page in DOCS.rglob("*.md")
        for one in links(page)
        if inside not in (page.parent / one).resolve().parents
    }
    assert leaving == {}


@pytest.mark.parametrize("page", [ENGLISH, CHINESE], ids=["English", "Chinese"])
def test_the_output_that_a_readme_shows_is_that_of_today(page: Path) -> None:
    """But for the counts of conditions, which change with each new one."""
    golden = (ROOT / "tests/golden/driver-too-old.txt").read_text(encoding="utf-8")
    _, _, shown = page.read_text(encoding="utf-8").partition("```text\nnode · ")
    shown = "node · " + shown.partition("```")[0]
    counts = re.compile(r"\d+ (?=ok|skipped)")
    assert counts.sub("N ", shown) == counts.sub("N ", golden)

"""The HTML of every page: nothing is run, loaded, hidden or out of reach."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html.parser
import importlib.util
import re
import sys
from pathlib import Path

import msgspec
import pytest

from dsdoctor.cli import main, smoke
from dsdoctor.errors import UsageError
from dsdoctor.logs.quote import around
from dsdoctor.model.run_record import RunRecord
from dsdoctor.model.smoke import SmokeReport
from dsdoctor.report.html import check, diff, page
from tests.checks import machines
from tests.html import samples

STYLE = (page.FOLDER / "style.css").read_text()
PAGES = samples.all_pages()
VOID = {"meta", "input", "br"}


class Reader(html.parser.HTMLParser):
    """Tags, attributes and nesting, as a browser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.wrong: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.wrong.append(f"</{tag}> in {self.open[-3:]}")
        else:
            self.open.pop()


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    return reader


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole_small_and_alone(name: str) -> None:
    text = PAGES[name]
    assert len(text.encode()) < 1_000_000
    found = read(text)
    assert (found.wrong, found.open) == ([], [])
    names = [tag for tag, _ in found.tags]
    assert names.count("h1") == 1
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(names)
    for tag, attributes in found.tags:
        for key, value in attributes.items():
            assert key not in ("src", "href", "style", "action", "srcset"), (tag, key)
            assert not key.startswith("on"), (tag, key, value)


@pytest.mark.parametrize("name", PAGES)
def test_the_policy_allows_this_style_and_this_script_alone(name: str) -> None:
    text = PAGES[name]
    policy = next(a["content"] for _, a in read(text).tags if "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        bodies = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        hashes = [
            f"'sha256-{base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()}'"
            for body in bodies
        ]
        assert len(bodies) <= 1
        allowed = re.search(rf"{directive} ([^;]*)", policy)
        assert (allowed.group(1).split() if allowed else []) == hashes


@pytest.mark.parametrize("name", [name for name in PAGES if name.startswith("hostile")])
def test_a_hostile_name_is_text(name: str) -> None:
    text = PAGES[name]
    assert "hacked" in text, "the name is on the page"
    assert "<script>window" not in text
    assert "<img" not in text
    assert not re.search("[\u200e\u200f\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f]", text)
    assert "49" not in re.findall(r"gpu[^<]{0,40}", text)[0], "a name is not a template"


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def themes() -> dict[str, dict[str, str]]:
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    assert len(blocks) == 3
    found = [dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", block)) for block in blocks]
    return dict(zip(("light", "dark", "print"), found, strict=True))


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_contrast_is_that_of_wcag_aa(theme: str) -> None:
    colors = themes()[theme]
    texts = ["ink", "muted", "link", "fail", "warn", "unknown", "ok", "skip"]
    for ground in ("bg", "panel"):
        for name in texts:
            assert contrast(colors[name], colors[ground]) >= 4.5, (name, ground)
        for number in range(1, 9):  # shapes need 3:1
            assert contrast(colors[f"s{number}"], colors[ground]) >= 3, (number, ground)


def test_the_printed_page_has_the_colors_of_the_light_one() -> None:
    assert themes()["print"] == themes()["light"]
    assert set(themes()["dark"]) == set(themes()["light"])


def test_the_page_of_a_faulty_machine_says_what_and_how() -> None:
    text = PAGES["check"]
    assert text.index("driver-too-old") < text.index("gpu-busy"), "the worst first"
    assert "dsdoctor fix install-torch-build" in text
    assert "6 NVLinks down" in text
    assert "1 NVLink down" in samples.checked(down=1)
    assert text.count("</b> · chosen") == 4
    assert text.count("PCIe switch") + text.count("PCIe port") >= 4


def test_what_was_not_read_is_said_with_its_reason() -> None:
    found = samples.snapshot()
    found.missing["storage"] = samples.TIMED_OUT
    text = check.page(samples.judged(found), found)
    assert "Timed out: 1 fact" in text
    assert "no answer within 10 s" in text


def on_a_screen(text: str) -> str:
    """A page without the drawings that only a phone shows."""
    return re.sub(r'<div class="narrow">.*?</div>', "", text, flags=re.DOTALL)


def test_a_phone_has_a_drawing_of_its_own_for_each() -> None:
    for name in ("run", "run-diff", "smoke", "diagnose", "fleet"):
        text = PAGES[name]
        wide = text.count('class="scroll wide"') or text.count('class="wide"')
        assert text.count('class="narrow"') == wide > 0, name


def test_a_diagnosis_points_from_the_cause_to_what_followed() -> None:
    text = on_a_screen(PAGES["diagnose"])
    assert text.count('class="head"') == 4, "an arrow to each consequence"
    assert "11 lines around line 5" in text
    assert ">rank 2<" in text


def test_bars_of_options_share_colors_and_name_what_is_too_large() -> None:
    text = PAGES["recommend"]
    assert text.index("zero-3") < text.index("Other options") < text.index("zero-0")
    assert "ZeRO stage 3, micro-batch 8, activation checkpointing, 71.8 GiB of 80.0 GiB" in text
    assert "does not fit" in text
    assert text.count('class="limit"') == text.count('class="bar tall"'), "each bar has its limit"
    assert "ds_config.json</summary>" in text


def test_a_run_shows_its_curves_and_events_on_one_axis() -> None:
    text = on_a_screen(PAGES["run"])
    for title in ("loss", "step time, s", "tokens/s", "GPU memory in use, GiB"):
        assert f">{title}</text>" in text
    assert text.count('class="chart"') == 6
    assert "rank 5 ended" in text
    assert "rank 5 ended; SIGTERM was forwarded to the job</title>" in text, "they are one point"
    assert ">2-3</text>" in text


def test_two_runs_share_the_time_axis_and_are_told_apart_without_color() -> None:
    text = on_a_screen(PAGES["run-diff"])
    titles = ["loss", "step time, s", "GPU memory in use, highest of all GPUs, GiB", "loss by step"]
    assert [f">{title}</text>" in text for title in titles] == [True] * 4
    assert text.count('class="chart"') == 7, "five curves, two strips of events"
    assert text.count('class="series l1"') == text.count('class="series l2 dashed"') == 7
    assert text.count(">0 min</text>") == 6, "all but the loss by step are over time"
    assert "-33%" in text
    assert "driver: 535 → train" in text


def test_a_fleet_compared_says_which_nodes_changed_how() -> None:
    text = PAGES["fleet-diff"]
    assert text.index("driver-too-old") < text.index("Versions and settings that changed")
    assert "gpu[1-4]" in text
    assert "101 more rows are left out" in text


def test_phases_that_were_not_reached_have_no_bar() -> None:
    text = on_a_screen(PAGES["smoke"])
    assert text.count("not reached</text>") == 2
    assert text.count("<title>spawn: ") == 1
    assert "<title>teardown: " not in text
    assert "reference 420.0 GB/s" in text


def test_a_comparison_begins_with_the_verdicts() -> None:
    text = PAGES["diff"]
    assert text.index("Verdicts that changed") < text.index("Facts that changed")
    reports = (samples.judged(samples.snapshot()),) * 2
    changes = [("a-one", "skip", "ok"), ("b-two", "ok", "fail"), ("c-three", "ok", "warn")]
    made = diff.page(("a.json", "b.json"), reports, [], changes)
    assert re.findall("b-two|c-three|a-one", made) == ["b-two", "c-three", "a-one"]
    assert "driver 580.95.05 is 580.65.06 or newer" in text
    assert "900 characters" in text, "a long value is folded"


def test_without_the_extra_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"needs the package `jinja2`; run `.* jinja2`"):
        page.require()


def run(*words: str) -> int:
    status = main.group.main(list(words), prog_name="dsdoctor", standalone_mode=False)
    assert isinstance(status, int)
    return status


def test_the_name_of_the_file_chooses_the_format(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(samples.LOG)
    run("diagnose", str(log), "-o", str(tmp_path / "a.html"))
    run("diagnose", str(log), "-o", str(tmp_path / "b.txt"))
    run("diagnose", str(log), "--format", "json", "-o", str(tmp_path / "c.html"))
    heads = {name: (tmp_path / name).read_text()[:15] for name in ("a.html", "b.txt", "c.html")}
    assert heads["a.html"] == "<!doctype html>"
    assert heads["b.txt"].startswith("CAUSE")
    assert heads["c.html"].startswith("{"), "what was asked for goes before the name"


def test_a_snapshot_becomes_a_page(tmp_path: Path) -> None:
    found = tmp_path / "snapshot.json"
    found.write_bytes(samples.snapshot().to_json())
    assert run("check", "--from", str(found), "-o", str(tmp_path / "x.HTML")) == 1
    assert "driver-too-old" in (tmp_path / "x.HTML").read_text()


def test_a_plan_becomes_a_page_and_files_beside_it(tmp_path: Path) -> None:
    machine = ["--gpu-memory", "80", "--gpu-count", "2", "--host-memory", "500"]
    words = ["recommend", "--model", "gpt2", *machine]
    assert run(*words, "-o", str(tmp_path / "plan.html")) == 0
    assert (tmp_path / "plan.html").read_text().startswith("<!doctype html>")
    assert run(*words, "--format", "html", "-o", str(tmp_path / "run")) == 0
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names >= {"report.html", "launch.sh", "ds_config.json"}
    with pytest.raises(UsageError, match="mutually exclusive"):
        run("recommend", "--model", "gpt2", "--prove", "-o", str(tmp_path / "p.html"))


def test_a_comparison_becomes_a_page(tmp_path: Path) -> None:
    found = tmp_path / "snapshot.json"
    found.write_bytes(samples.snapshot().to_json())
    assert run("diff", str(found), str(found), "-o", str(tmp_path / "d.html")) == 0
    assert "No verdict changed." in (tmp_path / "d.html").read_text()


def test_a_fleet_becomes_a_page(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    folder.mkdir()
    for name in ("gpu-17", "gpu-18"):
        (folder / f"{name}.json").write_bytes(samples.snapshot(host=name).to_json())
    assert run("fleet", "check", "--from", str(folder), "-o", str(tmp_path / "f.html")) == 1
    text = (tmp_path / "f.html").read_text()
    assert "driver-too-old" in text
    assert "gpu-[17-18]" in text


def test_a_smoke_run_becomes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = SmokeReport(verdict="pass", summary="every rank passed")
    smoke.show(found, "html", verbose=False, page=str(tmp_path / "s.html"))
    assert "every rank passed" in (tmp_path / "s.html").read_text()
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"wrote {tmp_path / 's.html'}\n")


def test_the_lines_around_a_line_are_those_of_the_log(tmp_path: Path) -> None:
    rows = [f"line {number}" for number in range(1, 400_001)]  # several blocks
    log = tmp_path / "train.log.gz"
    log.write_bytes(gzip.compress("\n".join(rows).encode(), 1))
    name = str(log)
    wanted = [(name, 1), (name, 250_000), (name, 400_000), (name, 900_000), ("gone.log", 3)]
    found = around([name, "-"], wanted, span=2)
    assert found[name, 1] == [(1, "line 1"), (2, "line 2"), (3, "line 3")]
    assert found[name, 250_000] == [(n, f"line {n}") for n in range(249_998, 250_003)]
    assert [n for n, _ in found[name, 400_000]] == [399_998, 399_999, 400_000]
    assert found[name, 900_000] == []
    assert ("gone.log", 3) not in found


def test_the_lines_around_a_line_are_masked(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("export HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz012345\nboom\n")
    found = around([str(log)], [(str(log), 2)])
    assert "hf_abc" not in str(found)


def test_a_kept_run_becomes_a_page(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    record = RunRecord(id="one", started="2026-11-22T06:10:00+00:00", seconds=9, status=0)
    (folder / "run.json").write_bytes(msgspec.json.encode(record))
    (folder / "steps.jsonl").write_text('{"t": 1, "loss": 3.5}\n{"t": 2, "loss": 2.5}\n')
    given = ["--runs-dir", str(folder.parent), "show", "one", "-o", str(tmp_path / "r.html")]
    assert run("run", *given) == 0
    assert ">loss</text>" in (tmp_path / "r.html").read_text()


def test_two_kept_runs_become_a_page(tmp_path: Path) -> None:
    for name, loss in (("one", 3.5), ("two", 2.5)):
        folder = tmp_path / "runs" / name
        folder.mkdir(parents=True)
        record = RunRecord(id=name, started="2026-11-22T06:10:00+00:00", seconds=9, status=0)
        (folder / "run.json").write_bytes(msgspec.json.encode(record))
        (folder / "steps.jsonl").write_text(f'{{"t": 1, "step": 1, "loss": {loss}}}\n')
    given = ["--runs-dir", str(tmp_path / "runs"), "diff", "one", "two"]
    assert run("run", *given, "-o", str(tmp_path / "d.html")) == 0
    text = (tmp_path / "d.html").read_text()
    assert "before, solid: <bdi>one</bdi>" in text
    assert ">loss by step</text>" in text
    assert run("run", *given, "-o", str(tmp_path / "d.txt")) == 0
    assert (tmp_path / "d.txt").read_text().split()[:2] == ["one", "two"]


def test_two_reports_of_a_fleet_become_a_page(tmp_path: Path) -> None:
    for name, driver in (("before", "535.104.05"), ("after", "580.95.05")):
        found = samples.snapshot()
        for fact in (machines.kernel(driver), machines.nvml(driver)):
            found.put(fact)
        (tmp_path / name).mkdir()
        (tmp_path / name / "gpu-17.json").write_bytes(found.to_json())
    folders = [str(tmp_path / name) for name in ("before", "after")]
    assert run("fleet", "diff", *folders, "-o", str(tmp_path / "d.html")) == 1
    text = (tmp_path / "d.html").read_text()
    assert "580.95.05" in text
    assert "driver-too-old" in text


def test_jinja_is_loaded_for_pages_only() -> None:
    code = "import dsdoctor.cli.main, dsdoctor.cli.check, sys; print('jinja2' in sys.modules)"
    import subprocess

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_events_stand_in_every_curve_of_a_run() -> None:
    text = on_a_screen(samples.ran())
    charts = text.count('class="chart"')
    assert charts == 6, "five curves and the strip of events"
    assert text.count('class="event f-warn"') == charts - 1


def test_a_smoke_run_shows_its_steps() -> None:
    text = samples.proved()
    assert {"loss: 5.9 to 10.4", "step time, ms: 210 to 900"} <= set(
        re.findall(r'aria-label="([^"]+)"', text)
    )
    assert "76,500 tokens/s" in text

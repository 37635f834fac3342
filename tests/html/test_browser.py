"""Every page in a real headless Chromium, at three widths and in both themes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsdoctor.fleet.page import MOST_LINES
from dsdoctor.report.html.page import SHOWN
from tests.html import browser, samples

pytestmark = pytest.mark.system

PAGES = samples.all_pages()
VIEWS = [(1280, "light"), (768, "dark"), (390, "light"), (360, "light"), (360, "dark")]
PHONE = 480
ROOT = Path(__file__).parents[2]
GROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(15, 20, 25)"}


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[browser.Browser]:
    with browser.running(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_readable_at_every_width_in_both_themes(
    name: str, chromium: browser.Browser, tmp_path: Path
) -> None:
    file = tmp_path / f"{name}.html"
    file.write_text(PAGES[name])
    for width, theme in VIEWS:
        chromium.open(file, width, theme)
        seen = chromium.evaluate(browser.PROBE)
        where = (name, width, theme)
        assert chromium.complaints() == [], where
        assert seen["overflow"] <= 0, where
        assert seen["cut"] == [], where
        assert seen["scrolled"] == 0 or width > PHONE, where
        assert seen["ran"] is False, where
        assert seen["requests"] == [], where
        assert seen["background"] == GROUND[theme], where


@pytest.mark.parametrize("name", PAGES)
def test_what_is_folded_is_printed_and_nothing_is_wider_than_the_paper(
    name: str, chromium: browser.Browser, tmp_path: Path
) -> None:
    file = tmp_path / f"{name}.html"
    file.write_text(PAGES[name])
    chromium.open(file, 718, "dark")  # A4 without its margins
    shown = (
        "[...document.querySelectorAll('details > :not(summary)')].map(e => e.checkVisibility())"
    )
    folded = chromium.evaluate(shown)
    chromium.call("Emulation.setEmulatedMedia", media="print")
    assert all(chromium.evaluate(shown)), f"{folded.count(False)} of {len(folded)} were folded"
    seen = chromium.evaluate(browser.PROBE)
    chromium.call("Emulation.setEmulatedMedia", media="")
    assert (seen["overflow"], seen["cut"]) == (0, [])
    assert seen["background"] == GROUND["light"]


def test_the_probe_sees_what_is_wrong(chromium: browser.Browser, tmp_path: Path) -> None:
    file = tmp_path / "bad.html"
    bad = "<p style='width:2000px'>x</p><script>window.hacked=true</script>"
    file.write_text(PAGES["check"].replace("<h1>", f"{bad}<h1>", 1))
    chromium.open(file, 360)
    found = chromium.complaints()
    assert any("Content Security Policy" in text for text in found), found
    assert chromium.evaluate(browser.PROBE)["ran"] is False, "the policy holds"
    file.write_text("<main><p style='width:2000px'>x</p></main>")
    chromium.open(file, 360)
    seen = chromium.evaluate(browser.PROBE)
    assert seen["overflow"] > 0
    assert seen["cut"] != []


def test_everything_folded_opens_with_the_keyboard(
    chromium: browser.Browser, tmp_path: Path
) -> None:
    file = tmp_path / "check.html"
    file.write_text(PAGES["check"])
    chromium.open(file)
    folded = chromium.evaluate("document.querySelectorAll('details').length")
    opened = 0
    for _ in range(200):
        chromium.press("Tab")
        at = chromium.evaluate("document.activeElement.tagName")
        if at == "BODY":
            break
        if at == "SUMMARY":
            chromium.press("Enter", "\r")
            opened += chromium.evaluate("document.activeElement.parentElement.open")
    assert opened == folded > 3


def test_the_tables_of_a_fleet_filter_and_sort(chromium: browser.Browser, tmp_path: Path) -> None:
    file = tmp_path / "fleet.html"
    file.write_text(PAGES["fleet"])
    chromium.open(file)
    assert chromium.evaluate("document.querySelector('.tools').hidden") is False
    chromium.evaluate("document.querySelector('[data-for=drift] input').focus()")
    chromium.call("Input.insertText", text="driver 535")
    rows = "[...document.querySelectorAll('#drift tbody tr')].filter((r) => !r.hidden)"
    assert chromium.evaluate(f"{rows}.length") == 1
    assert "535.104.05" in chromium.evaluate(f"{rows}[0].textContent")
    chromium.evaluate("document.querySelector('#groups th button').focus()")
    chromium.press("Enter", "\r")
    counts = "[...document.querySelectorAll('#groups tbody tr')].map((r) => +r.cells[0].innerText)"
    found = chromium.evaluate(counts)
    assert found == sorted(found)
    chromium.press("Enter", "\r")
    assert chromium.evaluate(counts) == sorted(found, reverse=True)
    assert chromium.complaints() == []


def test_a_long_table_shows_its_beginning_and_unfolds(
    chromium: browser.Browser, tmp_path: Path
) -> None:
    file = tmp_path / "fleet-diff.html"
    file.write_text(PAGES["fleet-diff"])
    rows = "[...document.querySelectorAll('#traits tbody tr')].filter((r) => r.checkVisibility())"
    for width in (1280, 390):
        chromium.open(file, width)
        assert chromium.evaluate(f"{rows}.length") == SHOWN
        chromium.evaluate("document.querySelector('[data-for=traits] input').focus()")
        chromium.call("Input.insertText", text="gpu1000")
        assert chromium.evaluate(f"{rows}.length") == 1, "a row that was folded is found"
        chromium.open(file, width)
        chromium.evaluate("document.querySelector('[data-for=traits] button').click()")
        assert chromium.evaluate(f"{rows}.length") == MOST_LINES
    chromium.open(file)
    chromium.call("Emulation.setEmulatedMedia", media="print")
    assert chromium.evaluate(f"{rows}.length") == MOST_LINES, "paper has all"
    chromium.call("Emulation.setEmulatedMedia", media="")
    assert chromium.complaints() == []


def test_a_button_copies_a_command(chromium: browser.Browser, tmp_path: Path) -> None:
    file = tmp_path / "check.html"
    file.write_text(PAGES["check"])
    chromium.open(file)
    chromium.evaluate(
        "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }"
    )
    chromium.evaluate("document.querySelector('.command button').focus()")
    chromium.press("Enter", "\r")
    assert chromium.evaluate("window.copied") == "dsdoctor fix install-torch-build"
    assert chromium.evaluate("document.querySelector('.command button').textContent") == "Copied"
    assert chromium.complaints() == []


def test_ten_thousand_nodes_are_few_elements(chromium: browser.Browser, tmp_path: Path) -> None:
    file = tmp_path / "fleet.html"
    file.write_text(samples.fleet(10_000))
    chromium.open(file)
    assert chromium.evaluate("document.querySelectorAll('*').length") < 20_000
    assert chromium.complaints() == []


def test_the_search_of_the_documentation_looks_for_whole_words(
    chromium: browser.Browser, tmp_path: Path
) -> None:
    """mkdocs-material adds a wildcard to every word: `is` in a message would find `isolation`."""
    script = (ROOT / "docs/assets/search.js").read_text(encoding="utf-8")
    file = tmp_path / "page.html"
    file.write_text(f"<title>x</title><script>{script}</script>")
    chromium.open(file)
    for query, words in {
        "fused_adam.so": "fused^1 adam tags:fused^3 tags:adam^3",
        "libcudart.so.12: cannot open shared object file": (
            "libcudart^1 12^1 cannot^1 open^1 shared^1 object^1 file"
        ),
        "CUDA out of memory. Tried to allocate 2.00 GiB": (
            "CUDA^1 out^1 memory^1 Tried^1 allocate^1 2.00^1 GiB"
        ),
        "gpu-lo": "gpu^1 lo tags:gpu^3 tags:lo^3",
        '"out of memory"': '"out of memory"',
        "not in": "not in",
    }.items():
        assert chromium.evaluate(f"wholeWords({json.dumps(query)})") == words
    sent = "new Promise((done) => { const w = new Worker('data:text/javascript,onmessage=(e)=>postMessage(e.data)'); w.onmessage = (e) => done(e.data.data); w.postMessage({type: 2, data: 'a.so b'}); })"
    found = chromium.call(
        "Runtime.evaluate", expression=sent, returnByValue=True, awaitPromise=True
    )
    assert found["result"]["value"] == "b tags:b^3", "`a` is a common word"

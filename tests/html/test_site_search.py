"""The search of the documentation site: what `docs/assets/search.js` changes, in a real Chromium."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.html import browser

pytestmark = pytest.mark.system

SCRIPT = Path(__file__).parents[2] / "docs" / "assets" / "search.js"
#: A worker that answers every query as the theme's does; its first result has the words only apart.
PAGE = """<title>x</title><script>
const items = [
  [{title: 'pcie', text: '<p>an <mark>error</mark> of the <mark>bus</mark></p>'}],
  [{title: 'shm', text: '<pre>worker is killed: <mark>Bus</mark>\\n<mark>error</mark>.</pre>'}],
];
const answer = 'onmessage = (e) => postMessage({type: 3, query: e.data.data, data: {items: ' + JSON.stringify(items) + '}})';
const worker = new Worker(URL.createObjectURL(new Blob([answer])));
worker.addEventListener('message', (event) => {
  window.found = [event.data.query, ...event.data.data.items.map((pages) => pages[0].title)];
});
</script><script>SCRIPT</script><script>
window.ask = (words) => { window.found = null; worker.postMessage({type: 2, data: words}); };
</script>"""


@pytest.mark.parametrize(
    ("query", "searched", "order"),
    [
        ("Bus error", "Bus^1 error tags:Bus^3 tags:error^3", ["shm", "pcie"]),
        ("error of the bus", "error^1 bus tags:error^3 tags:bus^3", ["pcie", "shm"]),
        ("nothing like it", "nothing^1 like tags:nothing^3 tags:like^3", ["pcie", "shm"]),
    ],
)
def test_pages_with_the_words_as_typed_come_first(
    tmp_path: Path, query: str, searched: str, order: list[str]
) -> None:
    file = tmp_path / "search.html"
    file.write_text(PAGE.replace("SCRIPT", SCRIPT.read_text()))
    with browser.running(tmp_path / "profile") as chromium:
        chromium.open(file)
        chromium.evaluate(f"window.ask({json.dumps(query)})")
        found = None
        while found is None:
            found = chromium.evaluate("window.found")
    assert found == [searched, *order]

"""Renders the picture of the READMEs: a page of `check -o report.html`, in a real Chromium.

    python -m tools.readme_picture

The machine is the simulated one of the tests (eight GPUs, a driver that is too old, links down).
"""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path

from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.report.html import check
from tests.html import browser, samples

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "report.png"
WIDTH, HEIGHT = 1000, 1180


def made() -> str:
    """The page of the simulated machine, with the interpreter that a reader would have."""
    found = samples.snapshot()
    found.put(PatientChoice(executable="/opt/train/bin/python", chosen_by="VIRTUAL_ENV"))
    return check.page(samples.judged(found), found)


def main() -> None:
    """Writes the picture."""
    with tempfile.TemporaryDirectory() as folder, browser.running(Path(folder)) as chromium:
        page = Path(folder) / "report.html"
        page.write_text(made(), encoding="utf-8")
        chromium.open(page, WIDTH)
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
        data = chromium.call("Page.captureScreenshot", clip=clip)["data"]
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(base64.b64decode(data))


if __name__ == "__main__":
    main()

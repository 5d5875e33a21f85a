"""Take the pictures docs/images/report-*.png again, from the report of the quick start.

    rag-sourcebias audit source --sample --retriever bm25 --retriever dense:all-MiniLM-L6-v2 \
        --report report
    python docs/_site/pictures.py report

Needs chromium or google-chrome, and Pillow (extra ``report``). ``dashboard.png`` is the
twelfth day of tests/e2e/test_dashboard_fortnight.py.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import tempfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
from dashboard_browser import Browser, chromium  # noqa: E402

WIDTH, EDGE = 1070, 24
# From the top of the first to the bottom of the second, as selectors, and the page's zoom.
PARTS = {
    "verdicts": ("header", "header", 1.0),
    "cutoffs": ("#cutoffs h2", "#cutoffs", 1.0),
    "numbers": ("#numbers h2", "#numbers thead + tbody", 0.88),  # else its columns are cut off
    "sign": ("#sign h2", "#sign", 1.0),
    "twins": ("#twins h2", "#twins", 1.0),
    "length": ("#length h2", "#length .figures", 1.0),
    "control": ("#sole-corpus h2", "#sole-corpus", 1.0),
}
ENDS = """JSON.stringify([%s, %s].map(css => document.querySelector(css).getBoundingClientRect())
    .map(box => [box.top + scrollY, box.bottom + scrollY]))"""


def take(browser: Browser, name: str) -> None:
    """Write one part of the page as a picture."""
    first, last, zoom = PARTS[name]
    browser.run(f"document.documentElement.style.zoom = {zoom}")
    (top, _), (_, bottom) = json.loads(browser.run(ENDS % (json.dumps(first), json.dumps(last))))
    # Below all others stands the next fold.
    top, bottom = max(top - EDGE, 0), bottom + EDGE * (last == "header")
    clip = {"x": 0, "y": top, "width": WIDTH, "height": bottom - top, "scale": 1}
    shot = browser.ask("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    picture = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    picture.quantize(64).save(ROOT / "docs" / "images" / f"report-{name}.png", optimize=True)


def main() -> None:
    """Open the report and take its pictures."""
    program = chromium()
    if program is None:
        sys.exit("neither chromium nor google-chrome is installed")
    with tempfile.TemporaryDirectory() as folder:
        browser = Browser(program, Path(folder))
        try:
            browser.connect()
            browser.size(WIDTH, 900)
            browser.open((Path(sys.argv[1]).resolve() / "report.html").as_uri())
            browser.run("document.querySelectorAll('.part').forEach(d => { d.open = true; }); true")
            narrow = "document.querySelectorAll('#numbers :is(td, th)')"
            browser.run(f"{narrow}.forEach(cell => {{ cell.style.paddingInline = '6px'; }}); true")
            for name in PARTS:
                take(browser, name)
        finally:
            browser.close()


if __name__ == "__main__":
    main()

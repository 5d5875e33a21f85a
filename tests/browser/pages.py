"""What is asked of every page in a real browser, whatever it shows."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import axe_core_python
from dashboard_browser import Browser

__all__ = ["SCREENS", "dressed", "enter", "faults", "opened", "unnamed"]

SCREENS = [(390, False), (390, True), (1280, False), (1280, True)]
_VIEW = '<meta name="viewport" content="width=device-width, initial-scale=1">'
OPEN = "document.querySelectorAll('details').forEach(d => { d.open = true; }); true"


@cache
def _axe() -> str:
    return (Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")


def opened(browser: Browser, page: Path | str, width: int = 1280, *, dark: bool = False) -> None:
    """Open a page on a screen, with all that is folded unfolded."""
    browser.size(width, 900, dark=dark)
    browser.open(page.as_uri() if isinstance(page, Path) else page)
    browser.run(OPEN)


def faults(browser: Browser) -> list[str]:
    """Return what the browser complained of, and whether the page is wider than the screen."""
    # A phone zooms out of a page that is too wide, and calls itself as wide as the page.
    box = "document.documentElement"
    wide, screen = browser.run(f"[{box}.scrollWidth, {box}.clientWidth]")
    return [*browser.complaints, *[f"{wide} pixels on a screen of {screen}"] * (wide > screen)]


def unnamed(browser: Browser, *, dark: bool = False) -> list[str]:
    """Return what axe finds wrong: names, roles, contrast, order of headings, and so on.

    In the dark, where only colours differ, it looks at contrast alone.
    """
    browser.run(_axe())
    rules = ["color-contrast"] if dark else ["wcag2a", "wcag2aa", "best-practice"]
    options = {"resultTypes": ["violations"], "runOnly": rules}
    browser.run(
        f"axe.run(document, {json.dumps(options)}).then(found => {{ window.axed = found; }}); true"
    )
    browser.wait("window.axed !== undefined")
    found: list[dict[str, Any]] = browser.run(
        "window.axed.violations.map(v => ({id: v.id, nodes: v.nodes.map(n => n.html)}))"
    )
    browser.run("delete window.axed")
    return [f"{one['id']}: {node[:160]}" for one in found for node in one["nodes"][:3]]


def enter(browser: Browser, key: str = "Enter") -> None:
    """Press a key as a hand does: what is focused receives it, text and all."""
    code, text = {"Enter": (13, "\r"), "Tab": (9, ""), " ": (32, " ")}[key]
    kinds = ("keyDown", "keyUp") if text else ("rawKeyDown", "keyUp")
    for kind in kinds:
        more = {"text": text} if text and kind == "keyDown" else {}
        browser.ask(
            "Input.dispatchKeyEvent",
            type=kind,
            key=key,
            code="Space" if key == " " else key,
            windowsVirtualKeyCode=code,
            **more,
        )


def dressed(body: str, head: str = "") -> str:
    """Return a small page that has nothing wrong but what is put into it."""
    return (
        f'<!DOCTYPE html><html lang="en"><head><title>x</title>{_VIEW}{head}</head>'
        f"<body><main><h1>x</h1>{body}</main></body></html>"
    )

"""What matplotlib draws, made to stand in a web page: colours, ids, and values on hover."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from matplotlib.artist import Artist

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_SHORT = re.compile(r"(-?\d+\.\d\d)\d+")
_FONT = "var(--plot-font, system-ui, sans-serif)"
_TIPS = "tips"  # how the id of a group of marks starts that carries their words

# Matplotlib knows no CSS variables: it draws in these colours, which nothing else uses, and
# `render` puts the variable in their place. The fallback serves readers without our style sheet.
COLOURS = {
    "ink": "#010101",
    "muted": "#020202",
    "grid": "#030303",
    "paper": "#040404",
    "baseline": "#050505",
    "other": "#060606",
    "even": "#070707",
}
_CSS = {
    "ink": "var(--plot-ink, #1c1e21)",
    "muted": "var(--plot-muted, #5b6068)",
    "grid": "var(--plot-grid, #dcdfe4)",
    "paper": "var(--plot-paper, #ffffff)",
    "baseline": "var(--plot-baseline, #0b62a8)",
    "other": "var(--plot-other, #b34700)",
    "even": "var(--plot-even, #6b7078)",
}


def tipped(artists: Iterable[Artist], words: Sequence[str]) -> None:
    """Have each artist say words on hover: one text of it as a whole, or one for each mark."""
    for artist in artists:
        artist.set_gid(_TIPS + json.dumps(words))


def for_a_page(text: str, uid: str, words: Mapping[str, str]) -> str:
    """Return an ``<svg>`` element without size, ready to stand in HTML beside others."""
    ET.register_namespace("", _SVG)
    root = ET.fromstring(text)
    _say(root)
    _drop(root, set(re.findall(r"#([\w.-]+)", text)))
    for element in root.iter():
        if element.tag != f"{{{_SVG}}}text":
            element.text = (element.text or "").strip()
        element.tail = (element.tail or "").strip()
        if _XLINK in element.attrib:
            element.set("href", f"#{uid}-{element.attrib.pop(_XLINK).lstrip('#')}")
        for name, value in element.attrib.items():
            element.set(name, _value(name, value, uid))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib |= {
        "role": "img", "width": "100%", "class": "plot", "stroke-linejoin": "round",
        "aria-labelledby": f"{uid}-title {uid}-desc",
    }  # fmt: skip
    for place, (name, words_) in enumerate(words.items()):
        child = ET.Element(f"{{{_SVG}}}{name}", {"id": f"{uid}-{name}"})
        child.text = words_
        root.insert(place, child)
    return ET.tostring(root, encoding="unicode")


def _drop(root: ET.Element, referred: Container[str]) -> None:
    """Leave out what shows nothing: unused ids, turns by 0, paths without ink, empty groups."""
    # From the inside out: a group of empty groups is empty in the end.
    for element in reversed(list(root.iter())):
        if element.get("id") not in referred:
            element.attrib.pop("id", None)
        if element.get("transform", "").startswith("rotate(-0 "):
            element.attrib.pop("transform")
        for child in list(element):
            empty = child.tag in (f"{{{_SVG}}}g", f"{{{_SVG}}}defs") and not len(child)
            if empty or child.get("style") == "fill: none":
                element.remove(child)


def _value(name: str, value: str, uid: str) -> str:
    """Return an attribute with ids of this picture, short numbers, and what the page decides."""
    if name == "id":
        return f"{uid}-{value}"
    if name in ("d", "x", "y", "transform"):
        return " ".join(_SHORT.sub(r"\1", value).split())
    value = re.sub(r"url\(#([^)]+)\)", rf"url(#{uid}-\1)", value)
    # The first size in points or pixels, then everything up to the next declaration: the family.
    value = re.sub(r"(font:[^;]*?[\d.]+px) [^;]+", rf"\1 {_FONT}", value)
    value = re.sub(r"font-family:[^;]+", f"font-family: {_FONT}", value)
    for role, colour in COLOURS.items():
        value = value.replace(colour, _CSS[role])
    return value


def _say(root: ET.Element) -> None:
    """Give marks the words that the ids of their groups hold, as titles that a browser shows."""
    for group in list(root.iter(f"{{{_SVG}}}g")):
        if not group.get("id", "").startswith(_TIPS) or not len(group):
            continue
        words = json.loads(group.attrib.pop("id")[len(_TIPS) :])
        found = ([*group.iter(f"{{{_SVG}}}{name}")] for name in ("use", "path"))
        marks = [group] if len(words) == 1 else next(filter(None, found), [])
        # Of values that are not drawn nobody knows which of the words are theirs.
        for mark, text in zip(marks, words, strict=True) if len(marks) == len(words) else ():
            ET.SubElement(mark, f"{{{_SVG}}}title").text = text

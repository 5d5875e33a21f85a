"""Damage to a valid file: blind, by token, and by the structure of its format.

Every kind of damage is drawn with a seeded generator, so an input can be made again from the name
of its reader and its number.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import closing
from random import Random
from typing import Any

Damage = Callable[[bytes, Random], bytes]

# What readers meet where something else should be.
_TOKENS = (
    b"\x00", b"\x00" * 64, b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\n",
    b"\t", b'"', b"'", b",", b"{", b"}", b"[", b"]", b":", b"\\", b"\\ud800", b"\\u0000", b"null",
    b"NaN", b"-Infinity", b"1e999", b"-1e-999", b"9" * 400, b"9" * 5_000, b"-1", b"0", b"1.5",
    b"true", b"\x1b[31m", b"\xe2\x80\xae", b"\xe2\x80\xa8", b"[" * 100_000, b'{"a":' * 50_000,
    b"- " * 20_000, b"(" * 5_000, b"&a [*a]", b"!!python/object/apply:os.getcwd []", b"!!int ''",
    b"!!binary x", b"!!timestamp x", b"*unknown", b"%YAML 9.9\n---\n", b"=1+1", b"x" * 100_000,
)  # fmt: skip
_MOST = 1 << 20  # bytes of content to change by its structure
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**70), 10**400, 0.5, -0.0, 1e308, -1e308,
    float("nan"), float("inf"), "", "x", "NaN", "1e999", "-1", "0.5", "\x00", "\ud800", "\u202e",
    [], [None], [[]], [0.5, "x"], {}, {"a": None}, {"": []}, "9" * 5_000, [[[[[[[[]]]]]]]],
)  # fmt: skip
_CELLS: tuple[Any, ...] = (
    None, 0, -1, 2**31, 2**62, -(2**63), 0.5, 1e308, float("inf"), "", "x", "null", "[",
    '{"a": 1}',
    "[]", "[1, [2]]", '["a"]', "9" * 5_000, b"", b"\x00", b"\xff" * 7, b"\xff" * 64,
    b"\x01" * 4_096,
)  # fmt: skip


def damaged(content: bytes, name: str, rng: Random) -> bytes:
    """Return a damaged copy of the content of a file; its form is read off the name."""
    kinds = _BLIND + _OF_FORM.get(_form(name), ())
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = rng.choice(kinds)(content, rng)
    return content


def _form(name: str) -> str:
    ending = name.rpartition(".")[2]
    forms = {
        "db": "sqlite", "cache": "sqlite", "state": "json", "npz": "zip", "txt": "lines",
        "tsv": "lines", "csv": "lines",
    }  # fmt: skip
    return forms.get(ending, ending)


def _span(content: bytes, rng: Random) -> slice:
    start = rng.randrange(len(content) + 1)
    return slice(start, min(len(content), start + rng.choice((1, 2, 4, 16, 64, 512, 4_096))))


def _flip(content: bytes, rng: Random) -> bytes:
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8, 64)) if data else 0):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def _overwrite(content: bytes, rng: Random) -> bytes:
    span = _span(content, rng)
    n = span.stop - span.start
    fill = rng.choice((b"\x00" * n, b"\xff" * n, rng.randbytes(n)))
    return content[: span.start] + fill + content[span.stop :]


def _truncate(content: bytes, rng: Random) -> bytes:
    return content[: rng.choice((0, 1, 8, len(content) - 1, rng.randrange(len(content) + 1)))]


def _drop(content: bytes, rng: Random) -> bytes:
    span = _span(content, rng)
    return content[: span.start] + content[span.stop :]


def _repeat(content: bytes, rng: Random) -> bytes:
    span = _span(content, rng)
    return content[: span.stop] + content[span] * rng.choice((1, 2, 50)) + content[span.stop :]


def _move(content: bytes, rng: Random) -> bytes:
    one, other = _span(content, rng), rng.randrange(len(content) + 1)
    return content[:other] + content[one] + content[other:]


def _insert(content: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice(_TOKENS) + content[at:]


def _number(content: bytes, rng: Random) -> bytes:
    numbers = list(re.finditer(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?", content[:200_000]))
    if not numbers:
        return _insert(content, rng)
    one = rng.choice(numbers)
    return content[: one.start()] + rng.choice(_TOKENS) + content[one.end() :]


def _header(content: bytes, rng: Random) -> bytes:
    """Change one of the first or last bytes, where formats keep sizes and offsets."""
    data = bytearray(content)
    if data:
        at = rng.randrange(min(len(data), 128))
        data[at if rng.random() < 0.5 else len(data) - 1 - at] = rng.randrange(256)
    return bytes(data)


_BLIND: tuple[Damage, ...] = (
    _flip, _flip, _overwrite, _truncate, _drop, _repeat, _move, _insert, _insert, _number, _header,
)  # fmt: skip


def _one_node(data: Any, rng: Random) -> Any:
    """Replace, drop or repeat one node of a JSON value."""
    places: list[tuple[Any, Any]] = []
    heads = [data]
    while heads and len(places) < 20_000:
        head = heads.pop()
        keys = head if isinstance(head, dict) else range(len(head))
        for key in keys:
            places.append((head, key))
            if isinstance(head[key], dict | list):
                heads.append(head[key])
    if not places:
        return rng.choice(_VALUES)
    head, key = rng.choice(places)
    what = rng.randrange(6)
    if what == 0:
        del head[key]
    elif what == 1 and isinstance(head, list):
        head.insert(key, head[key])
    elif what == 2 and isinstance(head, dict):
        head[rng.choice(("", "x", "schema_version", "kind"))] = head[key]
    else:
        head[key] = rng.choice(_VALUES)
    return data


def _plain(data: Any) -> bytes:
    return json.dumps(data).encode("utf-8", "surrogatepass")


def _json(content: bytes, rng: Random) -> bytes:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return _insert(content, rng)
    return _plain(_one_node(data, rng) if isinstance(data, dict | list) else data)


def _json_line(content: bytes, rng: Random) -> bytes:
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = _json(lines[at], rng)
    return b"\n".join(lines)


def _line(content: bytes, rng: Random) -> bytes:
    """Drop, repeat or swap a line, or damage one cell."""
    lines = content.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    what = rng.randrange(4)
    if what == 0:
        del lines[one]
    elif what == 1:
        lines.insert(other, lines[one])
    elif what == 2:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        by = b"\t" if b"\t" in lines[one] else b","
        cells = lines[one].split(by)
        cells[rng.randrange(len(cells))] = rng.choice(_TOKENS)
        lines[one] = by.join(cells)
    return b"\n".join(lines)


def _gzip_inside(content: bytes, rng: Random) -> bytes:
    """Damage what is packed, and pack it again."""
    try:
        inside = gzip.decompress(content)
    except (OSError, EOFError, zlib.error, struct.error):
        return _flip(content, rng)
    if len(inside) > _MOST:  # a bomb already: its lines would be our memory, not the reader's
        return _flip(content, rng)
    return gzip.compress(_any_text(inside, rng), 1, mtime=0)


def _any_text(content: bytes, rng: Random) -> bytes:
    return rng.choice((*_BLIND, _line, _json_line))(content, rng)


def _gzip_bomb(_content: bytes, rng: Random) -> bytes:
    """Pack something that unpacks to far more."""
    return gzip.compress(rng.choice((b"x", b"\n", b" ", b"{}\n", b"\x00")) * (8 << 20), mtime=0)


def _gzip_more(content: bytes, rng: Random) -> bytes:
    return content + rng.choice((b"\x00" * 99, rng.randbytes(20), content, content[:15]))


def _zip_inside(content: bytes, rng: Random) -> bytes:
    """Damage one member, or what the archive says of it, and write the archive again."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = {info.filename: archive.read(info) for info in archive.infolist()}
    except Exception:  # noqa: BLE001 - damaged already
        return _flip(content, rng)
    if not members:
        return content
    name = rng.choice(sorted(members))
    what = rng.randrange(6)
    if what == 0:
        del members[name]
    elif what == 1:
        members[rng.choice(("../out", "/out", "a/" * 200, "x.npy", "\u202e"))] = members[name]
    elif what == 2:
        members[name] = b"\x00" * (8 << 20)
    else:
        change = _npy if name.endswith(".npy") and rng.random() < 0.7 else _any_text
        change = _flip if len(members[name]) > _MOST else change
        members[name] = change(members[name], rng)
    out = io.BytesIO()
    packing = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(out, "w", packing) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return out.getvalue()


def _zip_sizes(content: bytes, rng: Random) -> bytes:
    """Lie in the directory of an archive: sizes, offsets, flags, method."""
    at = [m.start() for m in re.finditer(b"PK\x01\x02", content)]
    at += [m.start() for m in re.finditer(b"PK\x03\x04", content)]
    if not at:
        return _flip(content, rng)
    data = bytearray(content)
    place = rng.choice(at) + rng.choice((6, 8, 10, 14, 16, 18, 20, 22, 24, 26, 28, 42))
    value = rng.choice((0, 1, 9, 12, 14, 99, 0x7FFFFFFF, 0xFFFFFFFF, rng.getrandbits(32)))
    data[place : place + 4] = struct.pack("<I", value)
    return bytes(data)


_SHAPES = (
    "()", "(0,)", "(1,)", "(2, 0)", "(10000000000,)", "(1000000, 1000000)", "(-1,)", "(2, 3, 4)",
    "(9223372036854775807,)", "(" + "9" * 300 + ",)", "3", "None", "('x',)", "(True,)", "(1.5,)",
    "(" * 150 + ")" * 150, "(4294967296, 4294967296)",
)  # fmt: skip
_DTYPES = (
    "'|O'", "'<f8'", "'<f2'", "'>f4'", "'<i4'", "'<U4'", "'<U1000000000'", "'|S0'", "'|V4'",
    "'<c16'", "'M8[s]'", "'x'", "''", "None", "3", "[('a', '<f4')]", "[('a', '|O')]", "'|b1'",
    "('<f4', (1000000000,))", "'<f4,' * 3", "'float128'",
)  # fmt: skip


def _npy(content: bytes, rng: Random) -> bytes:
    """Write another header before the numbers."""
    if content[:6] != b"\x93NUMPY" or len(content) < 10:
        return _flip(content, rng)
    (length,) = struct.unpack("<H", content[8:10])
    header = content[10 : 10 + length].decode("latin-1").strip()
    if rng.random() < 0.6:
        header = re.sub(r"'shape': \([^)]*\)", lambda _: f"'shape': {rng.choice(_SHAPES)}", header)
    if rng.random() < 0.6:
        header = re.sub(
            r"'descr': [^,]*", lambda _: f"'descr': {rng.choice(_DTYPES)}", header, count=1
        )
    if rng.random() < 0.2:
        token = rng.choice(_TOKENS).decode("latin-1")[:60_000]
        at = rng.randrange(len(header) + 1)
        header = header[:at] + token + header[at:]
    packed = header.encode("latin-1") + b" " * rng.randrange(4) + b"\n"
    packed = packed[:65_535]
    version = rng.choice((b"\x01\x00",) * 6 + (b"\x02\x00", b"\x03\x00", b"\x09\x00"))
    return content[:6] + version + struct.pack("<H", len(packed)) + packed + content[10 + length :]


def _npy_pickle(_content: bytes, _rng: Random) -> bytes:
    """Write an array of objects, which only a pickle can hold."""
    import numpy as np

    out = io.BytesIO()
    np.save(out, np.array([{"a": 1}, None], dtype=object), allow_pickle=True)
    return out.getvalue()


def _parquet_table(content: bytes, rng: Random) -> bytes:
    """Change one column of a sound table: its type, its values, its name, or that it is there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(io.BytesIO(content))
        names, n = table.column_names, table.num_rows
    except Exception:  # noqa: BLE001 - damaged already
        return _flip(content, rng)
    if not names or not n:
        return _flip(content, rng)
    at = rng.randrange(len(names))
    name = names[at]
    what = rng.randrange(5)
    if what == 0:
        table = table.remove_column(at)
    elif what == 1:
        table = table.append_column(name, table.column(at))
    elif what == 2:
        table = table.rename_columns(
            [rng.choice(("", "x", "\x00", "text", "_id")) if i == at else c
             for i, c in enumerate(names)]
        )  # fmt: skip
    else:
        kinds = (
            pa.array([None] * n), pa.array([rng.choice((0, -1, 2**62))] * n),
            pa.array([rng.choice((0.5, float("nan"), float("inf")))] * n),
            pa.array([b"\xff\xfe"] * n), pa.array([["a", None]] * n), pa.array([{"a": 1}] * n),
            pa.array(["x"] * n), pa.array([""] * n), pa.array([None] * (n - 1) + ["x"]),
            pa.array([2**40] * n, pa.timestamp("ns")), pa.array([True] * n),
            pa.array(["9" * 5_000] * n), pa.array([["9"] * 2] * n), pa.array([[]] * n),
        )  # fmt: skip
        table = table.set_column(at, name, rng.choice(kinds))
    if rng.random() < 0.1:
        table = table.slice(0, 0)
    out = io.BytesIO()
    try:
        pq.write_table(table, out, row_group_size=rng.choice((1, 7, 1_000)))
    except Exception:  # noqa: BLE001 - such as a table without columns
        return _flip(content, rng)
    return out.getvalue()


def _parquet_footer(content: bytes, rng: Random) -> bytes:
    """Change bytes of the footer, which says where everything lies and how big it is."""
    if len(content) < 12:
        return _flip(content, rng)
    (length,) = struct.unpack("<I", content[-8:-4])
    start = max(0, len(content) - 8 - length)
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        data[rng.randrange(start, len(data) - 4)] = rng.choice(
            (0, 1, 0x7F, 0xFF, rng.randrange(256))
        )
    return bytes(data)


def _parquet_data(content: bytes, rng: Random) -> bytes:
    """Change bytes of the pages and their headers, not of the footer."""
    if len(content) < 12:
        return _flip(content, rng)
    (length,) = struct.unpack("<I", content[-8:-4])
    end = max(5, len(content) - 8 - length)
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 16))):
        data[rng.randrange(4, min(end, len(data)))] = rng.randrange(256)
    return bytes(data)


def _sqlite_cell(content: bytes, rng: Random) -> bytes:
    """Change cells, rows or tables of a sound database."""
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.deserialize(content)
            database.execute("PRAGMA writable_schema = ON")
            known = "SELECT name FROM sqlite_schema WHERE type = 'table'"
            tables = [n for (n,) in database.execute(known) if not n.startswith("sqlite")]
            table = rng.choice(tables)
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            column = rng.choice(columns)
            what = rng.randrange(8)
            if what == 0:
                database.execute(f"DELETE FROM {table}")
            elif what == 1:
                database.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
            elif what == 2:
                database.execute(f"DROP TABLE {table}")
            else:
                some = f"WHERE {column} IN (SELECT {column} FROM {table} ORDER BY random() LIMIT 1)"
                database.execute(
                    f"UPDATE OR REPLACE {table} SET {column} = ? {some if what < 6 else ''}",
                    (rng.choice(_CELLS),),
                )
            database.commit()
            return database.serialize()
        except (sqlite3.Error, IndexError, OverflowError, MemoryError):
            return _flip(content, rng)


_OF_FORM: dict[str, tuple[Damage, ...]] = {
    "json": (_json,) * 8,
    "jsonl": (_json_line,) * 6 + (_line,) * 2,
    "lines": (_line,) * 6,
    "yaml": (_line,) * 3 + (_insert,) * 3,
    "gz": (_gzip_inside,) * 8 + (_gzip_bomb, _gzip_more),
    "zip": (_zip_inside,) * 6 + (_zip_sizes,) * 4,
    "npy": (_npy,) * 8 + (_npy_pickle,),
    "parquet": (_parquet_table,) * 5 + (_parquet_footer,) * 3 + (_parquet_data,) * 3,
    "sqlite": (_sqlite_cell,) * 10,
}

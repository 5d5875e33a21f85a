from __future__ import annotations

import gzip

import pytest

from rag_sourcebias.core.data import DocTags
from rag_sourcebias.core.errors import DataError
from rag_sourcebias.intake.documents import read_tags


def rows(table):
    return {doc_id: table.get(doc_id) for doc_id in table.doc_ids}


EXPECTED = {
    "d1": DocTags(source="human", style="news", origin="declared"),
    "dé 2": DocTags(source="llm:x", pair_id="p, 1", origin="declared"),
    "d3": DocTags(),
}


@pytest.mark.parametrize(
    "text",
    [
        "doc_id\tsource\tstyle\tpair_id\nd1\thuman\tnews\t\n\ndé 2\tllm:x\t-\tp, 1\nd3\t\t\t\n",
        "\ufeffstyle\tsource\tdoc_id\tnote\tpair_id\r\nnews\thuman\td1\tx\t-\r\n"
        "\tllm:x\tdé 2\ty\tp, 1\r\n-\tnull\td3\tz\tNULL\r\n",
        'doc_id,source,style,pair_id\nd1, human ,news,\n"dé 2",llm:x,,"p, 1"\nd3,-,-,-\n',
        '{"doc_id": "d1", "source": "human", "style": "news"}\n'
        '{"doc_id": "dé 2", "source": "llm:x", "pair_id": "p, 1", "extra": [1]}\n'
        '{"doc_id": "d3", "source": null}\n',
    ],
    ids=["tsv", "tsv-crlf-bom-order", "csv", "jsonl"],
)
@pytest.mark.parametrize("packed", [False, True])
def test_all_forms_say_the_same(tmp_path, text, packed):
    file = tmp_path / ("tags.gz" if packed else "tags")
    file.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    table = read_tags(file)
    assert table.doc_ids == ("d1", "dé 2", "d3")
    assert rows(table) == EXPECTED
    assert table.counts() == {"human": 1, "llm:x": 1, "": 1}


def test_origin_and_confidence(tmp_path):
    file = tmp_path / "tags.tsv"
    file.write_text("doc_id\tsource\torigin\tconfidence\na\thuman\tdetected\t0.75\nb\tllm:x\t\t-\n")
    assert rows(read_tags(file)) == {
        "a": DocTags(source="human", origin="detected", confidence=0.75),
        "b": DocTags(source="llm:x"),
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "tags is empty"),
        ("doc_id\tsource\n", "holds a header but no rows"),
        ("name\tlabel\na\thuman\n", r"recognised as doc_id or source; its columns are name, label"),
        ("doc_id,style\na,news\n", r"tags: no column is recognised as source"),
        ("doc_id\tsource\na\n", r"tags:2: expected 2 columns .*, found 1"),
        ("doc_id\tsource\na\thuman\nb\thuman\na\thuman\n", r"tags:4: .*'a' .*stands at .*tags:2"),
        ("doc_id\tsource\n\thuman\n", r"tags:2: .*'' .* must be a non-empty"),
        ("doc_id,source,origin\na,human,guess\n", r"tags:2: origin 'guess' is not one of declared"),
        (
            "doc_id,source,confidence\na,human,2\n",
            r"tags:2: confidence '2' is no number in \[0",
        ),
        ("doc_id,source,confidence\na,human,nan\n", r"tags:2: confidence 'nan' is no number"),
        ("doc_id,source,confidence\na,human,hi\n", r"tags:2: confidence 'hi' is no number"),
        ('doc_id,source\n"a,human\n', r"tags:2: not a CSV record"),
        ('{"doc_id": "a"}\n', r"tags: no column is recognised as source"),
        ('{"source": "human"}\n', r"tags: no column is recognised as doc_id"),
        ('{"doc_id": [3], "source": "human"}\n', r"tags:1: id \[3\] .* must be a non-empty name"),
        ('{"doc_id": "a", "source": [1]}\n', r"tags:1: source \[1\] must be a name"),
        ('{"doc_id": "a", "source": true}\n', r"tags:1: source True must be a name"),
        (
            '{"doc_id": "a", "source": "x", "confidence": true}\n',
            r"tags:1: confidence True must",
        ),
        (
            f'{{"doc_id": "a", "source": "x", "confidence": 1{"0" * 400}}}\n',
            r"tags:1: confidence 10{199} is no number",
        ),
        ('{"doc_id": "a", "source": "x"}\nnot json\n', r"tags:2: malformed JSON"),
    ],
)
def test_bad_tags_are_named(tmp_path, text, message):
    file = tmp_path / "tags"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        read_tags(file)

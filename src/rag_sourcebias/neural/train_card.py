"""The model card of a debiased model."""

from __future__ import annotations

from collections.abc import Mapping

from rag_sourcebias.types.debias_training import TrainingHistory, TrainingPoint

__all__ = ["model_card"]

_HEAD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags:
- sentence-transformers
- sentence-similarity
- feature-extraction
- source-bias
---

# {name}

{model}, trained to score a document written by a person and its rewrite by a language model alike
(loss: ranking loss + {weight:g} × hinge on twins, [Dai et al., KDD
2024](https://arxiv.org/abs/2310.20501)).

## Use

It is loaded as any model of sentence-transformers, by the path of this folder:

```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/{name}")
queries = model.encode_query(["a question"])
documents = model.encode_document(["a document"])
scores = model.similarity(queries, documents)
```

Vectors of the model it was trained from do not mix with its vectors: embed an index anew.

"""


def model_card(history: TrainingHistory, *, model: str, data: str, judged: str, cutoff: int) -> str:
    """Return the text of a README.

    Parameters
    ----------
    model : str
        Trained from.
    data, judged : str
        Names of the data sets; ``judged`` is empty where nothing was judged.
    cutoff : int
        Of the judged NDCG.
    """
    parts = [
        _HEAD.format(name=history.name, model=model, weight=history.debias_weight),
        "## Skew before and after\n\n",
        _skew(history, judged=judged, cutoff=cutoff),
        "\n## Training\n\n",
        f"{history.n_pairs} triples (query, human document, LLM document) of {data}, "
        f"{history.n_steps} steps.\n\n",
        _table(("setting", "value"), history.settings),
    ]
    return "".join(parts)


def _skew(history: TrainingHistory, *, judged: str, cutoff: int) -> str:
    if not judged or not history.points:
        return (
            "Not measured in training. Measure it on data of your own before this model is used: "
            "over-correction comes early, and what was learnt on one data set may not hold on "
            "another.\n"
        )
    rows = [
        f"| {when} | {_number(point.relative_delta)} | {_percent(point.baseline)} | "
        f"{_percent(point.other)} |\n"
        for when, point in _ends(history)
    ]
    return (
        f"On {judged}, mixed corpus, NDCG@{cutoff} × 100 (single values of one training, without "
        "intervals; Relative Δ is positive when human documents rank higher):\n\n"
        "| | Relative Δ | human | LLM |\n| --- | --- | --- | --- |\n" + "".join(rows)
    )


def _ends(history: TrainingHistory) -> list[tuple[str, TrainingPoint]]:
    first, last = history.points[0], history.points[-1]
    return [("before", first), (f"after {last.step} steps", last)]


def _table(head: tuple[str, str], rows: Mapping[str, str]) -> str:
    lines = [f"| {head[0]} | {head[1]} |\n| --- | --- |\n"]
    lines += [f"| {_cell(name)} | {_cell(value)} |\n" for name, value in rows.items()]
    return "".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:+.1f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"

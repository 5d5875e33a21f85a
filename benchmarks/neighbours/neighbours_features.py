"""Who offers what: Y yes, p in part, · not found in the releases named on the page."""

from __future__ import annotations

COLUMNS = ("this library", "ir_measures, pytrec_eval", "ppi_py", "MAPIE", "ragas")

FEATURES = (
    ("NDCG, MAP, MRR, P, Recall per query", "Y Y · · ·"),
    ("RBP, ERR, bpref, infAP, α-nDCG, intent-aware and more measures", "· Y · · ·"),
    ("scores per source of one mixed ranking, Relative Δ", "Y p · · ·"),
    ("tied documents: scores that do not depend on ids", "Y · · · ·"),
    ("interval and test for a difference of sources, adjusted for many tests", "Y · · · ·"),
    ("prediction-powered interval for a mean", "Y · Y · ·"),
    ("… for quantiles, linear, logistic and Poisson regression", "· · Y · ·"),
    ("… for NDCG, MAP and Relative Δ of a ranking", "Y · · · ·"),
    ("… with clusters, and for this pool of items rather than a population", "Y · · · ·"),
    ("how many labels to buy", "Y · Y · ·"),
    ("an interval for every query, from a judge's label distributions", "Y · · p ·"),
    ("conformal prediction for regression, classification, time series", "· · · Y ·"),
    ("control of other risks: LTT, RCPS, precision and recall", "· · · Y ·"),
    ("similarity of an answer with a reference", "Y · · · Y"),
    ("… audited for style, and adjusted", "Y · · · ·"),
    ("faithfulness, context precision and recall, agents, test set generation", "· · · · Y"),
    ("grading by an LLM, held against people", "Y · · · p"),
    ("retrievals of LangChain, LlamaIndex and Chroma observed in production", "Y · · · ·"),
    ("debiased encoders and scores", "Y · · · ·"),
)

"""Folds that keep groups whole and labels balanced."""

from __future__ import annotations

import numpy as np

from rag_sourcebias.errors import InsufficientDataError
from rag_sourcebias.types.arrays import IntArray

__all__ = ["group_folds"]


def group_folds(
    codes: IntArray, groups: IntArray, *, n_folds: int, rng: np.random.Generator
) -> IntArray:
    """Assign every document to a fold.

    Groups are taken in random order, large ones first, each into the fold where the labels
    then stay most even.

    Parameters
    ----------
    codes, groups : int64 arrays of shape (n,)
        Label and group of each document.

    Returns
    -------
    int64 array of shape (n,)
        0 … n_folds − 1; documents of a group share it.

    Raises
    ------
    InsufficientDataError
        If a label occurs in one fold only, so that nothing could be learned about it elsewhere.
    """
    n_labels = int(codes.max()) + 1
    table = np.zeros((int(groups.max()) + 1, n_labels))
    np.add.at(table, (groups, codes), 1.0)
    weights = table / table.sum(axis=0)
    order = rng.permutation(len(table))
    order = order[np.argsort(-table[order].sum(axis=1), kind="stable")]
    filled = np.zeros((n_folds, n_labels))
    fold_of = np.zeros(len(table), dtype=np.int64)
    for group in order:
        # growth of the sum of squares: least where these labels are rarest
        cost = ((2 * filled + weights[group]) * weights[group]).sum(axis=1)
        fold_of[group] = np.argmin(cost)
        filled[fold_of[group]] += weights[group]
    if (filled > 1 - 1e-9).any():
        raise InsufficientDataError(
            "all documents of one label fall into one fold, because groups are too few or too "
            "unequal; give smaller groups or more documents",
            n=len(table),
        )
    return fold_of[groups]

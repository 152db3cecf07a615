"""Asking for what is not there, or cannot be."""

from __future__ import annotations

from tests.data.loose import open_data
from tests.data.malformed.case import FEATURES, LABELS, case, npz, several


@several(
    "DataError",
    {
        "nothing that exists": (("nowhere.csv",), "nowhere.csv is neither a file or folder nor a benchmark", "digits"),
        "a benchmark misspelt": (("cifar-10",), "nor a benchmark", "cifar10"),
    },
)
def asking_for(folder, arguments):
    return lambda: open_data(*arguments)


@case("NotThereError", "cifar100 is not under", "cifar-100-python.tar.gz", "cadr data get cifar100", "CADR_DATA")
def asking_for_a_benchmark_that_is_not_there(folder):
    return lambda: open_data("cifar100", root=folder)


@case("DataError", "data.docx", "expected a folder, or a file that ends in")
def asking_for_a_file_of_another_kind(folder):
    (folder / "data.docx").write_bytes(b"PK")
    return folder / "data.docx"


@case("DataError", "holds its own labels")
def asking_for_labels_of_labelled_data(folder):
    path = npz(folder, x=FEATURES, y=LABELS)
    return lambda: open_data(path, labels="labels.csv")

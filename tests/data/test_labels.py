"""Labels as people write them: what reads alike is one class, and what is in doubt is asked about."""

import unicodedata

import numpy as np
import pytest

from cadr.data.sources.labels import LabelError, class_order, index_labels
from tests.data.loose import from_arrays, open_data
from tests.data.writers import write_image


def write(folder, labels, name="t.csv"):
    rows = "".join(f'{(7 * i) % 5},"{label}"\n' for i, label in enumerate(labels))
    (folder / name).write_text("a,label\n" + rows, encoding="utf-8")
    return folder / name


def test_whole_numbers_are_one_class_with_or_without_a_decimal(tmp_path):
    pool = open_data(write(tmp_path, ["1.0", "1", "0.0", "", "10.0", "2.00"]))
    assert pool.class_names == ("0", "1", "2", "10")
    assert pool.labels.tolist() == [1, 1, 0, -1, 3, 2]
    pandas = pytest.importorskip("pandas")
    gaps = pandas.DataFrame({"a": [1.0, 5.0, 2.0], "label": [0, None, 1]})
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    assert "0.0" in (tmp_path / "gaps.csv").read_text()
    assert open_data(tmp_path / "gaps.csv").class_names == ("0", "1")


def test_new_data_may_write_the_numbers_otherwise():
    assert index_labels("new", ["1.0", "0", "1"], ("0", "1")).tolist() == [1, 0, 1]
    assert index_labels("new", ["1.0", "2", "1"], ("1.0", "2")).tolist() == [0, 1, 0]  # names given as they are
    assert index_labels("new", ["1.0", "1"], ("1", "1.0")).tolist() == [1, 0]


def test_numbers_that_are_not_whole_stay_as_they_are():
    assert class_order("t", ["1.5", "v1.0", "1.0.0", "01.0"]) == ("01.0", "1.0.0", "1.5", "v1.0")


def test_accents_are_one_class_however_they_are_composed(tmp_path):
    composed, decomposed = (unicodedata.normalize(form, "Häher") for form in ("NFC", "NFD"))
    assert composed != decomposed
    pool = open_data(write(tmp_path, [composed, decomposed, "Specht"]))
    assert pool.class_names == (composed, "Specht")
    assert pool.labels.tolist() == [0, 0, 1]


def test_space_around_a_label_is_none_of_it():
    pool = from_arrays(np.zeros((4, 2), np.float32), np.array(["wren ", "wren", " robin", " "]))
    assert pool.class_names == ("robin", "wren")
    assert pool.labels.tolist() == [1, 1, 0, -1]


@pytest.mark.parametrize("word", ["NA", "None", "#N/A", "?", "-", "NULL", "Unlabelled", "unlabeled"])
def test_words_for_a_missing_label_are_no_class(word, tmp_path):
    with pytest.raises(LabelError, match="looks like a missing one; leave it blank, or rename the class") as caught:
        open_data(write(tmp_path, ["a", word, "b"]))
    assert repr(word) in str(caught.value)


def test_words_that_may_be_a_class_are_one():
    assert class_order("t", ["unknown", "none", "scratch"]) == ("none", "scratch", "unknown")
    assert class_order("t", ["+", "-"]) == ("+", "-")


@pytest.mark.parametrize(
    ("labels", "beside"),
    [
        (["-1", "", "0", "1"], "rows without any label"),
        (["-1.0", "", "0.0", "1.0"], "rows without any label"),
        (["-1", "", "up", "down"], "rows without any label"),
        (["-2", "-1", "0", "1", "2"], "the labels '-2', '0', '1', '2'"),
        (["-1", "1", "1"], "the labels '1'"),
    ],
)
def test_minus_one_in_doubt_is_asked_about(labels, beside, tmp_path):
    words = f"−1 may be a class or mean that the label is missing, for beside it there are {beside}; rename the class"
    with pytest.raises(LabelError, match=words):
        open_data(write(tmp_path, labels))


def test_minus_one_alone_is_a_missing_label(tmp_path):
    assert open_data(write(tmp_path, ["-1", "0", "-1", "1"])).labels.tolist() == [-1, 0, -1, 1]


@pytest.mark.parametrize(("one", "other"), [("Cat", "cat"), ("red  fox", "red fox"), ("Straße", "strasse")])
def test_classes_that_read_alike_are_refused(one, other, tmp_path):
    with pytest.raises(LabelError, match=f"the classes '{one}' and '{other}' read alike; write them alike, or rename"):
        open_data(write(tmp_path, ["dog", other, one]))


def test_folders_that_read_alike_are_refused(tmp_path):
    for name in ("Häher", unicodedata.normalize("NFD", "Häher"), "Specht"):
        write_image(tmp_path / name / "a.png", np.zeros((4, 4, 3), np.uint8))
    if len(list(tmp_path.iterdir())) < 3:
        pytest.skip("this file system takes the two names for one")
    with pytest.raises(LabelError, match="read alike"):
        open_data(tmp_path)


def test_letters_are_classes_of_their_own():
    assert class_order("t", ["b", "a", "A"]) == ("A", "a", "b")

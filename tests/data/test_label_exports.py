"""Labels from Label Studio and CVAT, in files as these write them, and forty that are damaged or of something else."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cadr.data import open_data
from cadr.data.sources.label_exports import AnnotationError, read_annotations
from cadr.data.sources.more_labels import checks
from cadr.errors import CadrError

NAMES = ["a.png", "été 1.png", 'q"uote.png', "sub/a.png", "sub/my photo (2).png", "z.png"]

EXPORTS = Path(__file__).parent / "exports"
# As these tools write them: annotators, times and drafts beside what counts; some tasks have been deleted in between.
STUDIO = (EXPORTS / "label-studio.json").read_text(encoding="utf-8")
CVAT = (EXPORTS / "cvat.xml").read_text(encoding="utf-8")
STUDIO_LABELS = {
    "a.png": 'chêne "royal"',
    "sub/my photo (2).png": "Buche",
    "été 1.png": "Esche",
    'q"uote.png': "Esche",
}
MINIMAL = json.dumps(
    [
        {"image": "/data/upload/1/00ff00ff-z.png", "id": 1, "label": "Esche", "annotator": 1, "annotation_id": 1,
         "created_at": "2026-03-09T22:16:08.728353Z", "updated_at": "2026-03-09T22:16:08.728378Z", "lead_time": 2.1},
        {"image": "photos/sub/a.png", "id": 3, "label": {"choices": ["Buche"]}, "annotator": 1, "annotation_id": 2},
        {"image": "a.png", "id": 4, "annotator": 1, "annotation_id": 3, "lead_time": 1.0},
    ]
)  # fmt: skip


@pytest.fixture
def photos(tmp_path):
    for name in NAMES:
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), len(name), dtype=np.uint8)).save(path)
    return tmp_path / "photos"


def labelled(pool):
    return {pool.identifiers[i]: pool.class_names[c] for i, c in enumerate(pool.labels) if c >= 0}


def export(folder, name, content):
    (folder / name).write_text(content, encoding="utf-8")
    return folder / name


def test_label_studio(photos, tmp_path):
    assert labelled(open_data(photos, labels=export(tmp_path, "export.json", STUDIO))) == STUDIO_LABELS


def test_its_minimal_json(photos, tmp_path):
    pool = open_data(photos, labels=export(tmp_path, "export.json", "\ufeff" + MINIMAL))
    assert labelled(pool) == {"z.png": "Esche", "sub/a.png": "Buche"}


def test_cvat_where_a_guess_that_nobody_confirmed_is_no_label(photos, tmp_path):
    pool = open_data(photos, labels=export(tmp_path, "annotations.xml", CVAT))
    assert labelled(pool) == {"a.png": 'chêne "royal"', "sub/a.png": "Buche"}


def test_a_folder_per_class_keeps_its_labels_and_gets_more(tmp_path):
    root = tmp_path / "trees"
    for i, folder in enumerate(["ash", "ash", "beech", "unlabelled", "unlabelled", "test/ash", "test/beech"]):
        (root / folder).mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), i, dtype=np.uint8)).save(root / folder / f"{i}.png")
    tasks = [{"data": {"file": f"unlabelled/{i}.png"}, "annotations": [_choice(label)]} for i, label in [(3, "acer")]]
    pool = open_data(root, labels=export(tmp_path, "export.json", json.dumps(tasks)))
    assert pool.class_names == ("acer", "ash", "beech")  # a new one that comes first
    assert labelled(pool) == {
        "ash/0.png": "ash",
        "ash/1.png": "ash",
        "beech/2.png": "beech",
        "unlabelled/3.png": "acer",
    }
    assert pool.test_labels is not None
    assert [pool.class_names[c] for c in pool.test_labels] == ["ash", "beech"]


def _choice(*labels, **more):
    return {"result": [{"type": "choices", "value": {"choices": list(labels)}}], **more}


def _table(folder, order=range(6)):
    lines = ["id,size,label", *(f"t{i},{i * i},{['ash', 'beech'][i % 2] if i < 3 else ''}" for i in order)]
    return export(folder, "trees.csv", "\n".join(lines) + "\n")


def _open(table, **options):
    return open_data(table, ignore_columns=("id",), **options)


def test_rows_of_a_table_get_labels_from_a_csv_and_from_tasks(tmp_path):
    table = _table(tmp_path)
    digest = checks(table, _open(table), "label")([3, 4])
    beside = export(tmp_path, "more.csv", f"row,check,label\n3,{digest[3]},ash\n4,{digest[4]},oak\n5,,\n")
    expected = {"t0": "ash", "t1": "beech", "t2": "ash", "t3": "ash", "t4": "oak"}
    assert labelled(_open(table, labels=beside)) == expected
    data = [{"row": 3, "check": digest[3]}, {"row": 4, "check": digest[4]}, {"row": 5}]
    tasks = [{"data": d, "annotations": a} for d, a in zip(data, [[_choice("ash")], [_choice("oak")], []], strict=True)]
    assert labelled(_open(table, labels=export(tmp_path, "more.json", json.dumps(tasks)))) == expected


def test_parquet_and_arrays_do_too(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    x = np.arange(12.0).reshape(6, 2)[::-1] ** 2
    columns = {"a": x[:, 0], "b": x[:, 1], "label": ["ash", "beech", None, None, None, None]}
    parquet.write_table(pa.table(columns), tmp_path / "trees.parquet")
    np.savez(tmp_path / "trees.npz", x=x, y=np.array(["ash", "beech", "", "", "", ""]))
    np.save(tmp_path / "trees.npy", x)
    for name in ("trees.parquet", "trees.npz"):
        pool = open_data(tmp_path / name)
        digest = checks(tmp_path / name, pool, "label")([2, 5])
        beside = export(tmp_path, "more.csv", f"check,label,row\n{digest[2]},beech,2\n{digest[5]},ash,5\n")
        assert open_data(tmp_path / name, labels=beside).labels.tolist() == [0, 1, 1, -1, -1, 0]
    tasks = [{"data": {"row": i}, "annotations": [_choice(label)]} for i, label in [(2, "beech"), (5, "ash")]]
    beside = export(tmp_path, "more.json", json.dumps(tasks))
    assert open_data(tmp_path / "trees.npy", labels=beside).labels.tolist() == [-1, -1, 1, -1, -1, 0]


def test_a_table_that_was_sorted_since_is_refused(tmp_path):
    table = _table(tmp_path)
    digest = checks(table, _open(table), "label")([3])[3]
    beside = export(tmp_path, "more.csv", f"row,check,label\n3,{digest},ash\n")
    _table(tmp_path, order=reversed(range(6)))
    with pytest.raises(CadrError, match="is not the one that was labelled; put its rows back into the order"):
        _open(table, labels=beside)


def test_what_contradicts_the_table_is_refused(tmp_path):
    beside = export(tmp_path, "more.csv", "row,label\n1,ash\n")
    with pytest.raises(CadrError, match="line 2: row 1 is labelled 'ash', and 'beech' in the data"):
        _open(_table(tmp_path), labels=beside)


def _tasks(*tasks):
    return json.dumps(list(tasks))


def _task(*annotations, **data):
    return {"id": 7, "data": data or {"file": "a.png"}, "annotations": list(annotations)}


def _xml(inside):
    return f'<?xml version="1.0" encoding="utf-8"?><annotations><version>1.1</version>{inside}</annotations>'


def _image(inside, name="a.png"):
    return _xml(f'<image id="0" name="{name}" width="8" height="8">{inside}</image>')


MALFORMED = {
    # Label Studio
    "an empty file": ("json", "", "is no JSON"),
    "half a file": ("json", STUDIO[:400], "is no JSON"),
    "not JSON": ("json", "image,label\na.png,ash\n", "is no JSON"),
    "nested without end": ("json", "[" * 100_000, "is no JSON"),
    "a number of too many digits": ("json", "[" + "1" * 5000 + "]", "is no JSON"),
    "not UTF-8": ("json", b'[{"data": {"file": "\xe9.png"}}]', "is not UTF-8 (byte 0xe9)"),
    "one task": ("json", json.dumps(_task(_choice("ash"))), "expected a list of tasks"),
    "null": ("json", "null", "got null"),
    "a list of words": ("json", '["a.png"]', "task 0: expected a task, got a word"),
    "no task": ("json", "[]", "holds no label that a person gave"),
    "no annotation": ("json", _tasks(_task(), _task()), "holds no label"),
    "all skipped": ("json", _tasks(_task(_choice("ash", was_cancelled=True))), "holds no label"),
    "the tasks that were imported": ("json", _tasks({"data": {"file": "a.png"}, "predictions": []}), "no annotations"),
    "COCO": ("json", json.dumps({"images": [], "annotations": [], "categories": []}), "got an object"),
    "neither data nor label": ("json", _tasks({"foo": "bar"}), "neither data nor a label"),
    "data that are a list": ("json", _tasks({"data": [], "annotations": []}), "data should be an object"),
    "annotations that are an object": ("json", _tasks({"data": {}, "annotations": {}}), "a list, got an object"),
    "an annotation that is a word": ("json", _tasks(_task("ash")), "an object with a list of results"),
    "results that are null": ("json", _tasks(_task({"result": None})), "an object with a list of results"),
    "a result that is a number": ("json", _tasks(_task({"result": [1]})), "an object with a value"),
    "choices that are a number": ("json", _tasks(_task({"result": [{"type": "choices", "value": {"choices": 3}}]})),
                                  "choices should be a list of words, got a number"),
    "choices of numbers": ("json", _tasks(_task(_choice(3))), "choices should be a list of words"),
    "two choices": ("json", _tasks(_task(_choice("ash", "beech"))), "is labelled 'ash' and 'beech'"),
    "two people of two minds": ("json", _tasks(_task(_choice("ash"), _choice("beech"))), "labelled 'ash' and"),
    "two tasks of two minds": ("json", _tasks(_task(_choice("ash")), _task(_choice("beech"))), "and 'ash' before"),
    "boxes": ("json", _tasks(_task({"result": [{"type": "rectanglelabels", "value": {"rectanglelabels": ["ash"]}}]})),
              "expected one of several choices as the label, got 'rectanglelabels'"),
    "no file": ("json", _tasks(_task(_choice("ash"), text="hello")), "names no file (keys 'text')"),
    "a file that is not there": ("json", _tasks(_task(_choice("ash"), file="b.png")), "1 of the 1 files"),
    "a file outside": ("json", _tasks(_task(_choice("ash"), file="../photos/a.png")), "'../photos/a.png'"),
    "an address of nothing": ("json", _tasks(_task(_choice("ash"), image="/data/local-files/?p=3")), "names no file"),
    "an address that is none": ("json", _tasks(_task(_choice("ash"), image="http://[/a.png")), "is no address"),
    "an upload of two files": ("json", _tasks(_task(_choice("ash"), image="/data/upload/1/00ff00ff-a.png")), "may be"),
    "a row of a table": ("json", _tasks(_task(_choice("ash"), row=3)), "is of row 3 of a table"),
    "a row that is a word": ("json", _tasks(_task(_choice("ash"), row="3")), "row should be a number from 0"),
    "a file that is no image": ("json", _tasks(_task(_choice("ash"), file="notes.txt")), "is not an image"),
    # CVAT
    "an empty XML file": ("xml", "", "is no XML that can be read"),
    "half an XML file": ("xml", CVAT[:900], "is no XML that can be read"),
    "JSON called XML": ("xml", STUDIO, "is no XML that can be read"),
    "an encoding that is none": ("xml", '<?xml version="1.0" encoding="klingon"?><annotations/>', "annotations.xml is"),
    "a bomb": ("xml", '<!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;">]><annotations>&c;</annotations>',
               "declares a document type"),
    "a file from elsewhere": ("xml", '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>', "a document"),
    "Pascal VOC": ("xml", "<annotation><filename>a.png</filename></annotation>", "expected <annotations>"),
    "a video": ("xml", _xml('<track id="0" label="ash"></track>'), "is of a video"),
    "no image": ("xml", _xml(""), "holds no label"),
    "no tag": ("xml", _image(""), "holds no label"),
    "guesses alone": ("xml", _image('<tag label="ash" source="auto"/>'), "holds no label that a person gave"),
    "an image without a name": ("xml", _xml('<image id="0"><tag label="ash"/></image>'), "image 0 has no name"),
    "a tag without a label": ("xml", _image('<tag source="manual"/>'), "a tag has no label"),
    "two tags": ("xml", _image('<tag label="ash"/><tag label="beech"/>'), "is labelled 'ash' and 'beech'"),
    "a box": ("xml", _image('<box label="ash" xtl="1" ytl="1" xbr="2" ybr="2"/>'), "holds a box; expected one tag"),
    "an image that is not there": ("xml", _image('<tag label="ash"/>', "b.png"), "1 of the 1 files"),
    "an image outside": ("xml", _image('<tag label="ash"/>', "../a.png"), "1 of the 1 files"),
}  # fmt: skip


def test_there_are_forty():
    assert len(MALFORMED) >= 40


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed(name, photos, tmp_path):
    kind, content, words = MALFORMED[name]
    (photos / "notes.txt").touch()
    path = tmp_path / ("annotations.xml" if kind == "xml" else "export.json")
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(CadrError) as caught:
        open_data(photos, labels=path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_the_largest_is_refused_unread(tmp_path, monkeypatch):
    from cadr.data.sources import label_exports

    monkeypatch.setattr(label_exports, "LARGEST", 10)
    with pytest.raises(AnnotationError, match="is larger than"):
        read_annotations(export(tmp_path, "export.json", STUDIO))

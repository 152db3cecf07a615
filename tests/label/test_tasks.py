"""Tasks for Label Studio and CVAT, and what comes back from there: nothing is lost, and no guess becomes a label."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from cadr.cli.main import main
from cadr.data import open_data
from cadr.label.opened import open_run
from tests.label.runs import copied
from tests.report.own_runs import NAMES, TINY, image_run, read_csv, write_csv, write_images


@pytest.fixture
def run(squares, tmp_path):
    return copied(squares, tmp_path)


def export(run, to, out, *flags):
    assert main(["export-tasks", str(run), "--to", to, "--out", str(out), "--device", "cpu", *flags]) == 0
    return out


def tasks_of(path):
    return json.loads(path.read_text(encoding="utf-8"))


def annotated(tasks, label):
    """As Label Studio exports them: the task, with what somebody chose."""
    done = []
    for number, task in enumerate(tasks):
        value = {"choices": [label(task["data"])]}
        result = {"id": f"r{number}", "from_name": "label", "to_name": "example", "type": "choices", "value": value}
        annotation = {"id": number, "result": [result], "was_cancelled": False, "ground_truth": False}
        done.append({"id": 10 + number, **task, "annotations": [annotation], "drafts": [], "meta": {}})
    return done


def probabilities_of(opened, name):
    row = (opened.pool.identifiers or ()).index(name)
    return opened.probabilities[opened.rows.tolist().index(row)]


def only(element, tag):
    (found,) = element.findall(tag)
    return found


def labelled(pool):
    return {pool.identifiers[i]: pool.class_names[c] for i, c in enumerate(pool.labels) if c >= 0}


def test_label_studio_and_back(run, tmp_path):
    out = export(run, "label-studio", tmp_path / "tasks.json", "--most", "20")
    opened, tasks = open_run(run, device="cpu"), tasks_of(out)
    assert len(tasks) == 20
    for task in tasks:
        p = probabilities_of(opened, task["data"]["file"])
        (prediction,) = task["predictions"]
        assert prediction["model_version"] == "cadr run"
        assert prediction["score"] == pytest.approx(p.max())
        (result,) = prediction["result"]
        assert result["value"] == {"choices": [opened.class_names[p.argmax()]]}
        assert task["data"]["image"] == f"/data/local-files/?d=squares/{task['data']['file']}"
    view = ElementTree.parse(tmp_path / "tasks.config.xml").getroot()
    choices = only(view, "Choices")
    assert [choice.get("value") for choice in choices] == ["dark", "light"]
    assert (choices.get("name"), choices.get("toName")) == (result["from_name"], result["to_name"])
    assert only(view, "Image").attrib == {"name": result["to_name"], "value": "$image"}

    back = tmp_path / "export.json"
    done = annotated(tasks[:18], lambda data: "light" if int(data["file"][:3]) % 2 else "dark")  # two were deleted
    back.write_text(json.dumps(done), encoding="utf-8")
    files = sorted(task["data"]["file"] for task in tasks[:18])
    found = labelled(open_data(tmp_path / "squares", labels=back))
    assert found == {name: "light" if int(name[:3]) % 2 else "dark" for name in files}
    assert main(["train", str(tmp_path / "squares"), "--labels", str(back), *TINY, "--out", str(tmp_path / "new")]) == 0


def test_the_tasks_themselves_are_no_labels(run, tmp_path, capsys):
    out = export(run, "label-studio", tmp_path / "tasks.json")
    assert main(["diagnose", str(tmp_path / "squares"), "--labels", str(out)]) == 2
    assert "has no annotations: export as JSON, not the tasks that were imported" in capsys.readouterr().err


def test_addresses_of_somebodys_own(run, tmp_path):
    out = export(run, "label-studio", tmp_path / "tasks.json", "--images", "https://host/é/")
    assert all(t["data"]["image"] == f"https://host/é/{t['data']['file']}" for t in tasks_of(out))


def test_names_with_all_that_names_may_have(tmp_path):
    root = tmp_path / "ph otos"
    write_images(root, 12)
    names = [f"{i:03}.png" for i in range(12)]
    odd = {"010.png": "é & <b>'\"#?%41.png", "011.png": "ümlaut 2.png"}
    for old, new in odd.items():
        (root / old).rename(root / new)
    classes = ['dark <&> "a", b', "hell & grün"]
    rows = [[name, classes[i % 2]] for i, name in enumerate(names[:8])]
    labels = write_csv(tmp_path / "labels.csv", ["file", "label"], rows)
    run = tmp_path / "run"
    assert main(["train", str(root), "--labels", str(labels), *TINY, "--out", str(run)]) == 0
    tasks = tasks_of(export(run, "label-studio", tmp_path / "tasks.json"))
    assert {t["data"]["file"] for t in tasks} == {"008.png", "009.png", *odd.values()}
    assert all(t["data"]["image"].isascii() and " " not in t["data"]["image"] for t in tasks)
    view = ElementTree.parse(tmp_path / "tasks.config.xml").getroot()
    assert [choice.get("value") for choice in view.iter("Choice")] == classes
    back = tmp_path / "export.json"
    for task in tasks:
        del task["data"]["file"]  # as if they had been made by somebody else: the address alone says which it is
    back.write_text(json.dumps(annotated(tasks, lambda data: classes["009" in data["image"]])), encoding="utf-8")
    assert labelled(open_data(root, labels=back)) == {
        "009.png": classes[1],
        **dict.fromkeys(["008.png", *odd.values()], classes[0]),
    }

    xml = export(run, "cvat", tmp_path / "tasks.xml")
    tree = ElementTree.parse(xml)
    assert {image.get("name") for image in tree.iter("image")} == {"008.png", "009.png", *odd.values()}
    for number, tag in enumerate(tree.iter("tag")):
        tag.attrib.update(source="manual", label=classes[number % 2])  # somebody has looked
    tree.write(tmp_path / "back.xml", encoding="utf-8", xml_declaration=True)
    expected = {image.get("name"): only(image, "tag").get("label") for image in tree.iter("image")}
    assert labelled(open_data(root, labels=tmp_path / "back.xml")) == expected


def test_cvat_and_back(run, tmp_path, capsys):
    out = export(run, "cvat", tmp_path / "tasks.xml", "--most", "6")
    root = ElementTree.parse(out).getroot()
    images = root.findall("image")
    assert [image.get("id") for image in images] == [str(i) for i in range(6)]
    names = [image.attrib["name"] for image in images]
    assert names == sorted(names)
    assert (tmp_path / "tasks.files.txt").read_text(encoding="utf-8").split() == names
    assert all((image.get("width"), image.get("height")) == ("8", "8") for image in images)
    spec = json.loads((tmp_path / "tasks.labels.json").read_text(encoding="utf-8"))
    assert [(label["name"], label["type"]) for label in spec] == [("dark", "tag"), ("light", "tag")]
    opened = open_run(run, device="cpu")
    for image in images:
        p = probabilities_of(opened, image.attrib["name"])
        (tag,) = image
        assert tag.get("label") == opened.class_names[p.argmax()]
        assert float(only(tag, "attribute").text or "") == pytest.approx(p.max(), abs=1e-4)
    assert main(["diagnose", str(tmp_path / "squares"), "--labels", str(out)]) == 2
    assert "holds no label that a person gave" in capsys.readouterr().err


def test_rows_of_a_table_and_back(trees, tmp_path):
    run = copied(trees, tmp_path)
    out = export(run, "label-studio", tmp_path / "tasks.json", "--most", "10")
    tasks, rows = tasks_of(out), read_csv(tmp_path / "trees.csv")
    for task in tasks:
        data = task["data"]
        assert data["table"] == {name: cell for name, cell in rows[data["row"]].items() if name != "label"}
        assert data["name"] == f"tree-{data['row']}"
    view = ElementTree.parse(tmp_path / "tasks.config.xml").getroot()
    assert only(view, "Table").get("value") == "$table"
    back = tmp_path / "export.json"
    back.write_text(json.dumps(annotated(tasks, lambda data: str(NAMES[1]))), encoding="utf-8")
    before = labelled(open_data(tmp_path / "trees.csv", ignore_columns=("id",)))
    found = labelled(open_data(tmp_path / "trees.csv", ignore_columns=("id",), labels=back))
    assert found == before | {task["data"]["name"]: NAMES[1] for task in tasks}


def test_pictures_of_an_array_are_in_the_task(tmp_path):
    image_run(tmp_path)  # for its pictures
    from cadr.data.sources.images import decode_all

    x = decode_all(sorted((tmp_path / "squares").iterdir()))
    y = np.where(np.arange(40) < 16, np.arange(40) % 2, -1)
    np.savez(tmp_path / "squares.npz", x=x, y=y)
    assert main(["train", str(tmp_path / "squares.npz"), *TINY, "--out", str(tmp_path / "array")]) == 0
    tasks = tasks_of(export(tmp_path / "array", "label-studio", tmp_path / "tasks.json", "--most", "3"))
    assert all(task["data"]["image"].startswith("data:image/png;base64,iVBOR") for task in tasks)
    back = tmp_path / "export.json"
    back.write_text(json.dumps(annotated(tasks, lambda data: "1")), encoding="utf-8")
    pool = open_data(tmp_path / "squares.npz", labels=back)
    assert all(pool.labels[task["data"]["row"]] == 1 for task in tasks)
    assert pool.num_labelled == 19


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--to", "prodigy", "--out", "tasks.json"], "There is no format 'prodigy'; there are label-studio, cvat"),
        (["--to", "cvat", "--out", "tasks.xml", "--most", "0"], "most must be at least 1"),
        (["--to", "cvat", "--out", "trees.csv"], "CVAT takes files of pictures"),
        (["--to", "label-studio", "--out", "trees.csv"], "is what the run was trained on"),
        (["--to", "label-studio", "--out", "export.json"], "may hold labels that people gave"),
        (["--to", "label-studio", "--out", "folder"], "is there already"),
    ],
)
def test_what_cannot_be_exported_is_one_sentence(trees, tmp_path, monkeypatch, flags, sentence, capsys):
    run = copied(trees, tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "export.json").write_text("[]", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    before = sorted(p.name for p in tmp_path.iterdir())
    assert main(["export-tasks", str(run), *flags]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_labels_of_an_export_join_those_that_there_are(run, tmp_path, capsys):
    tasks = tasks_of(export(run, "label-studio", tmp_path / "tasks.json", "--most", "5"))
    back, given = tmp_path / "export.json", tmp_path / "labels.csv"
    before = given.read_bytes()
    done = annotated(tasks, lambda data: "dark")
    done.append(annotated([{"data": {"file": "000.png"}}], lambda data: "dark")[0])  # which is labelled so already
    back.write_text(json.dumps(done), encoding="utf-8")
    capsys.readouterr()
    assert main(["label", str(run), "--from", str(back)]) == 0
    assert f"5 labels of {back} added to {given}; 1 were there already." in capsys.readouterr().out
    assert given.read_bytes().startswith(before)
    assert [line["label"] for line in read_csv(given)[-5:]] == ["dark"] * 5
    after = given.read_bytes()
    assert main(["label", str(run), "--from", str(back)]) == 0  # again: nothing more
    assert given.read_bytes() == after
    done.append(annotated([{"data": {"file": "001.png"}}], lambda data: "dark")[0])
    done.append(annotated([{"data": {"file": "039.png"}}], lambda data: "light")[0])
    back.write_text(json.dumps(done), encoding="utf-8")
    assert main(["label", str(run), "--from", str(back)]) == 2
    assert "is labelled 'dark', and 'light' in the data; keep one" in capsys.readouterr().err
    assert given.read_bytes() == after


def test_labels_of_rows_join_those_beside_the_table(trees, tmp_path, capsys):
    run = copied(trees, tmp_path)
    tasks = tasks_of(export(run, "label-studio", tmp_path / "tasks.json", "--most", "4"))
    back = tmp_path / "export.json"
    back.write_text(json.dumps(annotated(tasks, lambda data: str(NAMES[2]))), encoding="utf-8")
    assert main(["label", str(run), "--from", str(back)]) == 0
    beside = read_csv(tmp_path / "trees.labels.csv")
    assert [int(line["row"]) for line in beside] == sorted(task["data"]["row"] for task in tasks)
    assert {line["check"] for line in beside} == {task["data"]["check"] for task in tasks}
    assert open_run(run, device="cpu").num_unlabelled == 41

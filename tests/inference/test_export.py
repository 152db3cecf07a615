"""Exported models say what the run says, without this package where that is promised."""

import csv
import json
import re
import shutil

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from cadr.cli.main import main, parser
from cadr.cli.run_flags import read_flat
from cadr.config import Config
from cadr.errors import CheckpointError, ConfigError
from cadr.inference import evaluate_run, export
from cadr.inference.export import export_run
from cadr.inference.predict import predict_file
from cadr.inference.predictor import Predictor
from cadr.training import train
from tests.report.own_runs import COLUMNS, NAMES, by_hand, image_run, table, write_csv, write_images
from tests.training import tiny


def expected(run, examples):
    return Predictor.load(run, device="cpu").probabilities(examples).numpy()


def test_weights_and_json_are_enough_to_predict(trees, tmp_path):
    pytest.importorskip("safetensors")
    from safetensors.numpy import load_file

    export_run(trees, tmp_path, ("safetensors",))
    weights, facts = load_file(tmp_path / "model.safetensors"), json.loads((tmp_path / "model.json").read_text())
    assert facts["classes"] == NAMES.tolist()
    assert facts["input"]["feature_names"] == ["p", "q", "r"]
    x, _ = table(20, seed=9)
    h = (x - np.array(facts["preprocessing"]["centre"])) / np.array(facts["preprocessing"]["scale"])
    for layer in sorted({int(name.split(".")[0]) for name in weights}):
        weight, bias = weights[f"{layer}.weight"], weights[f"{layer}.bias"]
        if weight.ndim == 2:
            h = h @ weight.T + bias
        else:
            h = (h - weights[f"{layer}.running_mean"]) / np.sqrt(weights[f"{layer}.running_var"] + 1e-5) * weight + bias
            h = np.where(h > 0, h, 0.1 * h)
    z = h / facts["output"]["temperature"] + np.array(facts["output"]["correction"])
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    np.testing.assert_allclose(p, expected(trees, x), atol=1e-5)
    assert facts["output"]["calibrated"] is Predictor.load(trees).calibration.changes
    modes = {(tmp_path / name).stat().st_mode for name in ("model.safetensors", "model.json")}
    assert len(modes) == 1  # whoever may read one may read both


@pytest.mark.parametrize("kind", ["trees", "squares"])
def test_torch_export(kind, tmp_path, request):
    run = request.getfixturevalue(kind)
    export_run(run, tmp_path, ("torch",))
    loaded = torch.export.load(tmp_path / "model.pt2").module()
    examples = table(33, seed=8)[0] if kind == "trees" else write_images(tmp_path / "new", 7)
    found = loaded(torch.from_numpy(examples)).detach().numpy()
    np.testing.assert_allclose(found, expected(run, examples), atol=1e-5)


@pytest.mark.parametrize("kind", ["trees", "squares"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_onnx_in_onnxruntime(kind, tmp_path, request):
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    run = request.getfixturevalue(kind)
    export_run(run, tmp_path, ("onnx",))
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"), providers=["CPUExecutionProvider"])
    examples = table(33, seed=8)[0] if kind == "trees" else write_images(tmp_path / "new", 7)
    (found,) = session.run(["probabilities"], {"examples": examples})
    np.testing.assert_allclose(found, expected(run, examples), atol=1e-5)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
def test_a_table_with_a_constant_column_and_an_immense_one(tmp_path):
    """What never changes is divided by 3.4e38; examples of that size, made up to compare with, were no numbers."""
    x, truth = table(60)
    immense = np.where(truth == 1, 1e38, -1e38)
    rows = [[*map(float, x[i]), 7, immense[i], NAMES[truth[i]] if i < 30 else ""] for i in range(60)]
    data = write_csv(tmp_path / "trees.csv", [*COLUMNS, "version", "immense", "label"], rows)
    flags = ["--steps", "20", "--batch", "8", "--ratio", "1", "--evaluations", "1", "--device", "cpu"]
    assert main(["train", str(data), *flags, "--out", str(tmp_path / "run")]) == 0
    with np.errstate(all="raise"):
        export_run(tmp_path / "run", tmp_path / "out", ("safetensors", "torch", "onnx"))
    exported = torch.export.load(tmp_path / "out" / "model.pt2").module()
    examples = np.column_stack([x, np.full(60, 7), immense]).astype(np.float32)
    for version in (7, 8, -1000):  # an unseen value of the constant column counts for nothing, there as here
        examples[:, 3] = version
        found = exported(torch.from_numpy(examples)).detach().numpy()
        np.testing.assert_allclose(found, expected(tmp_path / "run", examples), atol=1e-5)


def test_a_difference_is_not_kept(trees, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "TOLERANCE", -1.0)
    with pytest.raises(ConfigError, match="differs from the run"):
        export_run(trees, tmp_path, ("torch",))
    assert not (tmp_path / "model.pt2").exists()


def test_what_is_wrong_for_some_rows_or_no_number_is_a_difference(trees):
    predictor = Predictor.load(trees, device="cpu")

    def right(x):
        return predictor.probabilities(x).numpy()

    export._compare(predictor, right, "model.onnx")
    for wrong in (lambda x: right(x) + (len(x) > 1), lambda x: right(x) + (len(x) == 1), lambda x: right(x) * np.nan):
        with pytest.raises(ConfigError, match=r"model\.onnx differs from the run"):
            export._compare(predictor, wrong, "model.onnx")


def test_predictions_and_what_is_exported_are_calibrated_as_the_run_says(trees, tmp_path):
    run, x = tmp_path / "run", table(33, seed=8)[0]
    shutil.copytree(trees, run)
    fitted = json.loads((run / "calibration.json").read_text())
    changed = {"temperature": 2.0, "correction": [0.9, -0.6, -0.3]}
    (run / "calibration.json").write_text(json.dumps(fitted | changed))
    calibrated = by_hand(run, x)
    assert np.abs(calibrated - by_hand(trees, x)).max() > 0.05
    predictor = Predictor.load(run, device="cpu")
    packaged = export.Packaged(predictor)(torch.from_numpy(x))
    for found in (predictor.probabilities(x), predictor.precise(x), packaged):
        np.testing.assert_allclose(found.detach().numpy(), calibrated, atol=1e-5)


def test_the_json_beside_weights_says_the_calibration_that_the_run_has(trees, tmp_path):
    """With another temperature and another share of the correction than one, so that none passes for another."""
    pytest.importorskip("safetensors")
    run = tmp_path / "run"
    shutil.copytree(trees, run)
    changed = {"temperature": 1.7, "correction": [0.9, -0.6, -0.3], "prior_correction": 0.4}
    (run / "calibration.json").write_text(json.dumps(json.loads((run / "calibration.json").read_text()) | changed))
    export_run(run, tmp_path / "out", ("safetensors",))
    output = json.loads((tmp_path / "out" / "model.json").read_text())["output"]
    assert (output["temperature"], output["correction"]) == (1.7, [0.9, -0.6, -0.3])
    assert output["calibrated"]


@pytest.mark.parametrize(
    "counts",
    [{"rows": 10**400}, {"labels": [10**400, 1, 1]}, {"labels": [0, 0, 0]}, {"labels": [-1, 5, 5]}, {"rows": 0}],
)
def test_counts_that_cannot_be_are_one_sentence(counts, trees, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(trees, run)
    (run / "input.json").write_text(json.dumps(json.loads((run / "input.json").read_text()) | counts))
    with pytest.raises(CheckpointError, match=r"input.json contradicts itself"):
        export_run(run, tmp_path / "out", ("safetensors",))
    assert not (tmp_path / "out").exists()


def test_the_card_says_what_the_run_says(trees, capsys):
    assert main(["export", str(trees), "--formats", "safetensors"]) == 0
    assert "MODEL_CARD.md" in capsys.readouterr().out
    card = (trees / "export" / "MODEL_CARD.md").read_text()
    result = json.loads((trees / "result.json").read_text())
    calibration = json.loads((trees / "calibration.json").read_text())
    assert "90 rows, of which 45 have a label (50.0 %)" in card
    assert f"Accuracy {result['last']:.1f} %" in card
    assert f"It is evaluated on only {calibration['examples']} held-out labels; the" in card
    assert f"{calibration['examples']} held-out labels cannot show whether the model is overconfident" in card
    for name, share in zip(NAMES, result["prior"], strict=True):
        line = next(line for line in card.splitlines() if line.startswith(f"| {name} |"))
        assert f"| {100 * share:.1f} % |" in line
    assert 'algorithm = "cap_cai"' in card


def test_images_that_were_resized_are_to_be_resized_again(squares, tmp_path):
    """With Pillow, as card and JSON say, other sizes give what `cadr predict` gives."""
    run = image_run(tmp_path, "--image-size", "6")
    export_run(run, tmp_path / "out", ("safetensors", "torch"))
    facts = json.loads((tmp_path / "out" / "model.json").read_text())["input"]
    assert (facts["image_size"], facts["resize"].split(",")[0]) == (6, "bilinear")
    for said in (facts["image_files"], (tmp_path / "out" / "MODEL_CARD.md").read_text()):
        assert "upright by EXIF orientation, the upper 8 bits of 16, what is transparent on white" in said
    assert "resized bilinearly to 6×6 pixels, uint8 (n, 6, 6, 3)" in (tmp_path / "out" / "MODEL_CARD.md").read_text()
    images = write_images(tmp_path / "large", 5, size=20)
    resized = [Image.fromarray(image).resize((6, 6), Image.Resampling.BILINEAR) for image in images]
    found = torch.export.load(tmp_path / "out" / "model.pt2").module()(
        torch.tensor(np.stack([np.asarray(image) for image in resized]))
    )
    predict_file(run, str(tmp_path / "large"), tmp_path / "p.csv", device="cpu")
    with (tmp_path / "p.csv").open() as file:
        expected = [float(row["probability"]) for row in csv.DictReader(file)]
    np.testing.assert_allclose(found.max(1).values.detach().numpy(), expected, atol=2e-6)
    export_run(squares, tmp_path / "plain", ("safetensors",))
    assert json.loads((tmp_path / "plain" / "model.json").read_text())["input"]["resize"] is None
    assert "resized" not in (tmp_path / "plain" / "MODEL_CARD.md").read_text()


def test_the_card_of_a_run_that_is_not_finished(tmp_path):
    """It says at which step the model is, and quotes no evaluation of a later one."""
    records = train(tiny.config(), tmp_path / "run", tiny.pool())
    for record in records:
        if record["step"] == 25:  # evaluations are at 20 and 30
            break
    records.close()
    metrics = tiny.metrics(tmp_path / "run")
    judged = next(r for r in reversed(metrics) if r["kind"] == "evaluation")
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({**judged, "step": 30, "accuracy": 1.25}) + "\n")
    export_run(tmp_path / "run", tmp_path / "out", ())
    card = (tmp_path / "out" / "MODEL_CARD.md").read_text()
    assert "25 of 60 steps: not finished" in card
    assert f"Accuracy {judged['accuracy']:.1f} %" in card
    assert "That was at step 20, and the model has been trained further since." in card
    for name, share in zip(("ant", "bee", "cat"), metrics[-1]["prior"], strict=True):
        assert re.search(rf"^\| {name} .* {100 * share:.1f} % \| [\d.]+ % \|$", card, re.MULTILINE)


def interrupted(out, *arguments, model=None):
    """A run that was stopped before its only evaluation."""
    flags = ["--steps", "1000", "--evaluations", "1", "--log-every", "5", "--device", "cpu"]
    config = Config.from_dict(read_flat(parser("train").parse_args(["train", *arguments, *flags])))
    records = train(config, out, model=model)
    for record in records:
        if record["step"] == 10:
            break
    records.close()
    assert {record["kind"] for record in tiny.metrics(out)} == {"train"}
    return out


def stopped(folder, *flags):
    x, truth = table(90)
    rows = [[*map(float, x[i]), NAMES[truth[i]] if i < 27 else ""] for i in range(90)]
    data = write_csv(folder / "trees.csv", [*COLUMNS, "label"], rows)
    return interrupted(folder / "run", str(data), "--algorithm", "cadr", *flags)


def how_good(run, folder):
    export_run(run, folder, ())
    card = (folder / "MODEL_CARD.md").read_text()
    assert "of 1000 steps: not finished" in card
    return card[card.index("## Evaluation") : card.index("The probabilities are")], card


def test_the_card_of_a_run_that_was_never_judged_judges_it(tmp_path):
    run = stopped(tmp_path)
    scores = evaluate_run(run, device="cpu")
    words, card = how_good(run, tmp_path / "out")
    figures = f"Accuracy {scores['accuracy']:.1f} %, geometric mean of the recalls of the classes {scores['gm']:.1f} %"
    assert f"{figures}, on {scores['examples']} examples: labels held out from training." in words
    assert "That was at step" not in words
    assert re.search(rf"^\| ash .* \| {scores['recall'][0]:.1f} % \|$", card, re.MULTILINE)


def test_a_module_of_ones_own_stays_as_it_was_when_the_card_judges_it(tmp_path):
    """ReMixMatch trains with a second head, which an exported model does without."""
    write_images(tmp_path / "squares", 40)
    labels = write_csv(
        tmp_path / "labels.csv", ["file", "label"], [[f"{i:03}.png", "light" if i % 2 else "dark"] for i in range(16)]
    )
    first, again = (nn.Sequential(nn.Flatten(), nn.Linear(192, 2)) for _ in range(2))
    flags = ["--labels", str(labels), "--algorithm", "remixmatch", "--batch", "4"]
    run = interrupted(tmp_path / "run", str(tmp_path / "squares"), *flags, model=first)
    export_run(run, tmp_path / "out", (), again)
    assert "labels held out from training" in (tmp_path / "out" / "MODEL_CARD.md").read_text()
    assert list(again.state_dict()) == ["1.weight", "1.bias"]


@pytest.mark.parametrize("flags", [(), ("--validation", "0")])
def test_the_card_of_a_run_that_cannot_be_judged_says_what_was_held_out(flags, tmp_path):
    run = stopped(tmp_path, *flags)
    held = 0 if flags else evaluate_run(run, device="cpu")["examples"]
    if held:
        (tmp_path / "trees.csv").unlink()
    words, _ = how_good(run, tmp_path / "out")
    reason = "is neither a file or folder nor a benchmark" if held else "has no test set, so there is nothing to"
    assert "The run was stopped before it was evaluated, and it cannot be evaluated now" in words
    assert reason in words
    assert (f"It holds out {held} labels, on which `cadr evaluate` evaluates it" in words) is (held > 0)
    assert ("Nothing was held out either." in words) is (held == 0)
    assert "Accuracy" not in words


def test_the_card_of_a_finished_run_that_held_out_nothing(tmp_path):
    tiny.finish(tiny.config(10), tmp_path / "run", pool=tiny.pool(test=False))
    export_run(tmp_path / "run", tmp_path / "out", ())
    assert "Nothing was held out to evaluate it on." in (tmp_path / "out" / "MODEL_CARD.md").read_text()


def test_the_card_says_what_calibration_has_changed(trees, tmp_path):
    shutil.copytree(trees, tmp_path / "run")
    path = tmp_path / "run" / "calibration.json"
    changed = {"temperature": 2.0, "error_before": 9.87, "error_after": 1.23, "examples": 40}
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    export_run(tmp_path / "run", tmp_path / "out", ())
    card = (tmp_path / "out" / "MODEL_CARD.md").read_text()
    assert "calibrated on 40 held-out labels" in card
    assert "9.9 % before, 1.2 % after" in card
    assert "only" not in card[card.index("Probabilities are") : card.index("## Use")]


def test_unknown_formats_and_runs_are_one_sentence(trees, tmp_path, capsys):
    assert main(["export", str(trees), "--formats", "pickle"]) == 2
    assert "safetensors, torch, onnx" in capsys.readouterr().err
    assert main(["export", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1

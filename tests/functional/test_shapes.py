"""What would be broadcast, or ignored, and give a number that means nothing, is refused."""

import pytest
import torch

from cadr import functional
from cadr.errors import DataError
from cadr.estimate import aipw

LOGITS, PRIOR = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)), torch.full((4,), 0.25)
LABELS = torch.tensor([0, 1, 2, 3, 0, 1])
ROWS = torch.tensor([0.2, 0.5, 0.9, 0.4])
PRESENT = torch.zeros(4)


@pytest.mark.parametrize("wrong", range(4))
@pytest.mark.parametrize("shape", [(4, 1), (1, 4), (1,), (3,)])
def test_a_risk_takes_one_number_per_row(wrong, shape):
    given = [ROWS, ROWS, PRESENT, ROWS]
    given[wrong] = torch.full(shape, 0.5)
    with pytest.raises(DataError, match="one number per row"):
        functional.aipw(*given)
    if wrong < 3:
        with pytest.raises(DataError, match="one number per row"):
            aipw.imputed(*given[:3])


def test_a_scalar_holds_for_every_row():
    everywhere = functional.aipw(ROWS, PRESENT, PRESENT, torch.full((4,), 0.5))
    assert functional.aipw(ROWS, torch.tensor(0.0), PRESENT, torch.tensor(0.5)) == everywhere
    with pytest.raises(DataError, match="one number per row"):
        functional.aipw(*[torch.tensor(0.5)] * 4)


@pytest.mark.parametrize("label", [-1, -100, 4, 2**31])
def test_a_label_that_is_no_class(label):
    labels = LABELS.clone()
    labels[2] = label
    for loss in (
        lambda: functional.cap(LOGITS, labels, LOGITS, PRIOR),
        lambda: functional.cadr(LOGITS, labels, LOGITS, LOGITS, PRIOR),
    ):
        with pytest.raises(IndexError, match=f"{label} is out of bounds"):
            loss()


@pytest.mark.parametrize("labels", [torch.eye(4)[LABELS], LABELS.float(), LABELS[:, None]])
def test_labels_are_classes(labels):
    with pytest.raises((DataError, RuntimeError)):
        functional.cap(LOGITS, labels, LOGITS, PRIOR)


@pytest.mark.parametrize("shape", [(4, 1), (1, 4), (1,), ()])
def test_a_prior_has_one_number_per_class(shape):
    prior = torch.full(shape, 0.25)
    for loss in (
        lambda: functional.update_prior(prior, LOGITS),
        lambda: functional.cap(LOGITS, LABELS, LOGITS, prior),
        lambda: functional.cai(LOGITS, LOGITS, prior),
        lambda: functional.supplement(LOGITS, LOGITS, prior, PRIOR),
        lambda: functional.supplement(LOGITS, LOGITS, PRIOR, prior),
        lambda: functional.cadr(LOGITS, LABELS, LOGITS, LOGITS, prior),
    ):
        with pytest.raises(DataError, match=r"one number per class in (threshold_)?prior"):
            loss()


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_checks_compile(dynamic):
    """They ask for shapes, which are known while tracing, and never for values."""
    aipw = torch.compile(functional.aipw, fullgraph=True, backend="eager", dynamic=dynamic)
    torch.testing.assert_close(aipw(ROWS, PRESENT, PRESENT, ROWS), functional.aipw(ROWS, PRESENT, PRESENT, ROWS))
    cap = torch.compile(functional.cap, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    expected = functional.cap(LOGITS, LABELS, LOGITS, PRIOR)
    torch.testing.assert_close(cap(LOGITS, LABELS, LOGITS, PRIOR), expected)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_they_are_captured_in_a_graph():
    logits, labels, prior, rows = (tensor.cuda() for tensor in (LOGITS, LABELS, PRIOR, ROWS))

    def losses():
        loss, new = functional.cadr(logits, labels, logits, logits, prior)
        return loss, new, functional.aipw(rows, rows, rows > 0.5, rows)

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        losses()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = losses()
    graph.replay()
    torch.testing.assert_close(captured, losses())

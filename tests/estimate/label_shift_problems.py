"""Problems with a known answer: Gaussian classes, so that the true posterior can be written down."""

import numpy as np

CENTRES = np.array([[0.0, 0.0], [2.0, 0.5], [0.5, 2.5], [2.5, 2.5]])


def posterior(x, prior):
    """P(class | x) for unit Gaussians around CENTRES."""
    logits = -((x[:, None, :] - CENTRES) ** 2).sum(2) / 2 + np.log(prior)
    weights = np.exp(logits - logits.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def sample(labels, random):
    return CENTRES[labels] + random.normal(size=(len(labels), 2))


def shifted(seed, counts, share, rows):
    """Probabilities and labels of labelled rows, probabilities of unlabelled ones, and what is true of those."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(4), counts)
    truth = random.choice(4, rows, p=share)
    prior = np.asarray(counts) / np.sum(counts)
    scores = posterior(sample(labels, random), prior), posterior(sample(truth, random), prior)
    return scores[0], labels, scores[1], np.bincount(truth, minlength=4) / rows

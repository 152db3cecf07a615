"""Labelling: which examples to ask for, the page that asks, and where the answers go."""

MOST = 100  # examples that are asked for before the model should learn from the answers
ROWS = 10_000  # unlabelled ones that are predicted, to choose among

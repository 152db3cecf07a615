"""Pretrained features: models found by a name, what comes before them, and vectors that are computed once."""

"""Looking at what was learned."""

from cadr.evaluate.run import evaluate_run

__all__ = ["evaluate_run"]

"""A report on one run or several: one page that needs nothing but itself."""

from cadr.report.build import write_report

__all__ = ["write_report"]

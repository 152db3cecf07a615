"""The one loop: a run is a folder, a step is a pure function of the state, and a killed run continues.

`train` yields records as the run goes on; `result` reads what a finished run came to.
"""

from cadr.training.loop import train
from cadr.training.record import Record
from cadr.training.result import result

__all__ = ["Record", "result", "train"]

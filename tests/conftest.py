"""What the tests take for granted about the process they run in."""

import signal

# A shell lets what it starts in the background ignore Ctrl-C, and so would all the processes that are interrupted here.
signal.signal(signal.SIGINT, signal.default_int_handler)

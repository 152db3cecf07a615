"""`python -m cadr` is the `cadr` command, also where the package was never installed."""

import sys

from cadr.cli.main import main

sys.exit(main())

"""``python -m quorate``: the same as the ``quorate`` command."""

import sys

from quorate.cli.main import main

sys.exit(main())

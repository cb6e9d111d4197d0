"""``python -m quorate``: the same as the ``quorate`` command."""

import sys

from quorate.entry import main

sys.exit(main())

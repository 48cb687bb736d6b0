"""``python -m dpestim`` is the command line `dpestim`."""

import sys

from dpestim.commands import main

if __name__ == "__main__":
    sys.exit(main())

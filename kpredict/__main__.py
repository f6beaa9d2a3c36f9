"""`python -m kpredict`."""

import sys

from kpredict.cli import main

if __name__ == "__main__":
    sys.exit(main())

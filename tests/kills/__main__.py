"""`python tests/kills`: the series, imported here alone, since processes that prepare text import this file again."""

import sys

if __name__ == "__main__":
    from series import main

    sys.exit(main())

"""`python tests/scaling [TOKENS...]`: what a step costs against processes, and a resumed run against text and epoch.

Prints two tables in Markdown, with the load of the machine, since other work makes all times longer.
"""

import sys

if __name__ == "__main__":
    from measure import main

    main([int(word) for word in sys.argv[1:]] or [5_000_000, 50_000_000])

"""`python tests/scaling [TOKENS...]`: processes against one, and resuming against text.

Prints three tables in Markdown: the cost of a step, the difference of the results, and the cost of resuming. It prints
the load of the machine too, since other work makes all times longer.
"""

import sys

if __name__ == "__main__":
    from measure import main

    main([int(word) for word in sys.argv[1:]] or [5_000_000, 50_000_000])

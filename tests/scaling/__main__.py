"""`python tests/scaling [TOKENS...]`: processes against one, resuming against text, studies against runs and jobs.

Prints four tables in Markdown: the cost of a step, the difference of the results, the cost of resuming, and the time of
a study. It prints the load of the machine too, since other work makes all times longer.
"""

import sys

if __name__ == "__main__":
    from measure import main

    main([int(word) for word in sys.argv[1:]] or [5_000_000, 50_000_000])

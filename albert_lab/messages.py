"""What long work reports to: a function that takes one line for the user."""

from collections.abc import Callable

Say = Callable[[str], None]

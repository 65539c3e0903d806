"""The command line: parse, call, print."""

from albert_lab.cli.app import main

__all__ = ["main"]

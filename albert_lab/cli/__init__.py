"""The command line: parse, call, print."""

from albert_lab import signals


def main() -> None:
    """Run the command line; the program's entry point."""
    signals.listen()  # before the imports, which take longer than a short command
    try:
        from albert_lab.cli.app import run

        run()
    except BaseException as error:
        signals.finish()
        from albert_lab.cli.ending import end

        end(error)


__all__ = ["main"]

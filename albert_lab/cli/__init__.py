"""The command line: parse, call, print."""


def main() -> None:
    """Run the command line; the program's entry point."""
    import _signal  # pyright: ignore[reportMissingImports]  # the part of signal in C: that in Python imports enum
    from os import _exit

    # Until the next import is done, a signal ends the process without a traceback, with the exit
    # codes of errors.py.
    _signal.signal(_signal.SIGINT, lambda *_: _exit(130))
    _signal.signal(_signal.SIGTERM, lambda *_: _exit(75))
    from albert_lab import signals

    signals.listen()  # before the imports, which take longer than a short command
    try:
        from albert_lab.cli.app import run

        run()
    except BaseException as error:
        signals.finish()
        from albert_lab.cli.ending import end

        end(error)


__all__ = ["main"]

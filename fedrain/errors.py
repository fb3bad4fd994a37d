"""Errors whose message is meant for the person who gave the input."""


class InputError(ValueError):
    """What was asked for cannot be done: one line that says what is wrong.

    The command line prints the message and exits with status 2.
    """


class MissingExtraError(InputError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'fedrain[{extra}]'")


class FailureError(RuntimeError):
    """What was asked for was right, and failed: one line that says why, and how to go on.

    The command line prints the message and exits with status 1.
    """

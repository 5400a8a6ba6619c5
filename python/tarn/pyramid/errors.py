"""The two ways in which a pyramid is not written."""

import contextlib


class RequestError(ValueError):
    """The request was wrong: an option, an axis, an output that is there already."""


class WorkError(RuntimeError):
    """The work failed: a damaged input, a full disk. What is done stays done; resume goes on."""


@contextlib.contextmanager
def naming(place):
    """What the system has against work on files becomes an error that says where."""
    try:
        yield
    except OSError as error:
        raise WorkError(f"{place}: {error}") from None

"""The two ways in which a pyramid is not written."""


class RequestError(ValueError):
    """The request was wrong: an option, an axis, an output that is there already."""


class WorkError(RuntimeError):
    """The work failed: a damaged input, a full disk. What is done stays done; resume goes on."""

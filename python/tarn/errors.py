"""The exception that tarn raises."""


class Error(ValueError, RuntimeError):
    """A request that the library refused, with the library's own sentence.

    It is a ``ValueError``, as NumPy would raise, and a ``RuntimeError``, as PyTorch would.

    >>> import numpy, tarn
    >>> try:
    ...     tarn.max_pool2d(numpy.zeros((1, 3, 3)), 5)
    ... except tarn.Error as error:
    ...     print(error.code, error.axis, error)
    TARN_DOES_NOT_FIT 0 kernel 5 does not fit axis 0: padded size is 3
    """

    def __init__(self, message, code="TARN_BAD_ARGUMENT", axis=-1):
        super().__init__(message)
        self.code = code
        self.axis = axis

    def __reduce__(self):
        return type(self), (self.args[0], self.code, self.axis)

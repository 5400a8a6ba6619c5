class Error(ValueError, RuntimeError):
    code: str
    axis: int
    def __init__(self, message: str, code: str = "TARN_BAD_ARGUMENT", axis: int = -1) -> None: ...

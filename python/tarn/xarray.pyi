from collections.abc import Mapping
from typing import Any, Literal

class DataArrayPools:
    def __init__(self, array: Any) -> None: ...
    def pool(self, op: Literal["max", "min", "avg", "smooth", "lp"],
             windows: Mapping[Any, int] | None = None, *,
             edge: Literal["exact", "trim", "keep"] = "exact", coord_func: Any = "mean",
             options: Mapping[str, Any] | None = None, **dims: int) -> Any: ...

from collections.abc import Mapping
from typing import Any, Literal

class DataArrayPools:
    def __init__(self, array: Any) -> None: ...
    def pool(self, op: Literal["max", "min", "avg", "sum", "mode", "smooth", "lp"],
             windows: Mapping[Any, int] | None = None, *,
             edge: Literal["exact", "trim", "keep"] = "exact",
             skip: float | Literal["nan"] | None = None, min_count: int | None = None,
             coord_func: Any = "mean",
             options: Mapping[str, Any] | None = None, **dims: int) -> Any: ...

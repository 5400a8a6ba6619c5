from collections.abc import Sequence
from typing import Literal, Self

from ._core import Pool as Pool

_Axes = int | Sequence[int]
_Padding = int | Sequence[int | tuple[int, int]]
_Ties = Literal["first", "all", "split"]
_Skip = float | Literal["nan"] | None

class MaxPool(Pool):
    def __new__(cls, kernel_size: _Axes, stride: _Axes | None = None, padding: _Padding = 0,
                dilation: _Axes = 1, ceil_mode: bool = False, ties: _Ties = "first", *, ndim: int |
                None = None, skip: _Skip = None, min_count: int | None = None) -> Self: ...

class MinPool(Pool):
    def __new__(cls, kernel_size: _Axes, stride: _Axes | None = None, padding: _Padding = 0,
                dilation: _Axes = 1, ceil_mode: bool = False, ties: _Ties = "first", *, ndim: int |
                None = None, skip: _Skip = None, min_count: int | None = None) -> Self: ...

class AvgPool(Pool):
    def __new__(cls, kernel_size: _Axes, stride: _Axes | None = None, padding: _Padding = 0,
                dilation: _Axes = 1, ceil_mode: bool = False, count_include_pad: bool = True,
                divisor_override: int | None = None, *, ndim: int | None = None, skip: _Skip =
                None, min_count: int | None = None) -> Self: ...

class SmoothMaxPool(Pool):
    def __new__(cls, kernel_size: _Axes, stride: _Axes | None = None, padding: _Padding = 0,
                dilation: _Axes = 1, ceil_mode: bool = False, beta: float = 1.0, count_include_pad:
                bool = True, *, ndim: int | None = None) -> Self: ...

class LpPool(Pool):
    def __new__(cls, kernel_size: _Axes, stride: _Axes | None = None, padding: _Padding = 0,
                dilation: _Axes = 1, ceil_mode: bool = False, norm_type: float = 2.0, *, ndim: int
                | None = None) -> Self: ...

class AdaptiveMaxPool(Pool):
    def __new__(cls, output_size: _Axes, ties: _Ties = "first", *, ndim: int | None = None, skip:
                _Skip = None, min_count: int | None = None) -> Self: ...

class AdaptiveAvgPool(Pool):
    def __new__(cls, output_size: _Axes, *, ndim: int | None = None, skip: _Skip = None, min_count:
                int | None = None) -> Self: ...

class AdaptiveMinPool(Pool):
    def __new__(cls, output_size: _Axes, ties: _Ties = "first", *, ndim: int | None = None, skip:
                _Skip = None, min_count: int | None = None) -> Self: ...

class AdaptiveSmoothMaxPool(Pool):
    def __new__(cls, output_size: _Axes, beta: float = 1.0, *, ndim: int | None = None) -> Self:
                ...

class AdaptiveLpPool(Pool):
    def __new__(cls, output_size: _Axes, norm_type: float = 2.0, *, ndim: int | None = None) -> Self: ...

class GlobalMinPool(Pool):
    def __new__(cls, ndim: int = 2, keepdims: bool = True, ties: _Ties = "all", *, skip: _Skip =
                None, min_count: int | None = None) -> Self: ...

class GlobalSmoothMaxPool(Pool):
    def __new__(cls, ndim: int = 2, keepdims: bool = True, beta: float = 1.0) -> Self: ...

class GlobalMaxPool(Pool):
    def __new__(cls, ndim: int = 2, keepdims: bool = True, ties: _Ties = "all", *, skip: _Skip =
                None, min_count: int | None = None) -> Self: ...

class GlobalAvgPool(Pool):
    def __new__(cls, ndim: int = 2, keepdims: bool = True, *, skip: _Skip = None, min_count: int |
                None = None) -> Self: ...

class GlobalLpPool(Pool):
    def __new__(cls, ndim: int = 2, keepdims: bool = True, norm_type: float = 2.0) -> Self: ...

class SumPool(Pool):
    def __new__(cls, kernel_size: _Axes, stride: _Axes | None = None, padding: _Padding = 0,
                dilation: _Axes = 1, ceil_mode: bool = False, *, ndim: int | None = None, skip:
                _Skip = None, min_count: int | None = None) -> Self: ...

class AdaptiveSumPool(Pool):
    def __new__(cls, output_size: _Axes, *, ndim: int | None = None, skip: _Skip = None, min_count:
                int | None = None) -> Self: ...

class GlobalSumPool(Pool):
    def __new__(cls, ndim: int = 2, keepdims: bool = True, *, skip: _Skip = None, min_count: int |
                None = None) -> Self: ...

class ModePool(Pool):
    def __new__(cls, kernel_size: _Axes, stride: _Axes | None = None, padding: _Padding = 0,
                dilation: _Axes = 1, ceil_mode: bool = False, *, ndim: int | None = None, skip:
                _Skip = None, min_count: int | None = None) -> Self: ...

class AdaptiveModePool(Pool):
    def __new__(cls, output_size: _Axes, *, ndim: int | None = None, skip: _Skip = None, min_count:
                int | None = None) -> Self: ...

class GlobalModePool(Pool):
    def __new__(cls, ndim: int = 2, keepdims: bool = True, *, skip: _Skip = None, min_count: int |
                None = None) -> Self: ...

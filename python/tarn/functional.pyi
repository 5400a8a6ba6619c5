from collections.abc import Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar, overload

_Array = TypeVar("_Array")
_Axes = int | Sequence[int]
_Indices = Any  # an array of int64, of the library of the input
_Ties = Literal["first", "all", "split"]
_Skip = float | Literal["nan"] | None

@overload
def max_pool1d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, return_indices: Literal[False] =
               False, *, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
               _Array: ...
@overload
def max_pool1d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: Literal[True],
               skip: _Skip = None, min_count: int | None = None, out: Any = None) -> tuple[_Array,
               _Indices]: ...
@overload
def max_pool1d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: bool, skip: _Skip =
               None, min_count: int | None = None, out: Any = None) -> _Array | tuple[_Array,
               _Indices]: ...
@overload
def max_pool2d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, return_indices: Literal[False] =
               False, *, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
               _Array: ...
@overload
def max_pool2d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: Literal[True],
               skip: _Skip = None, min_count: int | None = None, out: Any = None) -> tuple[_Array,
               _Indices]: ...
@overload
def max_pool2d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: bool, skip: _Skip =
               None, min_count: int | None = None, out: Any = None) -> _Array | tuple[_Array,
               _Indices]: ...
@overload
def max_pool3d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, return_indices: Literal[False] =
               False, *, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
               _Array: ...
@overload
def max_pool3d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: Literal[True],
               skip: _Skip = None, min_count: int | None = None, out: Any = None) -> tuple[_Array,
               _Indices]: ...
@overload
def max_pool3d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: bool, skip: _Skip =
               None, min_count: int | None = None, out: Any = None) -> _Array | tuple[_Array,
               _Indices]: ...
@overload
def min_pool1d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, return_indices: Literal[False] =
               False, *, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
               _Array: ...
@overload
def min_pool1d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: Literal[True],
               skip: _Skip = None, min_count: int | None = None, out: Any = None) -> tuple[_Array,
               _Indices]: ...
@overload
def min_pool1d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: bool, skip: _Skip =
               None, min_count: int | None = None, out: Any = None) -> _Array | tuple[_Array,
               _Indices]: ...
@overload
def min_pool2d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, return_indices: Literal[False] =
               False, *, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
               _Array: ...
@overload
def min_pool2d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: Literal[True],
               skip: _Skip = None, min_count: int | None = None, out: Any = None) -> tuple[_Array,
               _Indices]: ...
@overload
def min_pool2d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: bool, skip: _Skip =
               None, min_count: int | None = None, out: Any = None) -> _Array | tuple[_Array,
               _Indices]: ...
@overload
def min_pool3d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, return_indices: Literal[False] =
               False, *, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
               _Array: ...
@overload
def min_pool3d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: Literal[True],
               skip: _Skip = None, min_count: int | None = None, out: Any = None) -> tuple[_Array,
               _Indices]: ...
@overload
def min_pool3d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               dilation: _Axes = 1, ceil_mode: bool = False, *, return_indices: bool, skip: _Skip =
               None, min_count: int | None = None, out: Any = None) -> _Array | tuple[_Array,
               _Indices]: ...
def avg_pool1d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int |
               None = None, *, skip: _Skip = None, min_count: int | None = None, out: Any = None)
               -> _Array: ...
def avg_pool2d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int |
               None = None, *, skip: _Skip = None, min_count: int | None = None, out: Any = None)
               -> _Array: ...
def avg_pool3d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int |
               None = None, *, skip: _Skip = None, min_count: int | None = None, out: Any = None)
               -> _Array: ...
def smooth_max_pool1d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding:
                      _Axes = 0, beta: float = 1.0, dilation: _Axes = 1, ceil_mode: bool = False,
                      count_include_pad: bool = True, *, out: Any = None) -> _Array: ...
def smooth_max_pool2d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding:
                      _Axes = 0, beta: float = 1.0, dilation: _Axes = 1, ceil_mode: bool = False,
                      count_include_pad: bool = True, *, out: Any = None) -> _Array: ...
def smooth_max_pool3d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding:
                      _Axes = 0, beta: float = 1.0, dilation: _Axes = 1, ceil_mode: bool = False,
                      count_include_pad: bool = True, *, out: Any = None) -> _Array: ...
def lp_pool1d(input: _Array, norm_type: float, kernel_size: _Axes, stride: _Axes | None = None,
              ceil_mode: bool = False, padding: _Axes = 0, dilation: _Axes = 1, *, out: Any = None)
              -> _Array: ...
def lp_pool2d(input: _Array, norm_type: float, kernel_size: _Axes, stride: _Axes | None = None,
              ceil_mode: bool = False, padding: _Axes = 0, dilation: _Axes = 1, *, out: Any = None)
              -> _Array: ...
def lp_pool3d(input: _Array, norm_type: float, kernel_size: _Axes, stride: _Axes | None = None,
              ceil_mode: bool = False, padding: _Axes = 0, dilation: _Axes = 1, *, out: Any = None)
              -> _Array: ...
@overload
def adaptive_max_pool1d(input: _Array, output_size: int | Sequence[int | None], return_indices:
                        Literal[False] = False, *, skip: _Skip = None, min_count: int | None =
                        None, out: Any = None) -> _Array: ...
@overload
def adaptive_max_pool1d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        Literal[True], skip: _Skip = None, min_count: int | None = None, out: Any =
                        None) -> tuple[_Array, _Indices]: ...
@overload
def adaptive_max_pool1d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        bool, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
                        _Array | tuple[_Array, _Indices]: ...
@overload
def adaptive_max_pool2d(input: _Array, output_size: int | Sequence[int | None], return_indices:
                        Literal[False] = False, *, skip: _Skip = None, min_count: int | None =
                        None, out: Any = None) -> _Array: ...
@overload
def adaptive_max_pool2d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        Literal[True], skip: _Skip = None, min_count: int | None = None, out: Any =
                        None) -> tuple[_Array, _Indices]: ...
@overload
def adaptive_max_pool2d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        bool, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
                        _Array | tuple[_Array, _Indices]: ...
@overload
def adaptive_max_pool3d(input: _Array, output_size: int | Sequence[int | None], return_indices:
                        Literal[False] = False, *, skip: _Skip = None, min_count: int | None =
                        None, out: Any = None) -> _Array: ...
@overload
def adaptive_max_pool3d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        Literal[True], skip: _Skip = None, min_count: int | None = None, out: Any =
                        None) -> tuple[_Array, _Indices]: ...
@overload
def adaptive_max_pool3d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        bool, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
                        _Array | tuple[_Array, _Indices]: ...
def adaptive_avg_pool1d(input: _Array, output_size: int | Sequence[int | None], *, skip: _Skip =
                        None, min_count: int | None = None, out: Any = None) -> _Array: ...
def adaptive_avg_pool2d(input: _Array, output_size: int | Sequence[int | None], *, skip: _Skip =
                        None, min_count: int | None = None, out: Any = None) -> _Array: ...
def adaptive_avg_pool3d(input: _Array, output_size: int | Sequence[int | None], *, skip: _Skip =
                        None, min_count: int | None = None, out: Any = None) -> _Array: ...
@overload
def adaptive_min_pool1d(input: _Array, output_size: int | Sequence[int | None], return_indices:
                        Literal[False] = False, *, skip: _Skip = None, min_count: int | None =
                        None, out: Any = None) -> _Array: ...
@overload
def adaptive_min_pool1d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        Literal[True], skip: _Skip = None, min_count: int | None = None, out: Any =
                        None) -> tuple[_Array, _Indices]: ...
@overload
def adaptive_min_pool1d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        bool, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
                        _Array | tuple[_Array, _Indices]: ...
def adaptive_smooth_max_pool1d(input: _Array, output_size: int | Sequence[int | None], beta: float
                               = 1.0, *, out: Any = None) -> _Array: ...
def adaptive_lp_pool1d(input: _Array, norm_type: float, output_size: int | Sequence[int | None], *,
                       out: Any = None) -> _Array: ...
@overload
def adaptive_min_pool2d(input: _Array, output_size: int | Sequence[int | None], return_indices:
                        Literal[False] = False, *, skip: _Skip = None, min_count: int | None =
                        None, out: Any = None) -> _Array: ...
@overload
def adaptive_min_pool2d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        Literal[True], skip: _Skip = None, min_count: int | None = None, out: Any =
                        None) -> tuple[_Array, _Indices]: ...
@overload
def adaptive_min_pool2d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        bool, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
                        _Array | tuple[_Array, _Indices]: ...
def adaptive_smooth_max_pool2d(input: _Array, output_size: int | Sequence[int | None], beta: float
                               = 1.0, *, out: Any = None) -> _Array: ...
def adaptive_lp_pool2d(input: _Array, norm_type: float, output_size: int | Sequence[int | None], *,
                       out: Any = None) -> _Array: ...
@overload
def adaptive_min_pool3d(input: _Array, output_size: int | Sequence[int | None], return_indices:
                        Literal[False] = False, *, skip: _Skip = None, min_count: int | None =
                        None, out: Any = None) -> _Array: ...
@overload
def adaptive_min_pool3d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        Literal[True], skip: _Skip = None, min_count: int | None = None, out: Any =
                        None) -> tuple[_Array, _Indices]: ...
@overload
def adaptive_min_pool3d(input: _Array, output_size: int | Sequence[int | None], *, return_indices:
                        bool, skip: _Skip = None, min_count: int | None = None, out: Any = None) ->
                        _Array | tuple[_Array, _Indices]: ...
def adaptive_smooth_max_pool3d(input: _Array, output_size: int | Sequence[int | None], beta: float
                               = 1.0, *, out: Any = None) -> _Array: ...
def adaptive_lp_pool3d(input: _Array, norm_type: float, output_size: int | Sequence[int | None], *,
                       out: Any = None) -> _Array: ...
def global_min_pool(input: _Array, ndim: int = 2, keepdims: bool = True, ties: _Ties = "all", *,
                    skip: _Skip = None, min_count: int | None = None, out: Any = None) -> _Array:
                    ...
def global_smooth_max_pool(input: _Array, ndim: int = 2, keepdims: bool = True, beta: float = 1.0,
                           *, out: Any = None) -> _Array: ...
def global_lp_pool(input: _Array, norm_type: float = 2.0, ndim: int = 2, keepdims: bool = True, *,
                   out: Any = None) -> _Array: ...
def global_max_pool(input: _Array, ndim: int = 2, keepdims: bool = True, ties: _Ties = "all", *,
                    skip: _Skip = None, min_count: int | None = None, out: Any = None) -> _Array:
                    ...
def global_avg_pool(input: _Array, ndim: int = 2, keepdims: bool = True, *, skip: _Skip = None,
                    min_count: int | None = None, out: Any = None) -> _Array: ...
def max_unpool1d(input: _Array, indices: Any, kernel_size: _Axes, stride: _Axes | None = None,
                 padding: _Axes = 0, output_size: Sequence[int] | None = None, *, skip: _Skip =
                 None, min_count: int | None = None, out: Any = None) -> _Array: ...
def max_unpool2d(input: _Array, indices: Any, kernel_size: _Axes, stride: _Axes | None = None,
                 padding: _Axes = 0, output_size: Sequence[int] | None = None, *, skip: _Skip =
                 None, min_count: int | None = None, out: Any = None) -> _Array: ...
def max_unpool3d(input: _Array, indices: Any, kernel_size: _Axes, stride: _Axes | None = None,
                 padding: _Axes = 0, output_size: Sequence[int] | None = None, *, skip: _Skip =
                 None, min_count: int | None = None, out: Any = None) -> _Array: ...
def pad(input: _Array, pad: Sequence[int], *, skip: _Skip = None, min_count: int | None = None,
        out: Any = None) -> _Array: ...
def unpad(input: _Array, pad: Sequence[int], *, out: Any = None) -> _Array: ...
def set_num_threads(threads: int, /) -> None: ...
def get_num_threads() -> int: ...

class threads:
    def __init__(self, n: int) -> None: ...
    def __enter__(self) -> threads: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback:
                 TracebackType | None, /) -> None: ...
def sum_pool1d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               ceil_mode: bool = False, *, skip: _Skip = None, min_count: int | None = None, out:
               Any = None) -> _Array: ...
def adaptive_sum_pool1d(input: _Array, output_size: _Sizes, *, skip: _Skip = None, min_count: int |
                        None = None, out: Any = None) -> _Array: ...
def sum_pool2d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               ceil_mode: bool = False, *, skip: _Skip = None, min_count: int | None = None, out:
               Any = None) -> _Array: ...
def adaptive_sum_pool2d(input: _Array, output_size: _Sizes, *, skip: _Skip = None, min_count: int |
                        None = None, out: Any = None) -> _Array: ...
def sum_pool3d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
               ceil_mode: bool = False, *, skip: _Skip = None, min_count: int | None = None, out:
               Any = None) -> _Array: ...
def adaptive_sum_pool3d(input: _Array, output_size: _Sizes, *, skip: _Skip = None, min_count: int |
                        None = None, out: Any = None) -> _Array: ...
def global_sum_pool(input: _Array, ndim: int = 2, keepdims: bool = True, *, skip: _Skip = None,
                    min_count: int | None = None, out: Any = None) -> _Array: ...
def mode_pool1d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
                dilation: _Axes = 1, ceil_mode: bool = False, *, skip: _Skip = None, min_count: int
                | None = None, out: Any = None) -> _Array: ...
def adaptive_mode_pool1d(input: _Array, output_size: _Sizes, *, skip: _Skip = None, min_count: int
                         | None = None, out: Any = None) -> _Array: ...
def mode_pool2d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
                dilation: _Axes = 1, ceil_mode: bool = False, *, skip: _Skip = None, min_count: int
                | None = None, out: Any = None) -> _Array: ...
def adaptive_mode_pool2d(input: _Array, output_size: _Sizes, *, skip: _Skip = None, min_count: int
                         | None = None, out: Any = None) -> _Array: ...
def mode_pool3d(input: _Array, kernel_size: _Axes, stride: _Axes | None = None, padding: _Axes = 0,
                dilation: _Axes = 1, ceil_mode: bool = False, *, skip: _Skip = None, min_count: int
                | None = None, out: Any = None) -> _Array: ...
def adaptive_mode_pool3d(input: _Array, output_size: _Sizes, *, skip: _Skip = None, min_count: int
                         | None = None, out: Any = None) -> _Array: ...
def global_mode_pool(input: _Array, ndim: int = 2, keepdims: bool = True, *, skip: _Skip = None,
                     min_count: int | None = None, out: Any = None) -> _Array: ...

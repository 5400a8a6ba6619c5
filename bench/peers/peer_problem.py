"""A problem string, as far as the rows of the benchmark use it (docs/problem-strings.md has it all)."""

from dataclasses import dataclass
import re


@dataclass(frozen=True)
class Problem:
    text: str
    op: str
    dtype: str
    shape: tuple
    spatial: int
    window: str  # sliding, adaptive, global
    kernel: int = 0
    stride: int = 0
    padding: int = 0
    dilation: int = 1
    beta: float = 1.0

    @property
    def size(self):
        """Sizes of the spatial axes."""
        return self.shape[-self.spatial:]

    @property
    def leading(self):
        return self.shape[:-self.spatial]

    @property
    def batch_and_channels(self):
        """Leading axes as the two that other libraries know."""
        padded = (1, 1) + self.leading
        return padded[-2], padded[-1]

    @property
    def kernels(self):
        """Kernel of each axis; a global window is one that covers it. None where windows differ."""
        if self.window == "adaptive":
            return None
        return self.size if self.window == "global" else (self.kernel,) * self.spatial

    @property
    def strides(self):
        return self.kernels if self.window == "global" else (self.stride,) * self.spatial

    @property
    def paddings(self):
        return (self.padding,) * self.spatial

    @property
    def dilations(self):
        return (self.dilation,) * self.spatial

    @property
    def out(self):
        """Sizes of the output's spatial axes."""
        if self.window == "adaptive":
            return (self.kernel,) * self.spatial
        return tuple((n + 2 * self.padding - self.dilation * (k - 1) - 1) // s + 1
                     for n, k, s in zip(self.size, self.kernels, self.strides))


def parse(text):
    op, *words = text.split()
    found = {"op": op, "text": text, "spatial": 2, "window": "sliding"}
    for word in words:
        if match := re.fullmatch(r"k(\d+)(?:s(\d+))?(?:p(\d+))?(?:e(\d+))?", word):
            found["kernel"] = int(match[1])
            found["stride"] = int(match[2] or match[1])
            found["padding"] = int(match[3] or 0)
            found["dilation"] = int(match[4] or 1)
        elif match := re.fullmatch(r"a(\d+)", word):
            found.update(window="adaptive", kernel=int(match[1]))
        elif match := re.fullmatch(r"d(\d)", word):
            found["spatial"] = int(match[1])
        elif re.fullmatch(r"\d+(x\d+)+", word):
            found["shape"] = tuple(map(int, word.split("x")))
        elif match := re.fullmatch(r"beta=(.*)", word):
            found["beta"] = float(match[1])
        elif word == "global":
            found["window"] = word
        elif word != "ties=first":
            found["dtype"] = word
    return Problem(**found)

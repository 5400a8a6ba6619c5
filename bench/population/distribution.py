"""The population: random problems such as networks and image programs have, drawn by the table below.

Problem k of a seed is always the same, however many are drawn. docs/population.md says the same in words.
"""

from dataclasses import dataclass
import math
import random

# What is drawn: {choice: weight}; weights are relative. A range is drawn from evenly.
TABLE = {
    "op": {"max": 42, "avg": 34, "min": 10, "smooth": 7, "lp": 7},
    "window": {"sliding": 80, "adaptive": 12, "global": 8},
    "spatial": {1: 20, 2: 55, 3: 20, 4: 5},  # number of spatial axes
    "dtype": {"f32": 50, "bf16": 14, "f64": 10, "f16": 8, "u8": 6, "i8": 4, "i16": 4, "i32": 4},
    "layout": {"first": 50, "last": 50},  # where the channels lie
    # Sliding windows. One window in four draws kernel, stride and padding for each axis by itself.
    "same on all axes": {True: 75, False: 25},
    "kernel": {2: 27, 3: 31, 5: 15, range(4, 14): 27},
    "stride": {"kernel": 30, "1": 28, "2 to 4": 32, "above kernel": 10},
    "padding": {"none": 50, "half the kernel": 35, "up to half the kernel": 15},
    "dilation": {1: 88, range(2, 4): 12},
    "ceil mode": {False: 88, True: 12},
    "one more cell of padding behind": {False: 97, True: 3},
    "padding counts": {True: 80, False: 20},  # avg
    "power": {2: 70, 3: 30},  # lp
    # Adaptive and global windows.
    "adaptive output": {range(1, 4): 25, range(4, 9): 50, range(9, 33): 25},
    "global ties": {"first": 75, "all": 25},  # max, min
    # Sizes. Axes are drawn log-evenly between the bounds of their number of spatial axes.
    "long row": {False: 60, True: 40},  # 1-D: up to LONG_ROW instead
    "channels": {"few": 30, "many": 70},
    "elements": {"usual": 88, "tiny": 12},
}
AXIS = {1: (7, 300), 2: (7, 300), 3: (7, 64), 4: (7, 20)}
LONG_ROW = 30000
CHANNELS = {"few": (1, 8), "many": (16, 512)}
MOST_BATCH = 8
ELEMENTS = {"usual": (300_000, 6_000_000), "tiny": (300, 30_000)}  # of x: what batch and channels aim at
MOST_TAPS = 6e7  # of all windows together: fewer channels where there would be more, for the peers' sake
NOT_FOR_INTEGERS = ("smooth", "lp")
FLOATS = ("f64", "f32", "bf16", "f16")


@dataclass(frozen=True)
class Problem:
    op: str
    window: str
    dtype: str
    layout: str
    shape: tuple  # batch, channels, space
    kernel: tuple = ()
    stride: tuple = ()
    pad_lo: tuple = ()
    pad_hi: tuple = ()
    dilation: tuple = ()
    ceil: bool = False
    counts_padding: bool = True
    power: int = 2
    ties: str = "first"
    out: tuple = ()  # adaptive

    @property
    def size(self):
        return self.shape[2:]

    @property
    def spatial(self):
        return len(self.size)

    @property
    def is_float(self):
        return self.dtype in FLOATS

    @property
    def text(self):
        """The problem string (docs/problem-strings.md)."""
        words = [self.op, f"d{self.spatial}", self.window_word()]
        if self.window == "global" and self.op in ("max", "min"):
            words.append(f"ties={self.ties}")
        words += ["ceil"] * self.ceil + ["nopad"] * (not self.counts_padding)
        words += [f"p={self.power}"] * (self.op == "lp")
        words += [self.dtype, "x".join(map(str, self.shape))] + ["last"] * (self.layout == "last")
        return " ".join(words)

    def window_word(self):
        if self.window == "global":
            return "global"
        if self.window == "adaptive":
            return "a" + ",".join(map(str, self.out))
        pads = [str(lo) if lo == hi else f"{lo}:{hi}" for lo, hi in zip(self.pad_lo, self.pad_hi)]
        parts = [("k", self.kernel, None), ("s", self.stride, None), ("p", pads, "0"), ("e", self.dilation, 1)]
        return "".join(letter + (str(v[0]) if len(set(v)) == 1 else ",".join(map(str, v)))
                       for letter, v, default in parts if set(v) != {default})

    def outputs(self):
        if self.window == "global":
            return (1,) * self.spatial
        if self.window == "adaptive":
            return self.out
        return tuple(windows_on_axis(*axis, self.ceil) for axis in
                     zip(self.size, self.kernel, self.stride, self.pad_lo, self.pad_hi, self.dilation))

    def taps(self):
        """Of all windows together."""
        of_window = math.prod(self.kernel) if self.window == "sliding" else \
            math.prod(-(-n // o) for n, o in zip(self.size, self.outputs()))
        return math.prod(self.shape[:2]) * math.prod(self.outputs()) * of_window


def windows_on_axis(n, kernel, stride, lo, hi, dilation, ceil):
    """0 if the window does not fit."""
    span = n + lo + hi - dilation * (kernel - 1) - 1
    if span < 0:
        return 0
    windows = (span + (stride - 1 if ceil else 0)) // stride + 1
    return windows - 1 if ceil and (windows - 1) * stride >= n + lo else windows


# ---- Drawing ----


class Dice(random.Random):
    def pick(self, name):
        choices = TABLE[name]
        choice = self.choices(list(choices), choices.values())[0]
        return self.choice(choice) if isinstance(choice, range) else choice

    def log_even(self, lo, hi):
        return round(math.exp(self.uniform(math.log(lo), math.log(hi))))


def draw_window_axis(dice):
    """Kernel, stride, padding of one axis."""
    kernel = dice.pick("kernel")
    stride = {"kernel": kernel, "1": 1, "2 to 4": dice.randint(2, 4),
              "above kernel": kernel + dice.randint(1, 2)}[dice.pick("stride")]
    padding = {"none": 0, "half the kernel": kernel // 2,
               "up to half the kernel": dice.randint(0, kernel // 2)}[dice.pick("padding")]
    return kernel, stride, padding


def draw_sliding(dice, spatial, op):
    same = dice.pick("same on all axes")
    axes = [draw_window_axis(dice)] * spatial if same else [draw_window_axis(dice) for _ in range(spatial)]
    kernel, stride, pad_lo = zip(*axes)
    more = dice.pick("one more cell of padding behind")
    return dict(kernel=kernel, stride=stride, pad_lo=pad_lo, pad_hi=tuple(p + more for p in pad_lo),
                dilation=(dice.pick("dilation"),) * spatial, ceil=dice.pick("ceil mode"),
                counts_padding=op != "avg" or dice.pick("padding counts"))


def draw_size(dice, spatial):
    if spatial == 1 and dice.pick("long row"):
        return (dice.log_even(AXIS[1][1], LONG_ROW),)
    if dice.random() < 0.5:
        return (dice.log_even(*AXIS[spatial]),) * spatial
    return tuple(dice.log_even(*AXIS[spatial]) for _ in range(spatial))


def draw_shape(dice, spatial, layout):
    """Channels as drawn if the elements allow them, then the batch that they allow."""
    lo, hi = ELEMENTS[dice.pick("elements")]
    elements = dice.log_even(lo, hi)
    channels = dice.log_even(*CHANNELS[dice.pick("channels")])
    size = draw_size(dice, spatial)
    while MOST_BATCH * channels * math.prod(size) < lo:
        channels, size = min(2 * channels, CHANNELS["many"][1]), draw_size(dice, spatial)
    fits = max(1, elements // math.prod(size))
    channels = max(2 if layout == "last" else 1, min(fits, channels))
    return (max(1, min(MOST_BATCH, fits // channels)), channels, *size)


def with_fewer_taps(problem):
    n, c, *size = problem.shape
    while problem.taps() > MOST_TAPS and n * c > 2:
        n, c = (n // 2, c) if n > 1 else (n, max(2, c // 2))
        problem = Problem(**{**vars(problem), "shape": (n, c, *size)})
    return problem


def draw_once(dice):
    op, window, spatial, layout = (dice.pick(name) for name in ("op", "window", "spatial", "layout"))
    found = dict(op=op, window=window, dtype=dice.pick("dtype"), layout=layout, shape=draw_shape(dice, spatial, layout))
    if op == "lp":
        found["power"] = dice.pick("power")
    if window == "sliding":
        found.update(draw_sliding(dice, spatial, op))
    elif window == "adaptive":
        found["out"] = tuple(min(n, dice.pick("adaptive output")) for n in found["shape"][2:])
    else:
        found["ties"] = dice.pick("global ties")
    return with_fewer_taps(Problem(**found))


def is_possible(problem):
    if problem.op in NOT_FOR_INTEGERS and not problem.is_float:
        return False
    return all(n > 0 for n in problem.outputs()) and problem.taps() <= MOST_TAPS


def draw(seed, count):
    problems = []
    for k in range(count):
        dice = Dice(f"{seed}/{k}")
        problem = draw_once(dice)
        while not is_possible(problem):
            problem = draw_once(dice)
        problems.append(problem)
    return problems

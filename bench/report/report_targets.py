"""What tarn set out to reach, computed from a run: each target is a list of claims, each true or not."""

from dataclasses import dataclass, field

from report_data import geometric_mean, show_time

LAYOUTS = ("nchw", "nhwc")
SWEPT = [(op, dtype) for dtype in ("f32", "u8") for op in ("max", "min", "avg")]
SIZES = (3, 5, 7, 9, 13, 21, 31, 45, 63)
COMPUTE_BOUND = 2.0  # a row that takes this many times its bound waits for arithmetic, not for memory
LONG_ENOUGH_NS = 50e3  # shorter rows measure how threads are woken


@dataclass
class Claim:
    text: str
    total: int = 0
    lost: list = field(default_factory=list)  # (how far off, what), worst first once sorted

    def add(self, holds, badness, what):
        self.total += 1
        if not holds:
            self.lost.append((badness, what))

    @property
    def verdict(self):
        if self.total == 0:
            return "not measured"
        if not self.lost:
            return "met"
        return "not met" if self.total == 1 else f"not met: {self.total - len(self.lost)} of {self.total}"


def single(text, holds):
    claim = Claim(text)
    claim.add(holds, 1, text)
    return claim


def is_sweep(row):
    return row.startswith("sweep.")


def key_text(row, name, layout=""):
    return f"`{row}` {name} {layout}".strip()


# ---- 1: beside the peers ----


def peer_ratios(run, threads, layout):
    for row, name in run.keys(threads):
        peer = run.fastest_peer(row, name, threads)
        if peer and not is_sweep(row):
            yield row, name, run.tarn(row, name, threads, layout), peer


def ahead_of_peers(run, threads, layout):
    claim = Claim(f"{layout}, {threads} T: each row at least as fast as the fastest peer in its best layout")
    ratios = []
    for row, name, mine, peer in peer_ratios(run, threads, layout):
        ratio = peer.ns / mine.ns
        ratios.append(ratio)
        claim.add(ratio >= 1, 1 / ratio, f"{key_text(row, name)}: {show_time(mine.ns)}, "
                  f"{peer.label} {show_time(peer.ns)} ({ratio:.2f}x)")
    if not ratios:
        return [claim]
    mean = geometric_mean(ratios)
    return [claim, single(f"{layout}, {threads} T: geometric mean {mean:.2f}x the fastest peer (at least 2)", mean >= 2)]


def ahead_of_torch(run, threads, layout):
    ratios = []
    for row, name in run.keys(threads):
        torch = run.best(row, name, threads, who="torch", layout="nchw")
        if torch:
            ratios.append(torch.ns / run.tarn(row, name, threads, layout).ns)
    if not ratios:
        return []
    mean = geometric_mean(ratios)
    return [single(f"{layout}, {threads} T: geometric mean {mean:.1f}x PyTorch in nchw, {len(ratios)} rows (at least 10)",
                   mean >= 10)]


def first(core, peers):
    claims = []
    for threads in sorted({1, peers.most_threads()}):
        for layout in LAYOUTS:
            claims += ahead_of_peers(peers, threads, layout) + ahead_of_torch(peers, threads, layout)
    return claims


# ---- 2: at the bound ----


def second(core, peers):
    cache = int(core.facts.get("last-level cache", "0").split()[0])
    claims = []
    for threads in sorted({1, core.most_threads()}):
        for layout in LAYOUTS:
            claim = Claim(f"{layout}, {threads} T: rows beyond the last-level cache at 90 % of the bound or better")
            for row, name in core.keys(threads):
                bound, mine = core.bound(row, name, threads), core.tarn(row, name, threads, layout)
                if not bound or not cache or mine.bytes <= cache or is_sweep(row) or name.split("_")[0] not in ("fwd", "train", "bwd") \
                        or name.startswith("bwd_x"):
                    continue
                share = bound.ns / mine.ns
                claim.add(share >= 0.9, 1 / share, f"{key_text(row, name)}: {100 * share:.0f} %")
            claims.append(claim)
    return claims


# ---- 3: windows of any size ----


def sweep_time(run, op, dtype, k, who="tarn"):
    found = run.best(f"sweep.{op}.{dtype}.k{k}", "fwd", 1, who=who)
    return found.ns if found else None


def swept_run(core, peers):
    """The run that has OpenCV in it, if it has the sweeps."""
    return peers if any(is_sweep(row) for row, _ in peers.keys(1)) else core


def third(core, peers):
    run = swept_run(core, peers)
    flat = Claim("stride 1, 2048x2048: k = 31 at most 1.5 times k = 3")
    ahead = Claim("ahead of OpenCV at every k")
    for op, dtype in SWEPT:
        small, large = (sweep_time(run, op, dtype, k) for k in (3, 31))
        if small and large:
            flat.add(large <= 1.5 * small, large / small, f"{op} {dtype}: {large / small:.2f}x")
        for k in SIZES:
            mine, theirs = sweep_time(run, op, dtype, k), sweep_time(run, op, dtype, k, "opencv")
            if mine and theirs:
                ahead.add(mine <= theirs, mine / theirs, f"{op} {dtype} k = {k}: {show_time(mine)}, OpenCV {show_time(theirs)}")
    return [flat, ahead]


# ---- 4: passes beside the forward pass ----


def passes_beside_forward(core, layout, name, limit, rows):
    claim = Claim(f"{layout}: {name} at most {limit}x fwd" + (" (smooth max)" if rows == "n." else ""))
    for row, forward in core.keys(1):
        suffix = forward[len("fwd"):]
        if not forward.startswith("fwd") or not row.startswith(rows):
            continue
        base, other = core.tarn(row, forward, 1, layout), core.tarn(row, name + suffix, 1, layout)
        if other:
            ratio = other.ns / base.ns
            claim.add(ratio <= limit, ratio / limit, f"{key_text(row, name + suffix)}: {ratio:.2f}x")
    return claim


def fourth(core, peers):
    claims = []
    for layout in LAYOUTS:
        claims += [passes_beside_forward(core, layout, "train", 1.3, ""), passes_beside_forward(core, layout, "jvp", 2, ""),
                   passes_beside_forward(core, layout, "bwd", 2, "n.")]
        claim = Claim(f"{layout}: smooth max forward at least 10x PyTorch's unfold and logsumexp")
        for row, name, mine, peer in peer_ratios(peers, 1, layout):
            if row.startswith("n.") and name == "fwd":
                claim.add(peer.ns >= 10 * mine.ns, 10 * mine.ns / peer.ns, f"{key_text(row, name)}: {peer.ns / mine.ns:.1f}x")
        claims.append(claim)
    return claims


# ---- 5: small problems ----


def fifth(core, peers):
    calls, plans = Claim("a planned call on 1x1x4x4 at most 50 ns"), Claim("making a plan at most 2 µs")
    for row, name in core.keys(1):
        mine = core.tarn(row, name, 1, "nchw")
        if name == "plan":
            plans.add(mine.ns <= 2000, mine.ns / 2000, f"`{row}`: {show_time(mine.ns)}")
        elif row.startswith("o"):
            calls.add(mine.ns <= 50, mine.ns / 50, f"{key_text(row, name)}: {show_time(mine.ns)}")
    return [calls, plans]


# ---- 6: threads ----


def sixth(core, peers):
    threads = core.most_threads()
    claim = Claim(f"{threads} threads at least {0.9 * threads:.1f}x one, on rows that take {COMPUTE_BOUND:g} times their bound or more")
    for row, name in core.keys(threads):
        bound = core.bound(row, name, 1)
        for layout in LAYOUTS:
            one, many = (core.tarn(row, name, t, layout) for t in (1, threads))
            if threads > 1 and one and bound and one.ns >= max(COMPUTE_BOUND * bound.ns, LONG_ENOUGH_NS):
                gain = one.ns / many.ns
                claim.add(gain >= 0.9 * threads, 0.9 * threads / gain, f"{key_text(row, name, layout)}: {gain:.2f}x")
    return [claim]


TARGETS = [("Faster than every peer", first), ("At the streaming bound", second), ("Any window at one cost", third),
           ("Every pass near the forward pass", fourth), ("Small problems", fifth), ("Threads", sixth)]


def lines(core, peers, longest=60):
    """Markdown: each claim with its verdict, and what is lost, worst first."""
    for number, (title, compute) in enumerate(TARGETS, 1):
        yield f"### {number}. {title}\n"
        for claim in compute(core, peers):
            yield f"- {claim.text}: **{claim.verdict}**"
            if claim.total > 1:
                for _, what in sorted(claim.lost, reverse=True)[:longest]:
                    yield f"  - {what}"
        yield ""
    yield "That running a plan allocates nothing, and how much scratch it uses, is for the tests to say, not for a clock."

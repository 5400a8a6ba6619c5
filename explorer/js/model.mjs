// Where things lie: planes of tensors that are shown, taps of a window, windows of a cell.

export const product = (list) => list.reduce((a, b) => a * b, 1);
export const flatten = (at, shape) => at.reduce((sum, v, a) => sum * shape[a] + v, 0);
export function unflatten(index, shape) {
    const at = [];
    for (let a = shape.length - 1; a >= 0; a--) {
        at[a] = index % shape[a];
        index = Math.floor(index / shape[a]);
    }
    return at;
}

// The parts of the shapes: leading axes, spatial axes of x and of y (which a flat output drops).
export function parts(p) {
    const leading = p.rank - p.spatial;
    return {
        lead: p.shape.slice(0, leading),
        xs: p.shape.slice(leading),
        ys: p.flat && p.window === "global" ? p.axes.map(() => 1) : p.out.slice(leading)
    };
}

// Coordinates of the planes shown: leading axes, then spatial axes but the last two, of x and of y.
export function planes(p, at) {
    const {lead, xs, ys} = parts(p), hidden = Math.max(p.spatial - 2, 0),
                     sizes = [...lead, ...xs.slice(0, hidden), ...ys.slice(0, hidden)];
    const place = sizes.map((size, a) => Math.min(at?.[a] ?? 0, size - 1));
    const l = lead.length;
    return {sizes, place, lead: place.slice(0, l), zx: place.slice(l, l + hidden), zy: place.slice(l + hidden), hidden};
}

// A side is the plane of x or of y that is shown: rows, columns, the element at a row and column.
export function side(p, at, which) {
    const {lead, xs, ys} = parts(p), shape = which === "x" ? xs : ys, shown = planes(p, at);
    const z = which === "x" ? shown.zx : shown.zy, rows = p.spatial > 1 ? shape.at(-2) : 1, cols = shape.at(-1);
    const base = flatten([...shown.lead, ...z], [...lead, ...shape.slice(0, shown.hidden)]) * rows * cols;
    return {
        rows,
        cols,
        base,
        shape,
        z,
        place: (r, c) => (p.spatial > 1 ? [...z, r, c] : [c]),
        element: (place) => flatten(shown.lead, lead) * product(shape) + flatten(place, shape)
    };
}

// All taps of window o (spatial coordinates), row-major [W6]: {place, real, over}; over: beyond the padding.
export function tapsOf(engine, p, o, most = 4096) {
    const spans = o.map((v, a) => engine.taps(a, v)), {xs} = parts(p), total = product(spans.map((s) => s.n));
    const taps = [], counts = spans.map((s) => s.n);
    for (let i = 0; i < Math.min(total, most); i++) {
        const j = unflatten(i, counts), place = j.map((v, a) => spans[a].first + spans[a].step * v);
        const real = place.every((v, a) => v >= 0 && v < xs[a]);
        const over = !real && j.some((v, a) => v >= spans[a].counted);
        taps.push({place, real, over});
    }
    const reals = product(spans.map((s) => s.hi - s.lo)), counted = product(spans.map((s) => s.counted));
    return {spans, taps, total, reals, counted};
}

// Windows that read a cell, in increasing order: their coordinates, and for each axis the whole list [S4].
export function windowsOf(engine, p, cell) {
    const spans = cell.map((v, a) => engine.readers(a, v)), counts = spans.map((s) => Math.max(s.hi - s.lo, 0));
    const list = Array.from({length: Math.min(product(counts), 4096)},
        (_, i) => unflatten(i, counts).map((v, a) => spans[a].first + spans[a].step * (spans[a].lo + v)));
    return {spans, counts, total: product(counts), list};
}

// Terms as they are added: in halves [S1] or left to right [S5]; missing ones are null and left out.
export function inHalves(terms) {
    if (terms.length < 2) return terms[0] ?? null;
    const cut = 2 ** (31 - Math.clz32(terms.length - 1));
    return join(inHalves(terms.slice(0, cut)), inHalves(terms.slice(cut)));
}
export const leftToRight = (terms) => {
    const there = terms.filter((t) => t !== null);
    return there.length > 1 ? `(${there.join(" + ")})` : there[0] ?? null;
};
const join = (a, b) => (a === null ? b : b === null ? a : `(${a} + ${b})`);

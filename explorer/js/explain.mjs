// What happened, as sentences. **bold** and [M2], a clause of docs/spec.md, are all the markup there is.
import {DX, DY, GX, GY, INDICES, SHARES, X, Y} from "./engine.mjs";
import {flatten, inHalves, leftToRight, parts, tapsOf, unflatten, windowsOf} from "./model.mjs";
import {brief, exact, pretty} from "./numbers.mjs";

const MOST = 9;     // numbers in a list
const HEAVY = 4e6;  // taps in all windows: above, gradients of single windows are not computed while one points
const place = (at) => `(${at.join(", ")})`;
const short = (text) => (text.length > 7 && !/[eN]/.test(text) ? brief(Number(text.replace("−", "-"))) : text);
const several = (n, one, many = one + "s") => `${n} ${n === 1 ? one : many}`;
const listed = (items, between) => items.slice(0, MOST).join(between) + (items.length > MOST ? `${between}…` : "");

function teller(engine) {
    const values = {};
    return (k, i) => {
        values[k] ??= engine.problem.wide ? engine.elements(k).slice() : engine.numbers(k);
        return pretty(exact(engine, engine.dtype(k), values[k][i]));
    };
}

// The window with spatial coordinates o: everything a picture of it needs, and its story.
export function explainWindow(engine, p, view, x, y, o) {
    const w = tapsOf(engine, p, o), at = y.element(o), number = teller(engine), {xs} = parts(p);
    const real = w.taps.filter((t) => t.real), padded = w.total - w.reals, over = w.total - w.counted;
    const cells = real.map((t) => x.element(t.place)), values = cells.map((i) => short(number(X, i))),
          result = number(Y, at);
    const extreme = p.op === "max" || p.op === "min", tell = [];
    let winner = null, reached = [];
    tell.push(`Window ${place(o)}: `);
    if (w.reals === 0) {
        if (p.op === "smooth" && p.countPad)
            tell.push(`it has no real tap; its ${
                several(w.total, "padding tap")} count as the number 0, and the value is **${result}** [L2].`);
        else
            tell.push(`it has no real tap, so its value is **${result}**${
                extreme              ? ", its index −1 and its gradient nobody’s [M4]"
                    : p.op === "avg" ? " [A3]"
                    : p.op === "lp"  ? " [N1]"
                                     : " [L2]"}.`);
    } else if (extreme) {
        const index = Number(engine.elements(INDICES)[at]);
        winner = unflatten(index, xs);
        reached = real.filter((t) => engine.wasm.same_rank(x.element(winner), x.element(t.place))).map((t) => t.place);
        const nan = result === "NaN";
        tell.push(`${p.op}(${listed(values, ", ")}) = **${result}**. `);
        if (nan) tell.push(`NaN ranks ${p.op === "max" ? "above" : "below"} every number, so it is never lost [M3]. `);
        tell.push(reached.length > 1
                ? `The winner is cell ${place(winner)}, the first of ${
                      w.total > w.taps.length ? "those" : reached.length} that reach it, in reading order [M2].`
                : `The winner is cell ${place(winner)}${
                      p.spatial > 1 ? `, index ${index} in its plane [M5]` : " [M5]"}.`);
    } else if (p.op === "avg") {
        const divisor = engine.wasm.divisor(flatten(o, parts(p).ys));
        tell.push(`(${listed(values, " + ")}) / ${divisor} = **${result}**${
            p.float ? "" : ", the exact quotient rounded half to even [A4]"}. `);
        tell.push(p.divisor > 0 && p.window === "sliding" ? `The divisor ${divisor} was given [A2].`
                : p.countPad && padded ? `The divisor counts ${several(w.reals, "real tap")}${
                                             w.counted > w.reals
                                                 ? ` and ${w.counted - w.reals} in the padding`
                                                 : ""}${over ? `, but not the ${over} beyond it` : ""} [A2].`
                : padded                                     ? `The divisor counts real taps only [A2].`
                                                             : `Every tap is real and counts [A2].`);
    } else if (p.op === "smooth") {
        tell.push(`log Σ exp(${pretty(String(p.beta))}·x) / ${pretty(String(p.beta))} over ${listed(values, ", ")}${
            p.countPad && padded ? ` and ${several(padded, "zero")} of padding` : ""} = **${result}** [L1]. `);
        if (values.includes("NaN")) tell.push("A NaN tap makes its window NaN [L6].");
        else
            tell.push(p.beta > 0 ? "It is never below the maximum, and nearer to it the larger β [L3]."
                                 : "A negative β makes it a smooth minimum [L1].");
    } else {
        tell.push(`(${listed(values.map((v) => `|${v}|`), "ᵖ + ")}ᵖ)^(1/p) with p = ${p.power}: **${result}** [N1]. `);
        tell.push(values.includes("NaN") ? "A NaN tap makes its window NaN [N6]."
                                         : "It is never below the greatest magnitude [N3].");
    }
    if (w.reals && padded && (extreme || p.op === "lp" || (p.op === "smooth" && !p.countPad)))
        tell.push(` ${several(padded, "tap lies", "taps lie")} outside the input and ${
            padded === 1 ? "takes" : "take"} no part [${
            extreme             ? "M1"
                : p.op === "lp" ? "N1"
                                : "L2"}].`);
    const shares = p.float && w.reals && p.work < HEAVY && engine.wasm.shares(at, view === "vjp" ? 1 : 0) === 0
        ? cells.map((i) => number(SHARES, i))
        : null;
    if (view === "vjp" && p.float) tell.push(" " + backwards(p, number(GY, at), reached, winner, shares, w.reals));
    if (view === "jvp" && p.float) tell.push(" " + forwards(p, number, at, x, reached, winner, w.reals));
    const order = p.op === "avg" && p.float && w.total <= 64 && w.reals > 1
        ? orderOf(w, (t) => (t.real ? `x${place(t.place).replaceAll(" ", "")}` : null))
                                    : "";
    return {
        kind: "window",
        o,
        w,
        winner,
        reached,
        shares,
        sentence: tell.join("").trim(),
        order,
        clause: order && "Added in halves, one axis at a time, the outermost first [S1] [S2]:"
    };
}

function backwards(p, gy, reached, winner, shares, reals) {
    if (!reals) return `Its gradient gy = ${gy} goes nowhere.`;
    if (p.op === "avg")
        return shares ? `Of gy = ${gy} every real tap gets **${shares[0]}**, a quotient rounded once [A5].` : "";
    if (p.op === "smooth")
        return `gy = ${gy} is shared out by weight: ${shares ? listed(shares.map(short), ", ") : "…"} [L5].`;
    if (p.op === "lp")
        return `gy = ${gy} times sign(x)·(|x|/y)^(p−1): ${shares ? listed(shares.map(short), ", ") : "…"} [N5].`;
    if (p.ties === "first" || reached.length === 1)
        return `ties=${p.ties} sends all of gy = **${gy}** to ${place(winner)} [M6].`;
    const share = shares?.find((s) => s !== "0");
    return p.ties === "all"
        ? `ties=all sends gy = **${gy}** whole to each of the ${reached.length} [M6].`
        : `ties=split divides gy = ${gy}: ${
              share === undefined ? "an equal share" : `**${share}**`} goes to each of the ${reached.length} [M6].`;
}

function forwards(p, number, at, x, reached, winner, reals) {
    const dy = number(DY, at);
    if (!reals) return `Its tangent is ${dy}.`;
    if (p.op === "avg") return `The tangent is the same average of dx: dy = **${dy}** [A5].`;
    if (p.op === "smooth") return `The tangent is the mean of dx by weight: dy = **${dy}** [L4].`;
    if (p.op === "lp") return `The tangent weighs dx by sign(x)·(|x|/y)^(p−1): dy = **${dy}** [N4].`;
    if (p.ties === "first" || reached.length === 1)
        return `The tangent is the winner’s: dy = **${number(DX, x.element(winner))}** [M6].`;
    const list = listed(reached.map((t) => number(DX, x.element(t))), " + ");
    return `The tangent is ${p.ties === "all" ? list : `(${list}) / ${reached.length}`} = **${dy}** [M6].`;
}

// The sum over a window as it is nested. The outermost axis is summed first, so it is the innermost of the nest.
function orderOf(w, term) {
    const counts = w.spans.map((s) => s.n);
    const fold = (inner) => inner.length === counts.length
        ? term(w.taps[flatten(inner, counts)])
        : inHalves(Array.from({length: counts[counts.length - 1 - inner.length]}, (_, j) => fold([j, ...inner])));
    return unwrapped(fold([]));
}

// An input cell: the windows that read it, and the sum of its gradient in order.
export function explainCell(engine, p, view, x, y, cell) {
    const w = windowsOf(engine, p, cell), number = teller(engine), at = x.element(cell), tell = [];
    tell.push(`Cell ${place(cell)} holds ${number(X, at)}. `);
    const extreme = p.op === "max" || p.op === "min", {xs} = parts(p), flat = flatten(cell, xs);
    const won = extreme ? w.list.filter((o) => Number(engine.elements(INDICES)[y.element(o)]) === flat) : [];
    if (!w.total)
        tell.push(
            `No window reads it${p.float ? ", so its gradient is 0" : ""} [${p.window === "adaptive" ? "W4" : "W1"}].`);
    else {
        tell.push(`${several(w.total, "window reads", "windows read")} it: ${listed(w.list.map(place), " ")}`);
        tell.push(extreme ? `; it wins ${
                                won.length === 0             ? (w.total === 1 ? "not" : "none of them")
                                    : won.length === w.total ? (w.total === 1 ? "it" : "them all")
                                                             : `${won.length} of them`}${
                                won.length && won.length < w.total ? `: ${listed(won.map(place), " ")}` : ""} [M2]. `
                                                                   : ". ");
    }
    let order = "", clause = "";
    if (view === "vjp" && p.float && w.total) {
        const total = number(GX, at);
        tell.push(`Its gradient is **${total}**.`);
        if (w.total <= 36 && p.work * w.total < HEAVY) {
            const terms = new Map(w.list.map((o) => [String(o), contribution(engine, p, x, y, o, cell)]));
            const left = extreme, weighted = p.op === "smooth" || p.op === "lp";
            order = `${sumOver(w, terms, left ? leftToRight : inHalves)} = ${total}`;
            clause = `What each window gives, added one axis at a time, the innermost first, ${
                left ? "left to right [S5]:"
                     : `in halves [S4]${
                           weighted ? `; the cell’s own weight is a factor taken outside the sum [${
                                          p.op === "lp" ? "N5" : "L5"}]`
                                    : ""}:`}`;
        }
    }
    if (view === "jvp" && p.float) tell.push(`Its tangent is dx = ${number(DX, at)}.`);
    return {kind: "cell", cell, w, won, sentence: tell.join("").trim(), order, clause};
}

function contribution(engine, p, x, y, o, cell) {
    engine.wasm.shares(y.element(o), 1);
    return pretty(exact(engine, p.dtype, engine.numbers(SHARES)[x.element(cell)]));
}

// The innermost axis is summed first: it is the innermost of the nest as it stands.
function sumOver(w, terms, add) {
    const lists =
        w.spans.map((s) => Array.from({length: s.n}, (_, j) => (j >= s.lo && j < s.hi ? s.first + s.step * j : null)));
    const fold = (fixed) => fixed.length === lists.length
        ? terms.get(String(fixed)) ?? null
        : add(lists[fixed.length].map((o) => (o === null ? null : fold([...fixed, o]))));
    return unwrapped(fold([]) ?? "0");
}

const unwrapped = (text) => text.replace(/^\((.*)\)$/, (whole, inner) => (balanced(inner) ? inner : whole));
function balanced(text) {
    let depth = 0;
    for (const c of text)
        if ((depth += c === "(" ? 1 : c === ")" ? -1 : 0) < 0) return false;
    return depth === 0;
}

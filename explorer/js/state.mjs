// The whole state of the page, and the fragment of its address that says it:
//   #v=1&p=max+k3s2p1+f32+1x1x6x6&x=r7&gy=ones&sel=2,1&view=vjp
// Values are a rule with a seed (r7), numbers (3,7,-0,nan) or bytes (b.AACAPw), whichever is shortest and exact.
import {DX, GY, X} from "./engine.mjs";
import {exact, fromBase64, parseNumber, toBase64} from "./numbers.mjs";

export const VIEWS = ["value", "winners", "vjp", "jvp"];
export const DEFAULTS = {
    x: "r7",
    dx: "r2",
    gy: "ones"
};
export const TENSOR = {
    x: X,
    dx: DX,
    gy: GY
};
const LONGEST = 1500;  // characters of values in a link

// mulberry32: small, seeded, the same everywhere.
function random(seed) {
    return () => {
        seed = (seed + 0x6d2b79f5) | 0;
        let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
        t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
        return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
}

const RULES = {
    r: (next) => Math.floor(next() * 10),                                                                      // digits
    t: (next) => Math.floor(next() * 3),                                                                       // ties
    n: (next, _, p) => (p.float ? next() * 2 - 1 : Math.floor(next() * 256) - (p.type[0] === "i" ? 128 : 0)),  // noise
    ramp: (_, i) => i,
    ones: () => 1,
    zeros: () => 0,
};
export const isRule = (text) => /^([rtnh]\d{1,9}|ramp|ones|zeros)$/.test(text);

// Bits of all kinds: every other element is zero, least, greatest, infinite or NaN, the rest are digits.
function hostile(engine, k, next) {
    const odd = [0, -0, NaN, Infinity, -Infinity, 1e-45, 5e-324, -1e300, 65504, 0.1];
    const count = engine.wasm.elements(k);
    for (let i = 0; i < count; i++)
        engine.wasm.put(k, i, next() < 0.35 ? odd[Math.floor(next() * odd.length)] : Math.floor(next() * 10));
    if (engine.problem.float) {  // a payload, which rounding a number would not give
        const bytes = engine.bytes(k), size = bytes.length / count, at = Math.floor(next() * count) * size;
        bytes.fill(255, at, at + size);
    }
}

// Fills tensor k of the open problem; throws an Error with a sentence.
export function fillTensor(engine, k, name, text) {
    const count = engine.wasm.elements(k), p = engine.problem;
    if (text instanceof Uint8Array) {
        const bytes = engine.bytes(k);
        if (bytes.length !== text.length) throw new Error(`${name} has ${text.length} bytes; it needs ${bytes.length}`);
        bytes.set(text);
    } else if (isRule(text)) {
        const name = text.replace(/\d+$/, ""), next = random(Number(text.slice(1)) || 0);
        if (name === "h") hostile(engine, k, next);
        else engine.fill(k, Array.from({length: count}, (_, i) => RULES[name](next, i, p)));
    } else if (text.startsWith("b.")) {
        let bytes;
        try {
            bytes = fromBase64(text.slice(2));
        } catch { throw new Error(`${name} has characters that are not base64url`); }
        fillTensor(engine, k, name, bytes);
    } else {
        const words = text.split(",");
        if (words.length !== count) throw new Error(`${name} has ${words.length} values; it needs ${count}`);
        const wide = p.wide && words.every((w) => /^-?\d+$/.test(w));
        const values = words.map((w) => (wide ? BigInt(w) : parseNumber(w)));
        const bad = values.indexOf(null);
        if (bad >= 0) throw new Error(`${name}: "${words[bad].slice(0, 20)}" is not a number`);
        engine.fill(k, values);
    }
}

// What a link says of tensor k, now that it is no rule's any more; "" if that is too long.
export function tellTensor(engine, k) {
    const bytes = engine.bytes(k), coded = "b." + toBase64(bytes);
    const values = engine.problem.wide ? engine.elements(k) : engine.numbers(k);
    const list = Array.from(values, (v) => exact(engine, engine.dtype(k), v)).join(",");
    const before = bytes.slice();
    let same = false;
    if (list.length <= LONGEST && list.length <= coded.length + 200) {
        fillTensor(engine, k, "x", list);
        same = engine.bytes(k).every((b, i) => b === before[i]);
        engine.bytes(k).set(before);
    }
    return same ? list : coded.length <= LONGEST ? coded : "";
}

const numbers = (text) => {
    if (!text || !/^\d{1,6}(,\d{1,6}){0,63}$/.test(text)) return null;
    return text.split(",").map(Number);
};

// A fragment to a state. Unknown keys are ignored; what is missing has its default.
export function parseFragment(fragment) {
    const given = new URLSearchParams(fragment.replace(/^#/, ""));
    const state = {p: given.get("p") ?? "", view: given.get("view") ?? "value"};
    if (!VIEWS.includes(state.view)) state.view = "value";
    for (const name in DEFAULTS) state[name] = given.get(name) || DEFAULTS[name];
    for (const name of ["sel", "cell", "at"]) state[name] = numbers(given.get(name));
    state.idea = given.get("idea");
    return state;
}

export function formatFragment(state) {
    const given = new URLSearchParams({v: 1, p: state.p});
    for (const name in DEFAULTS)
        if (state[name] && state[name] !== DEFAULTS[name]) given.set(name, state[name]);
    for (const name of ["sel", "cell"])
        if (state[name]) given.set(name, state[name]);
    if (state.at?.some((n) => n)) given.set("at", state.at);
    if (state.view !== "value") given.set("view", state.view);
    return "#" + given.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}

// Numbers as text and text as numbers. tarn rounds (Engine.wasm.rounded); here only digits are chosen.

const special = (v) => (v !== v ? "nan"
        : v === Infinity        ? "inf"
        : v === -Infinity       ? "-inf"
        : Object.is(v, -0)      ? "-0"
                                : null);

// The fewest digits that tell v from its neighbours in its dtype.
export function exact(engine, dtype, v) {
    if (typeof v === "bigint") return String(v);
    const word = special(v);
    if (word) return word;
    if (dtype === 0 || dtype > 3) return String(v);
    for (let digits = 1; digits < 9; digits++) {
        const tried = Number(v.toPrecision(digits));
        if (engine.wasm.rounded(dtype, tried) === v) return String(tried);
    }
    return String(Number(v.toPrecision(9)));
}

// As exact(), for readers: a real minus sign, an infinity.
export const pretty = (text) => text.replace("-", "−").replace("inf", "∞").replace("nan", "NaN");

// A few characters for a cell of a grid.
export function brief(v) {
    if (typeof v === "bigint") v = Number(v);
    const word = special(v);
    if (word) return pretty(word);
    if (Number.isInteger(v) && Math.abs(v) < 1e5) return pretty(String(v));
    const size = Math.abs(v);
    if (size >= 1e5 || size < 1e-3) return pretty(v.toExponential(0).replace("e+", "e"));
    return pretty(String(Number(v.toPrecision(3))));
}

// What a person types: a number, nan, inf. null if it is none.
export function parseNumber(text) {
    const word = text.trim().toLowerCase().replace("−", "-").replace("∞", "inf").replace(/^\+/, "");
    if (word === "nan" || word === "-nan") return NaN;
    if (word === "inf" || word === "-inf") return word[0] === "-" ? -Infinity : Infinity;
    return /^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(word) ? Number(word) : null;
}

export function toBase64(bytes) {
    let text = "";
    for (let i = 0; i < bytes.length; i += 4096) text += String.fromCharCode(...bytes.subarray(i, i + 4096));
    return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export const fromBase64 = (text) =>
    Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));

// FIPS 180-4. The page may lie on a plain web server, where browsers offer no digest.
const primes = (count) => {
    const found = [];
    for (let n = 2; found.length < count; n++)
        if (found.every((p) => n % p)) found.push(n);
    return found;
};
const fraction = (v) => ((v - Math.floor(v)) * 2 ** 32) | 0;
const K = primes(64).map((p) => fraction(Math.cbrt(p)));

export function sha256(bytes) {
    const h = primes(8).map((p) => fraction(Math.sqrt(p))), w = new Int32Array(64);
    const padded = new Uint8Array((bytes.length + 72) & ~63), view = new DataView(padded.buffer);
    padded.set(bytes);
    padded[bytes.length] = 128;
    view.setUint32(padded.length - 4, bytes.length * 8);
    const turn = (v, n) => (v >>> n) | (v << (32 - n));
    for (let at = 0; at < padded.length; at += 64) {
        for (let i = 0; i < 64; i++)
            w[i] = i < 16 ? view.getInt32(at + 4 * i)
                          : w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3)) +
                    (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10));
        let [a, b, c, d, e, f, g, i] = h;
        for (let n = 0; n < 64; n++) {
            const one = i + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[n] + w[n];
            const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
            [a, b, c, d, e, f, g, i] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
        }
        [a, b, c, d, e, f, g, i].forEach((v, n) => (h[n] = (h[n] + v) | 0));
    }
    return h.map((v) => (v >>> 0).toString(16).padStart(8, "0")).join("");
}

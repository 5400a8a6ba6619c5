// "Who says what": what tarn, PyTorch, ONNX, TensorFlow and JAX make of the same problem, each answer with its source.
// Marks: "=" as tarn, "≠" otherwise, "–" cannot be said there, "?" not known.
import {parts, product, tapsOf} from "./model.mjs";

export const SYSTEMS = ["tarn", "PyTorch 2.13", "ONNX opset 22", "TensorFlow (CPU)", "JAX (lax)"];
const same = (text, source) => ({mark: "=", text, source});
const differs = (text, source) => ({mark: "≠", text, source});
const cannot = (text, source) => ({mark: "–", text, source});
const unknown = (text, source) => ({mark: "?", text, source});
const judge = (equal, text, source) => (equal ? same : differs)(text, source);

const PT_SHAPE = "ATen/native/Pool.h, pooling_output_shape", PT_MAX = "ATen/native/cpu/MaxPoolKernel.cpp";
const ONNX_DOC = "onnx/docs/Operators.md", TF_DOC = "tf.nn documentation",
      JAX_SRC = "jax/_src/lax/windowed_reductions.py";
const ours = (clause) => `docs/spec.md ${clause}`;

// Which of them can say this problem at all.
function sayable(p) {
    const uneven = p.axes.some((a) => a.lo !== a.hi), dilated = p.axes.some((a) => a.dilation !== 1);
    const far = p.axes.some((a) => Math.max(a.lo, a.hi) > Math.floor((a.dilation * (a.kernel - 1) + 1) / 2));
    const sliding = p.window === "sliding", padded = p.axes.some((a) => a.lo || a.hi);
    const integer = !p.float, byte = p.type === "i8" || p.type === "u8", global = p.window === "global";
    if (p.op === "smooth") return {pt: "no smooth max", onnx: "no smooth max", tf: "no smooth max", jax: ""};
    const pt = p.op === "min"                      ? "no min pooling; use −max(−x)"
        : p.spatial > 3                            ? "at most 3 spatial axes"
        : sliding && uneven                        ? "padding must be the same on both sides"
        : sliding && far                           ? "padding is at most half the window"
        : sliding && dilated && p.op !== "max"     ? "only max has dilation"
        : p.op === "lp" && sliding && padded       ? "lp_pool has no padding"
        : p.op === "lp" && p.window === "adaptive" ? "no adaptive lp"
        : integer && (!sliding || (p.op === "avg" && p.type !== "i64"))
        ? (sliding ? "averages of int64 alone" : "adaptive pooling takes floating types")
        : /u(16|32|64)/.test(p.type) ? `no ${p.type}`
                                     : "";
    const onnx = p.op === "min"                           ? "no min pooling"
        : p.window === "adaptive"                         ? "no adaptive pooling"
        : p.op === "lp" && p.power % 1                    ? "LpPool takes a whole p"
        : p.divisor && sliding                            ? "no given divisor"
        : integer && !(p.op === "max" && byte && !global) ? "floating types only, MaxPool bytes too"
                                                          : "";
    const tf = p.op === "min" || p.op === "lp" ? `no ${p.op} pooling`
        : p.window === "adaptive"              ? "no adaptive pooling"
        : sliding && p.ceil                    ? "no ceil mode"
        : sliding && dilated                   ? "no dilation"
        : p.divisor && sliding                 ? "no given divisor"
        : sliding && padded && p.op === "avg"  ? "avg takes SAME or VALID, no numbers"
        : p.spatial > 3                        ? "at most 3 spatial axes"
        : integer && p.op === "avg" && sliding ? "averages take floating types"
        : /u(32|64)/.test(p.type) && sliding   ? `no ${p.type}`
                                               : "";
    const jax = p.window === "adaptive" ? "reduce_window has no adaptive windows" : "";
    return {pt, onnx, tf, jax};
}

function sizes(engine, p, can) {
    const {ys, xs} = parts(p), text = ys.join(" × ");
    if (p.window !== "sliding")
        return [
            same(text, ours(p.window === "global" ? "W5" : "W4")),
            can.pt ? cannot(can.pt, "torch.nn.functional") : same(text, "ATen adaptive pooling"),
            can.onnx ? cannot(can.onnx, ONNX_DOC) : same(text, "Global…Pool"),
            can.tf ? cannot(can.tf, TF_DOC) : same(text, "tf.reduce_*"),
            can.jax ? cannot(can.jax, JAX_SRC) : same(text, JAX_SRC)
        ];
    const floored = p.axes.map((a, i) => engine.wasm.output_size(xs[i], a.kernel, a.stride, a.dilation, a.lo, a.hi, 0));
    const equal = floored.every((n, i) => n === ys[i]), floor = floored.join(" × ");
    return [
        same(text + (p.ceil ? ", rounded up; a last window beyond the input is dropped" : ""),
            ours(p.ceil ? "W3" : "W2")),
        can.pt ? cannot(can.pt, "torch.nn.functional") : same(p.ceil ? `${text}, the same drop rule` : text, PT_SHAPE),
        can.onnx
            ? cannot(can.onnx, ONNX_DOC)
            : same(p.ceil ? `${text} since opset 22; older ones lack the drop rule` : text, "onnx shape inference"),
        can.tf ? cannot(p.ceil ? `no ceil mode: ${floor} at best` : can.tf, TF_DOC) : same(text, TF_DOC),
        can.jax ? cannot(can.jax, JAX_SRC)
                : judge(equal, p.ceil ? `${floor}: no ceil mode, more padding instead` : floor, JAX_SRC)
    ];
}

function divisors(engine, p, o, can) {
    const w = tapsOf(engine, p, o), {ys} = parts(p), real = w.reals, full = product(w.spans.map((s) => s.n));
    const mine = engine.wasm.divisor(o.reduce((s, v, a) => s * ys[a] + v, 0));
    return [
        same(`${mine}${
                 p.divisor        ? ", given"
                     : p.countPad ? ", padding counted, overhang not"
                                  : ", real taps only"}`,
            ours("A2")),
        can.pt ? cannot(can.pt, "torch.nn.functional")
               : same(`${mine}, the same rule${p.divisor || p.countPad ? "" : "; padding counts by default there"}`,
                     "ATen/native/cpu/AvgPoolKernel.cpp"),
        can.onnx ? cannot(can.onnx, ONNX_DOC)
                 : same(`${mine} with count_include_pad=${p.countPad ? 1 : 0}; the default there is 0${
                            full !== w.counted && p.countPad ? `. Some runtimes divide by all ${full}` : ""}`,
                       "ONNX Runtime since opset 19; onnxruntime#29629"),
        can.tf ? cannot(`${can.tf}; SAME would divide by ${real}`, TF_DOC)
               : judge(real === mine, `${real}: real taps only, always`, TF_DOC),
        can.jax ? cannot(can.jax, JAX_SRC)
                : unknown(`yours to choose: divide by a pooled array of ones (${real} here) or by a number`, JAX_SRC)
    ];
}

const NAN = (can) => [same("NaN, the first of the window, payload and all", ours("M3")),
    can.pt ? cannot(can.pt, "torch.nn.functional")
           : differs("NaN too, but the index and gradient of the last NaN", PT_MAX),
    can.onnx ? cannot(can.onnx, ONNX_DOC)
             : unknown("not said. The runtime’s CPU kernels keep it only as the first tap, or by the instruction set",
                   "MaxPool-22; ONNX Runtime pool_functors.h, MLAS"),
    can.tf
        ? cannot(can.tf, TF_DOC)
        : differs("kept in vector lanes, lost in the remainder: [nan, nan, 3] for equal channels", "tensorflow#125965"),
    can.jax ? cannot(can.jax, JAX_SRC)
            : differs("NaN, but its derivative selects with ≥ and so never selects it", JAX_SRC)];

const EMPTY = (p, can) => p.op === "avg" ? [same("0", ours("A3")), can.pt ? cannot(can.pt, "torch.nn.functional") : same("0", "ATen/native/cpu/AvgPoolKernel.cpp"),
    can.onnx ? cannot(can.onnx, ONNX_DOC) : unknown("not said; the reference divides 0 by 0", "onnx#1922; onnx reference"), cannot("cannot occur: SAME and VALID leave a real tap", TF_DOC),
    can.jax ? cannot(can.jax, JAX_SRC) : differs("0/0 = NaN if divided by a pooled array of ones", JAX_SRC)]
    : [same("0, index −1, no gradient", ours("M4")),
    can.pt ? cannot(can.pt, "torch.nn.functional") : differs("−inf (least integer) and an index that may lie outside the input", PT_MAX),
    can.onnx ? cannot(can.onnx, ONNX_DOC) : unknown("not said since 2019; the runtime gives the lowest number", "onnx#1922; ONNX Runtime pool_functors.h"),
    can.tf ? cannot(can.tf, TF_DOC) : unknown("not known", ""),
    can.jax ? cannot(can.jax, JAX_SRC) : differs("the initial value, usually −inf", JAX_SRC)];

function winners(engine, p, o, index, can) {
    const {lead, xs} = parts(p), plane = product(xs);
    if (index < 0) return null;
    const channels = lead.at(-1) ?? 1;
    return [
        same(`${index}: in the plane; ties go to the first`, ours("M2, M5")),
        can.pt ? cannot(can.pt, "torch.nn.functional") : same(`${index}: in the plane; the first`, PT_MAX),
        can.onnx ? cannot(can.onnx, ONNX_DOC)
                 : judge(product(lead) === 1,
                       `${index}${product(lead) === 1 ? "" : ` + plane × ${plane}`}: over the whole tensor; the first`,
                       "MaxPool-22, output Indices"),
        can.tf ? cannot(can.tf, TF_DOC)
               : judge(channels === 1,
                     channels === 1 ? `${index}: one channel` : `${index} × ${channels} + channel: channels counted`,
                     "tf.nn.max_pool_with_argmax"),
        can.jax ? cannot(can.jax, JAX_SRC) : cannot("no index; the gradient goes to the first", "XLA SelectAndScatter")
    ];
}

const LP = (p, can) => [same("(Σ|x|ᵖ)^(1/p)", ours("N1")),
    can.pt ? cannot(can.pt, "torch.nn.functional.lp_pool2d")
           : judge(p.power % 2 === 0, "x^p without the magnitude: odd p cancels signs, fractions give NaN",
                 "torch.nn.functional.lp_pool2d; pytorch#184037"),
    can.onnx ? cannot(can.onnx, ONNX_DOC)
             : same("the same; the reference rescales windows at borders", "LpPool-22; onnx reference"),
    cannot("no lp pooling; TFLite’s L2 is a root of a mean", "TFLite reference kernels"),
    cannot("composed by hand: reduce_window of |x|ᵖ", JAX_SRC)];

const INTEGERS = [
    same("exact, rounded half to even", ours("A4")), differs("int64 only, cut towards zero", "ATen avg_pool2d"),
    cannot("floating types only", ONNX_DOC), cannot("floating types only", TF_DOC),
    differs("an integer division of the sum, as you write it", JAX_SRC)
];

// Rows of the table for the open problem and window o: [question, answers by system].
export function whoSaysWhat(engine, p, o, index) {
    const can = sayable(p), rows = [["Output size", sizes(engine, p, can)]];
    if (p.op === "avg" && p.window === "sliding")
        rows.push([`Divisor of window (${o.join(", ")})`, divisors(engine, p, o, can)]);
    if (p.op === "avg" && !p.float) rows.push(["Mean of integers", INTEGERS]);
    if (p.op === "max" || p.op === "min") {
        const row = winners(engine, p, o, index, can);
        if (row) rows.push([`Winner of window (${o.join(", ")})`, row]);
        rows.push(["A NaN in the window", NAN(can)]);
    }
    if (p.op === "lp") rows.push(["What is computed", LP(p, can)]);
    if (p.window === "sliding" && (p.op === "max" || p.op === "min" || p.op === "avg"))
        rows.push(["A window of padding alone", EMPTY(p, can)]);
    return rows;
}

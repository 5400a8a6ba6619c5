// The problem in other people's words: what "copy as" puts on the clipboard.
import {parts} from "./model.mjs";

const NUMPY = [
    "float64", "float32", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
    "uint64"
];
const tuple = (list) => (list.length === 1 ? `(${list[0]},)` : `(${list.join(", ")})`);
const py = (flag) => (flag ? "True" : "False");
const axis = (p, name) => p.axes.map((a) => a[name]);

export function command(p) {
    const name = (p.window === "sliding" ? "" : p.window + "-") + p.op;
    return `tarn ${name} x.npy --problem '${p.text}' -o - | sha256sum`;
}

const load = (p) => p.type === "bf16" ? `import ml_dtypes\nx = numpy.load("x.npy").view(ml_dtypes.bfloat16)`
                                      : `x = numpy.load("x.npy")          # ${p.shape.join(" × ")}, ${NUMPY[p.dtype]}`;

function python(p) {
    const pool = `tarn.Pool.parse(${JSON.stringify(poolWords(p))})`;
    const derivatives = p.float ? `gx = pool.vjp(x, y)\ndy = pool.jvp(x, x)\n` : "";
    return `import numpy, tarn\n${load(p)}\npool = ${pool}\ny = pool(x)\n${derivatives}`;
}

// The words of a problem string that say the pool: all but dtype, shape and layout.
function poolWords(p) {
    const words =
        p.text.split(" ").filter((w) => w !== p.type && w !== "last" && !/^\d+(x\d+)*$/.test(w) && !/^d\d$/.test(w));
    return [...words, `d${p.spatial}`].join(" ");
}

function torch(p) {
    const n = p.spatial,
          F = `import numpy, torch, torch.nn.functional as F\nx = torch.from_numpy(numpy.load("x.npy"))\n`;
    const no = (why) =>
        `# PyTorch cannot say this: ${why}.\n# tarn.torch can: tarn.torch takes tensors, with gradients.\n${python(p)}`;
    if (p.type === "bf16") return no("NumPy files have no bfloat16");
    if (n > 3) return no("at most three spatial axes");
    if (p.op === "smooth") {
        if (p.window !== "sliding" || p.axes.some((a) => a.dilation !== 1 || a.lo || a.hi) || p.ceil || n !== 2)
            return no("it has no smooth max");
        return `${F}b = ${p.beta}                        # log-sum-exp, by hand\nw = x.unfold(-2, ${
            p.axes[0].kernel}, ${p.axes[0].stride}).unfold(-2, ${p.axes[1].kernel}, ${
            p.axes[1].stride})\ny = torch.logsumexp(b * w, (-2, -1)) / b\n`;
    }
    if (p.window !== "sliding") {
        if (p.op === "lp") return no("it has no such pooling of norms");
        const sign = p.op === "min" ? "-" : "", kind = p.op === "avg" ? "avg" : "max";
        return `${F}y = ${sign}F.adaptive_${kind}_pool${n}d(${sign}x, ${tuple(parts(p).ys)})\n`;
    }
    const sliding = `${tuple(axis(p, "kernel"))}, ${tuple(axis(p, "stride"))}`,
          even = p.axes.every((a) => a.lo === a.hi);
    if (!even) return no("its padding is the same on both sides");
    if (p.axes.some((a) => a.lo > Math.floor((a.dilation * (a.kernel - 1) + 1) / 2)))
        return no("its padding is at most half the window");
    const pad = tuple(axis(p, "lo")), ceil = `ceil_mode=${py(p.ceil)}`;
    if (p.op === "lp")
        return p.axes.some((a) => a.lo || a.dilation > 1) || n > 2
            ? no("its lp_pool has neither padding nor dilation")
            : `${F}# x.abs(): PyTorch raises x itself to the power\ny = F.lp_pool${n}d(x.abs(), ${p.power}, ${
                  sliding}, ${ceil})\n`;
    if (p.op === "avg") {
        if (p.axes.some((a) => a.dilation > 1)) return no("its averages have no dilation");
        const divisor = p.divisor ? (n === 1 ? null : `, divisor_override=${p.divisor}`) : "";
        return divisor === null ? no("avg_pool1d has no given divisor")
                                : `${F}y = F.avg_pool${n}d(x, ${sliding}, ${pad}, ${ceil}, count_include_pad=${
                                      py(p.countPad)}${divisor})\n`;
    }
    const call = `${sliding}, ${pad}, ${tuple(axis(p, "dilation"))}, ${ceil}`;
    return p.op === "min" ? `${F}y = -F.max_pool${n}d(-x, ${call})\n`
                          : `${F}y, indices = F.max_pool${n}d(x, ${call}, return_indices=True)\n`;
}

function jax(p) {
    const ones = p.shape.slice(0, p.rank - p.spatial).map(() => 1),
          head = `import numpy, jax.numpy as jnp\nfrom jax import lax\nx = jnp.asarray(numpy.load("x.npy"))\n`;
    if (p.window === "adaptive") return `# lax.reduce_window has no adaptive windows. tarn.jax has:\n${python(p)}`;
    const global = p.window === "global", {xs} = parts(p);
    const window = tuple([...ones, ...(global ? xs : axis(p, "kernel"))]),
          strides = tuple([...ones, ...(global ? xs.map(() => 1) : axis(p, "stride"))]);
    const behind = (a, i) => p.ceil ? (parts(p).ys[i] - 1) * a.stride + a.dilation * (a.kernel - 1) + 1 - xs[i] - a.lo
                                    : a.hi;  // what windows reach
    const pads = tuple(
        [...ones.map(() => "(0, 0)"), ...p.axes.map((a, i) => (global ? "(0, 0)" : `(${a.lo}, ${behind(a, i)})`))]);
    const dilation = tuple([...ones, ...p.axes.map((a) => (global ? 1 : a.dilation))]);
    const fold = (array, start, op) =>
        `lax.reduce_window(${array}, ${start}, ${op}, ${window}, ${strides}, ${pads}, window_dilation=${dilation})`;
    const ceil = p.ceil && !global ? "# no ceil mode there: padding behind says how far windows hang over\n" : "";
    if (p.op === "max" || p.op === "min") {
        const start = p.float ? (p.op === "max" ? "-jnp.inf" : "jnp.inf")
                              : `jnp.iinfo(x.dtype).${p.op === "max" ? "min" : "max"}`;
        return `${head}${ceil}y = ${fold("x", `jnp.array(${start}, x.dtype)`, `lax.${p.op}`)}\n`;
    }
    if (p.op === "avg") {
        const by = p.divisor && !global ? p.divisor
            : p.countPad || global      ? (global ? xs : axis(p, "kernel")).join(" * ")
                                        : fold("jnp.ones_like(x)", "0.0", "lax.add");
        return `${head}${ceil}y = ${fold("x", "0.0", "lax.add")} / (${by})\n`;
    }
    if (p.op === "lp")
        return `${head}${ceil}y = ${fold(`jnp.abs(x) ** ${p.power}`, "0.0", "lax.add")} ** (1 / ${p.power})\n`;
    return `${head}${ceil}b = ${
        p.beta}\nm = x.max() if b > 0 else x.min()   # one shift for all windows: not as exact as tarn's\ny = m + jnp.log(${
        fold("jnp.exp(b * (x - m))", "0.0", "lax.add")}) / b\n`;
}

function c(p) {
    return `#include <tarn.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
    tarn_pool pool;
    tarn_view x, y;
    tarn_error error;
    if (tarn_problem_parse("${p.text}", &pool, &x, &error) ||
        tarn_output_view(&pool, &x, &y, &error)) {
        fprintf(stderr, "%s\\n", error.message);
        return 1;
    }
    x.data = calloc(1, tarn_view_bytes(&x)); /* your values */
    y.data = malloc(tarn_view_bytes(&y));
    if (tarn_pool_forward(&pool, &x, &y, &error))
        fprintf(stderr, "%s\\n", error.message);
    free(x.data);
    free(y.data);
    return 0;
}
`;
}

function onnx(p) {
    const lists = (name) => `[${axis(p, name).join(", ")}]`, global = p.window === "global";
    const no = p.op === "smooth" || p.op === "min" ? `no ${p.op} pooling`
        : p.window === "adaptive"      ? "no adaptive pooling"
        : p.divisor && !global         ? "no given divisor"
        : p.op === "lp" && p.power % 1 ? "LpPool takes a whole p"
                                       : "";
    if (no) return `# ONNX cannot say this: ${no}.\n`;
    const kind = {max: "MaxPool", avg: "AveragePool", lp: "LpPool"}[p.op], attributes = [];
    if (!global)
        attributes.push(`kernel_shape=${lists("kernel")}, strides=${lists("stride")}`,
            `pads=[${[...axis(p, "lo"), ...axis(p, "hi")].join(", ")}], dilations=${lists("dilation")}, ceil_mode=${
                + p.ceil}`);
    if (p.op === "avg" && !global) attributes.push(`count_include_pad=${+ p.countPad}`);
    if (p.op === "lp") attributes.push(`p=${p.power}`);
    const outputs = p.op === "max" && !global ? `["y", "indices"]` : `["y"]`;
    return `from onnx import helper            # opset 22\nnode = helper.make_node("${global ? "Global" : ""}${
        kind}", ["x"], ${outputs}${attributes.map((a) => `,\n    ${a}`).join("")})\n`;
}

export const CODES = [
    ["Problem string", (p) => p.text], ["tarn command", command], ["Python, tarn", python], ["PyTorch", torch],
    ["JAX", jax], ["C", c], ["ONNX", onnx]
];

// The page in Node: what is in the built file, not what is beside it.
import assert from "node:assert/strict";
import {execFileSync} from "node:child_process";
import {createHash} from "node:crypto";
import {existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import test from "node:test";
import vm from "node:vm";
import {gunzipSync, gzipSync} from "node:zlib";

import {CODES, command} from "../js/codes.mjs";
import {Engine, FORWARD, GY, INDICES, JVP, VJP, WINNERS, X, Y} from "../js/engine.mjs";
import {explainCell, explainWindow} from "../js/explain.mjs";
import {readNpy, writeNpy} from "../js/files.mjs";
import {fragmentOf, GALLERY} from "../js/gallery.mjs";
import {flatten, inHalves, parts, planes, side, tapsOf, unflatten, windowsOf} from "../js/model.mjs";
import {exact, parseNumber, sha256} from "../js/numbers.mjs";
import {SYSTEMS, whoSaysWhat} from "../js/peers.mjs";
import {DEFAULTS, fillTensor, formatFragment, parseFragment, tellTensor, TENSOR, VIEWS} from "../js/state.mjs";

import {compareBits} from "./bits.mjs";

const root = new URL("../..", import.meta.url).pathname;
const page = readFileSync(join(root, "build/explorer/tarn-explorer.html"), "utf8");
const part = (id) => new RegExp(`<script[^>]* id="${id}"[^>]*>([^]*?)</script>`).exec(page)[1];
const module = new WebAssembly.Module(gunzipSync(Buffer.from(part("wasm"), "base64")));
const engine = new Engine(module);
const BUDGET = 220e3;  // bytes on the wire

// splitmix32, as small as a generator can be.
function generator(seed) {
    return (n) => {
        seed = (seed + 0x9e3779b9) | 0;
        let t = seed ^ (seed >>> 16);
        t = Math.imul(t, 0x21f0aaad);
        t ^= t >>> 15;
        t = Math.imul(t, 0x735a2d97);
        return ((t ^ (t >>> 15)) >>> 0) % n;
    };
}

const OPERATORS = ["max", "min", "avg", "smooth", "lp"];
function randomProblem(next) {
    const op = OPERATORS[next(5)], spatial = 1 + next(3), real = ["f64", "f32", "f16", "bf16"];
    const type = op === "smooth" || op === "lp"
        ? real[next(4)]
        : [...real, "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"][next(12)];
    const window = next(6) === 0 ? "global"
        : next(5) === 0          ? `a${1 + next(5)}`
                                 : `k${1 + next(4)}s${1 + next(3)}p${next(3)}:${next(3)}e${1 + next(2)}`;
    const shape = [
        ...Array.from({length: next(3)}, () => 1 + next(3)),
        ...Array.from({length: spatial}, () => 4 + next(spatial === 3 ? 3 : 8))
    ];
    const extra = {
        max: ["ties=all", "ties=split"],
        min: ["ties=all"],
        avg: ["nopad", "div=3"],
        smooth: ["beta=-1.5", "nopad"],
        lp: ["p=3", "p=1.5"]
    }[op];
    return `${op} ${window} ${type} d${spatial} ${shape.join("x")}${window[0] === "k" && next(2) ? " ceil" : ""}${
        next(4) || shape.length === spatial ? "" : " last"} ${
        next(2) && !(window[0] !== "k" && extra[next(extra.length)].startsWith("div")) ? extra[0] : ""}`
        .trim();
}

function fillAll(state) {
    for (const name in TENSOR) fillTensor(engine, TENSOR[name], name, state[name]);
    const p = engine.problem;
    engine.results([FORWARD, ...(p.op === "max" || p.op === "min" ? [WINNERS] : []), ...(p.float ? [JVP, VJP] : [])]);
}

test("500 random problems with hostile values: the native library's bits", () => {
    const native = execFileSync(join(root, "build/explorer/bits"), ["5", "500"], {maxBuffer: 2 ** 28});
    const {problems, compared, differing} = compareBits(module, native);
    assert.equal(problems, 500);
    assert.ok(compared > 1200);
    assert.deepEqual(differing, []);
});

test("size: at most 220 KB on the wire", () => {
    const wire = gzipSync(page, {level: 9}).length;
    assert.ok(wire <= BUDGET, `${wire} bytes`);
});

test("the policy allows the page's own script and style, and nothing else", () => {
    const policy = /Content-Security-Policy" content="([^"]*)"/.exec(page)[1];
    const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
    assert.ok(policy.includes(`script-src ${hash(part("app"))} 'wasm-unsafe-eval'`));
    assert.ok(policy.includes(`style-src ${hash(/<style>([^]*?)<\/style>/.exec(page)[1])}`));
    assert.ok(policy.startsWith("default-src 'none'"));
    assert.ok(!/unsafe-inline|'unsafe-eval'|https?:|connect-src/.test(policy));
    assert.ok(!/(src|href)="https?:/.test(page.replace(part("app"), "")));
    assert.ok(!/ style="| on[a-z]+="/.test(page.slice(0, page.indexOf('id="clauses"'))));
    new vm.Script(part("app"));
});

test("clauses that sentences cite are in the page, whole", () => {
    const clauses = JSON.parse(part("clauses")),
          cited = new Set([...part("app").matchAll(/\[([A-Z]\d)(?:\]|, )/g)].map((m) => m[1]));
    assert.ok(cited.size > 20);
    for (const name of cited) assert.ok(clauses[name]?.length > 30, name);
    assert.match(clauses.W1, /o\*s - lo \+ e\*j/);
});

test("the gallery: every link opens, selects what it says, cites a clause, and stands in docs/explorer.md", () => {
    const listed = readFileSync(join(root, "docs/explorer.md"), "utf8");
    assert.ok(GALLERY.length >= 12);
    for (const idea of GALLERY) {
        const state = parseFragment(fragmentOf(idea)), p = engine.open(state.p);
        assert.equal(p.error, undefined, idea[0]);
        fillAll(state);
        const x = side(p, state.at, "x"), y = side(p, state.at, "y");
        const told = state.sel ? explainWindow(engine, p, state.view, x, y, state.sel)
                               : explainCell(engine, p, state.view, x, y, state.cell);
        assert.ok(told.sentence.length > 20);
        assert.match(idea[2], /\[[A-Z]\d\]/);
        assert.ok(listed.includes(`tarn-explorer.html#idea=${idea[0]})`), `${idea[0]} is not in docs/explorer.md`);
    }
    for (const file of ["docs/spec.md", "docs/tutorial.md", "docs/explorer.md"])
        for (const [, name] of readFileSync(join(root, file), "utf8").matchAll(/tarn-explorer\.html#idea=([\w-]+)/g))
            assert.ok(GALLERY.some((idea) => idea[0] === name), `${file}: no idea ${name}`);
});

test("10 000 random states through a link and back", () => {
    const next = generator(3), rules = ["r", "t", "n", "h"];
    let values = 0;
    for (let n = 0; n < 10000; n++) {
        let p;
        do p = engine.open(randomProblem(next));
        while (p.error);
        const {lead, xs, ys} = parts(p), state = {
            p: p.text,
            view: VIEWS[next(4)],
            sel: null,
            cell: null,
            at: planes(p, null).sizes.map((s) => next(s)),
            idea: null
        };
        if (next(2)) state.sel = ys.map((s) => next(s));
        else state.cell = xs.map((s) => next(s));
        for (const name in DEFAULTS) state[name] = `${rules[next(4)]}${next(1e6)}`;
        if (n % 10 === 0) {  // typed values instead of rules
            for (const name in TENSOR) {
                fillTensor(engine, TENSOR[name], name, state[name]);
                const before = engine.bytes(TENSOR[name]).slice(), text = tellTensor(engine, TENSOR[name]);
                if (!text) continue;
                engine.bytes(TENSOR[name]).fill(0);
                fillTensor(engine, TENSOR[name], name, text);
                assert.deepEqual(engine.bytes(TENSOR[name]), before, `${p.text} ${name}=${text}`);
                state[name] = text;
                values++;
            }
        }
        const fragment = formatFragment(state), back = parseFragment(fragment);
        if (!state.at.some((v) => v)) state.at = null;
        assert.deepEqual(back, state, fragment);
        assert.equal(formatFragment(back), fragment);
        assert.ok(fragment.length < 5200);
    }
    assert.ok(values > 2500);
});

test("10 000 damaged links: a sentence or a problem, never an exception of another kind", () => {
    const next = generator(9), good = GALLERY.map(fragmentOf);
    let refused = 0;
    for (let n = 0; n < 10000; n++) {
        const text = [...good[next(good.length)]];
        for (let times = 1 + next(4); times > 0; times--) {
            const at = next(text.length), kind = next(4);
            if (kind === 0) text.splice(at, 1 + next(8));
            else if (kind === 1) text.splice(at, 0, String.fromCharCode(next(3) ? 32 + next(95) : next(65536)));
            else if (kind === 2) text[at] = "0123456789xk-,:%&=+e"[next(20)];
            else text.splice(at, 0, ...text.slice(next(text.length), next(text.length) + 9));
        }
        const state = parseFragment(text.join("")), p = engine.open(state.p);
        if (p.error) {
            refused++;
            assert.ok(p.error.length > 10 && p.error.length < 400);
            continue;
        }
        assert.ok(p.shape.reduce((a, b) => a * b, 1) <= 65536 && p.out.reduce((a, b) => a * b, 1) <= 65536);
        try {
            for (const name in TENSOR) fillTensor(engine, TENSOR[name], name, state[name]);
        } catch (error) {
            refused++;
            assert.equal(error.constructor, Error, error.stack);
            assert.match(error.message, /^(x|dx|gy)/);
        }
    }
    assert.ok(refused > 1000 && refused < 9900, `${refused} refused`);
});

test("problems that the page has no sentences for are refused with one", () => {
    for (const text of ["mode k2 u8 4x4", "max k2 f32 4x4 skip=nan", "avg k2 i8 4x4 skip=3", "max k2 f32 d1 4 piece=8:2:1:2"])
        assert.equal(engine.open(text).error, "this page shows no modes, skipped taps or pieces", text);
    assert.equal(engine.open("avg k2 i8 4x4").error, undefined);
});

test("taps, windows, winners and divisors agree with one another and with the output", () => {
    const next = generator(21);
    for (let n = 0; n < 300; n++) {
        const p = engine.open(randomProblem(next));
        if (p.error) continue;
        fillAll({x: `t${n}`, dx: "r1", gy: "r2"});
        const x = side(p, null, "x"), y = side(p, null, "y"), {xs, ys} = parts(p), read = new Map();
        const outs = ys.reduce((a, b) => a * b, 1);
        for (let i = 0; i < outs; i++) {
            const o = unflatten(i, ys), w = tapsOf(engine, p, o);
            for (const t of w.taps.filter((t) => t.real))
                read.set(String(t.place), [...(read.get(String(t.place)) ?? []), String(o)]);
            assert.equal(w.taps.filter((t) => t.real).length, w.reals);
            if (p.op === "max" && w.reals) {
                const best =
                    Math.max(...w.taps.filter((t) => t.real).map((t) => engine.numbers(X)[x.element(t.place)]));
                assert.equal(engine.numbers(Y)[y.element(o)], best, p.text);
            }
        }
        for (let i = 0; i < xs.reduce((a, b) => a * b, 1); i++) {
            const cell = unflatten(i, xs);
            assert.deepEqual(
                windowsOf(engine, p, cell).list.map(String).sort(), (read.get(String(cell)) ?? []).sort(), p.text);
        }
    }
});

test("sentences: what they say is what tarn computed", () => {
    const told = (fragment) => {
        const state = parseFragment(fragment), p = engine.open(state.p);
        fillAll(state);
        const x = side(p, state.at, "x"), y = side(p, state.at, "y");
        return state.sel ? explainWindow(engine, p, state.view, x, y, state.sel)
                         : explainCell(engine, p, state.view, x, y, state.cell);
    };
    assert.match(told("#p=max+k2+f32+2x2&x=3,7,7,1&sel=0,0&view=vjp&gy=0.5").sentence,
        /max\(3, 7, 7, 1\) = \*\*7\*\*\. The winner is cell \(0, 1\), the first of 2 .*\[M2\].*ties=first sends all of gy = \*\*0\.5\*\* to \(0, 1\) \[M6\]/);
    assert.match(told("#p=avg+k3s2p1+f32+6x6+ceil&x=ones&sel=3,3").sentence,
        /\(1\) \/ 4 = \*\*0\.25\*\*.* but not the 5 beyond it \[A2\]/);
    assert.match(told("#p=max+k2s1p2+f32+3x3&sel=0,0").sentence, /no real tap.*\*\*0\*\*.*\[M4\]/);
    assert.match(told("#p=max+k2s1+f32+2x2&x=1,nan,2,3&sel=0,0").sentence, /NaN ranks above.*\[M3\]/);
    assert.equal(told("#p=avg+k3+f32+d1+3&x=1,2,4&sel=0").order, "(x(0) + x(1)) + x(2)");
    const cell = told("#p=max+k3s1+f32+4x4&x=1,2,3,2,4,9,5,1,3,2,8,0,1,6,2,3&cell=1,1&view=vjp&gy=1,0.5,0.25,2");
    assert.match(cell.sentence, /4 windows read it.*it wins them all.*\*\*3\.75\*\*/);
    assert.equal(cell.order, "(1 + 0.5) + (0.25 + 2) = 3.75");
    assert.equal(inHalves(["a", "b", "c", "d", "e"]), "(((a + b) + (c + d)) + e)");
});

test("who says what: a mark, words and a source in every cell, for random problems", () => {
    const next = generator(4);
    for (let n = 0; n < 400; n++) {
        const p = engine.open(randomProblem(next));
        if (p.error) continue;
        fillAll({x: "r1", dx: "r1", gy: "r1"});
        for (const [question, cells] of whoSaysWhat(engine, p, parts(p).ys.map((s) => next(s)), 3)) {
            assert.equal(cells.length, SYSTEMS.length, question);
            for (const c of cells)
                assert.ok("=≠–?".includes(c.mark) && c.text && (c.source || c.text === "not known"),
                    `${p.text}: ${question}`);
        }
    }
});

test("numbers: the fewest digits that come back, in every floating type", () => {
    const next = generator(8);
    for (const [dtype, type] of ["f64", "f32", "f16", "bf16"].entries()) {
        engine.open(`max k1 ${type} d1 512`);
        for (let round = 0; round < 8; round++) {
            const bytes = engine.bytes(X);
            for (let i = 0; i < bytes.length; i++) bytes[i] = next(256);
            for (const v of engine.numbers(X)) {
                const back = parseNumber(exact(engine, dtype, v));
                assert.ok(v !== v ? back !== back : Object.is(engine.wasm.rounded(dtype, back), v), `${type} ${v}`);
            }
        }
    }
    for (const text of ["", "x", "1e", "--1", "0x10", "1,2", "infinity"]) assert.equal(parseNumber(text), null);
});

test("hashes and .npy files are those of others", () => {
    for (const length of [0, 1, 55, 56, 63, 64, 65, 1000]) {
        const bytes = Uint8Array.from({length}, (_, i) => i * 7);
        assert.equal(sha256(bytes), createHash("sha256").update(bytes).digest("hex"));
    }
    const file = writeNpy(1, [2, 3], new Uint8Array(24));
    assert.equal((file.length - 24) % 64, 0);
    assert.deepEqual(readNpy(file, 100).shape, [2, 3]);
    const fortran = Uint8Array.from(Buffer.concat([
        Buffer.from(Buffer.from(writeNpy(5, [2, 2], [])).toString("latin1").replace("False", "True "), "latin1"),
        Buffer.from([1, 2, 3, 4])
    ]));
    assert.deepEqual([...readNpy(fortran, 9).bytes], [1, 3, 2, 4]);
    const next = generator(2);
    for (let n = 0; n < 2000; n++) {
        const damaged = file.slice(0, next(file.length + 1));
        for (let k = 0; k < 3 && damaged.length; k++) damaged[next(damaged.length)] = next(256);
        try {
            readNpy(damaged, 100);
        } catch (error) { assert.match(error.message, /^this \.npy file cannot be shown/); }
    }
});

test("the command beside the hash prints the same hash",
    {skip: !existsSync(join(root, "build/tarn")) && "build/tarn is not built"}, () => {
        const folder = mkdtempSync(join(tmpdir(), "tarn-")), next = generator(6);
        try {
            for (let n = 0; n < 40; n++) {
                const p = engine.open(randomProblem(next).replace(" last", "").replace(" flat", ""));
                if (p.error) continue;
                fillAll({x: `h${n}`, dx: "r1", gy: "r1"});
                writeFileSync(join(folder, "x.npy"), writeNpy(p.dtype, p.shape, engine.bytes(X)));
                const printed = execFileSync("sh", ["-c", command(p).replace(/^tarn/, join(root, "build/tarn"))],
                    {cwd: folder}).toString();
                assert.equal(printed.slice(0, 64), sha256(writeNpy(p.dtype, p.out, engine.bytes(Y))), p.text);
            }
        } finally { rmSync(folder, {recursive: true}); }
    });

test("copy as: C compiles, Python parses, for random problems", () => {
    const next = generator(12), python = [], c = [];
    for (let n = 0; n < 60; n++) {
        const p = engine.open(randomProblem(next));
        if (p.error) continue;
        for (const [name, write] of CODES) {
            const text = write(p);
            assert.ok(text.length > 5 && !/undefined|NaN|\[object/.test(text), `${p.text}: ${name}\n${text}`);
            if (/Python|PyTorch|JAX|ONNX/.test(name)) python.push(text);
            if (name === "C" && c.length < 1) c.push(text);
        }
    }
    execFileSync("python3", ["-c", "import sys, ast, json\nfor text in json.load(sys.stdin): ast.parse(text)"],
        {input: JSON.stringify(python)});
    execFileSync("gcc",
        ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", `-I${join(root, "include")}`, "-x", "c", "-"],
        {input: c[0]});
});

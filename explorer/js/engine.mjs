// tarn itself: a WebAssembly module, one problem at a time. Runs in the page, in a worker and in Node.

export const DTYPES = ["f64", "f32", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"];
export const OPS = ["max", "min", "avg", "smooth", "lp"];
export const TIES = ["first", "all", "split"];
const ARRAYS = [
    Float64Array, Float32Array, Uint16Array, Uint16Array, Int8Array, Uint8Array, Int16Array, Uint16Array, Int32Array,
    Uint32Array, BigInt64Array, BigUint64Array
];
export const X = 0, Y = 1, DX = 2, DY = 3, GX = 4, GY = 5, INDICES = 6, SHARES = 8;
export const FORWARD = 0, WINNERS = 2, JVP = 3, VJP = 4;
export const LIMIT = 65536;                           // cells that the page shows
const TEXT = 4096, SHAPE = 16, AXES = 80, OUT = 144;  // as explorer.c has them

// What wasi-libc imports and tarn never needs: there is no environment, and nothing is written.
const answer = (value) => () => value;
const nothing = (memory) => (count, size) => {
    new DataView(memory().buffer).setInt32(count, 0, true);
    new DataView(memory().buffer).setInt32(size, 0, true);
    return 0;
};

export class Engine {
    constructor(module) {
        const memory = () => this.wasm.memory;
        this.wasm = new WebAssembly
                        .Instance(module, {
                            wasi_snapshot_preview1: {
                                environ_get: answer(0),
                                environ_sizes_get: nothing(memory),
                                fd_close: answer(8),
                                fd_seek: answer(8),
                                fd_write: answer(8),
                                fd_fdstat_get: answer(8),
                                proc_exit: () => {
                                    throw new Error("tarn stopped");
                                },
                            }
                        })
                        .exports;
        this.wasm._initialize?.();
        this.problem = null;
    }

    memory(Type, pointer, count) { return new Type(this.wasm.memory.buffer, pointer, count); }

    text() {
        const bytes = this.memory(Uint8Array, this.wasm.text(), TEXT);
        return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
    }

    // The problem of a string: {error} with tarn's own sentence, or what it says and what it gives.
    open(text, limit = LIMIT) {
        const bytes = new TextEncoder().encode(text);
        if (bytes.length >= TEXT || bytes.includes(0)) return {error: "a problem string of this length is none"};
        const room = this.memory(Uint8Array, this.wasm.text(), TEXT);
        room.set(bytes);
        room[bytes.length] = 0;
        const status = this.wasm.open_problem(limit), words = this.text();
        const p = {...this.facts(), status};
        if (status === 0) p.text = words;
        else p.error = words;
        this.problem = status === 0 ? p : null;
        return p;
    }

    facts() {
        const f = this.memory(Float64Array, this.wasm.facts(), OUT + 64);
        const spatial = f[2], rank = f[4];
        const axes = Array.from({length: spatial}, (_, a) => {
            const [kernel, stride, lo, hi, dilation, out] = f.subarray(AXES + 6 * a);
            return {kernel, stride, lo, hi, dilation, out};
        });
        return {
            op: OPS[f[0]],
            window: ["sliding", "adaptive", "global"][f[1]],
            spatial,
            dtype: f[3],
            rank,
            type: DTYPES[f[3]],
            float: f[3] < 4,
            wide: f[3] > 9,
            ceil: !!f[5],
            flat: !!f[6],
            countPad: !!f[7],
            divisor: f[8],
            beta: f[9],
            power: f[10],
            ties: TIES[f[11]],
            last: !!f[14] && rank > spatial,
            work: f[13],
            shape: Array.from(f.subarray(SHAPE, SHAPE + rank)),
            axes,
            out: Array.from(f.subarray(OUT, OUT + f[12])),
        };
    }

    dtype(k) { return k === INDICES ? 10 : this.problem.dtype; }

    // A tensor's elements as they lie, which may be written; the view lasts until the next call.
    elements(k) { return this.memory(ARRAYS[this.dtype(k)], this.wasm.tensor(k), this.wasm.elements(k)); }
    bytes(k) {
        const e = this.elements(k);
        return new Uint8Array(e.buffer, e.byteOffset, e.byteLength);
    }

    // A tensor as numbers: a copy.
    numbers(k) {
        const n = this.wasm.elements(k);
        return k === INDICES ? Float64Array.from(this.elements(k), Number)
                             : this.memory(Float64Array, this.wasm.doubles(k), n).slice();
    }

    fill(k, values) {
        this.wasm.tensor(k);
        if (this.problem.wide && typeof values[0] === "bigint") this.elements(k).set(values);
        else values.forEach((v, i) => this.wasm.put(k, i, Number(v)));
    }

    run(pass) {
        const status = this.wasm.run(pass);
        if (status) throw new Error(this.text());
    }

    // All that the problem has, as bytes: what a worker is for.
    results(passes) {
        const done = {};
        for (const pass of passes) {
            this.run(pass);
            const k = {[FORWARD]: Y, [WINNERS]: INDICES, [JVP]: DY, [VJP]: GX}[pass];
            done[k] = this.bytes(k).slice();
        }
        return done;
    }

    taps(a, o) { return this.row(this.wasm.taps(a, o), a); }
    readers(a, i) { return this.row(this.wasm.readers(a, i), a); }
    row(pointer, a) {
        const [n, lo, hi, first, step, counted] = this.memory(Float64Array, pointer + 48 * a, 6);
        return {n, lo, hi, first, step, counted};
    }
}

// A worker is this script again: it opens a problem, fills it and runs passes.
export function workerMain() {
    let engine;
    onmessage = ({data: {id, module, text, tensors, passes}}) => {
        try {
            engine ??= new Engine(module);
            const p = engine.open(text);
            if (p.error) throw new Error(p.error);
            for (const k in tensors) engine.bytes(+k).set(tensors[k]);
            postMessage({id, done: engine.results(passes)});
        } catch (error) { postMessage({id, error: error.message}); }
    };
}

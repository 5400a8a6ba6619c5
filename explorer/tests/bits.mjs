// The page's bits beside those that the native library wrote (bits.c): forward, indices, JVP, VJP.
import {DX, DY, Engine, FORWARD, GX, GY, INDICES, JVP, VJP, WINNERS, X, Y} from "../js/engine.mjs";

export function compareBits(module, stream) {
    const engine = new Engine(module), view = new DataView(stream.buffer, stream.byteOffset, stream.byteLength);
    let at = 0, problems = 0, compared = 0;
    const next = () => {
        const length = view.getUint32(at, true);
        at += 4 + length;
        return stream.subarray(at - length, at);
    };
    const differing = [];
    while (at < stream.length) {
        const text = new TextDecoder().decode(next()), p = engine.open(text);
        if (p.error) throw new Error(`${text}: ${p.error}`);
        for (const k of [X, DX, GY]) engine.bytes(k).set(next());
        const extreme = p.op === "max" || p.op === "min";
        const passes =
            [[FORWARD, Y], ...(extreme ? [[WINNERS, INDICES]] : []), ...(p.float ? [[JVP, DY], [VJP, GX]] : [])];
        for (const [pass, k] of passes) {
            engine.run(pass);
            const wanted = next(), got = engine.bytes(k);
            if (got.length !== wanted.length || got.some((byte, i) => byte !== wanted[i]))
                differing.push(`${text}: tensor ${k}`);
            compared++;
        }
        problems++;
    }
    return {problems, compared, differing};
}

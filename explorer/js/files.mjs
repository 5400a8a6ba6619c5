// Files: .npy in and out, byte for byte as the program tarn writes it; pictures in.
import {DTYPES} from "./engine.mjs";

const DESCR = ["f8", "f4", "f2", "V2", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"];
const SIZES = [8, 4, 2, 2, 1, 1, 2, 2, 4, 4, 8, 8];
const ALIGNMENT = 64;

export function writeNpy(dtype, shape, bytes) {
    const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
    let head =
        `{'descr': '${SIZES[dtype] === 1 ? "|" : "<"}${DESCR[dtype]}', 'fortran_order': False, 'shape': (${sizes}), }`;
    head += " ".repeat((ALIGNMENT - ((head.length + 11) % ALIGNMENT)) % ALIGNMENT) + "\n";
    const start = [0x93, ...Array.from("NUMPY", (c) => c.charCodeAt(0)), 1, 0, head.length & 255, head.length >> 8];
    return new Uint8Array([...start, ...Array.from(head, (c) => c.charCodeAt(0)), ...bytes]);
}

// {dtype, shape, bytes}, little-endian and in C order; throws an Error with a sentence.
export function readNpy(file, limit) {
    const refuse = (why) => {
        throw new Error(`this .npy file cannot be shown: ${why}`);
    };
    if (file.length < 12 || file[0] !== 0x93 || file[1] !== 0x4e) refuse("it does not begin as one");
    const view = new DataView(file.buffer, file.byteOffset, file.byteLength), old = file[6] === 1;
    const length = old ? view.getUint16(8, true) : view.getUint32(8, true), begin = (old ? 10 : 12) + length;
    if (begin > file.length) refuse("its header is cut off");
    const head = new TextDecoder("latin1").decode(file.subarray(old ? 10 : 12, begin));
    const descr = /'descr':\s*'([<>|=])?([a-zA-Z]\d+)'/.exec(head),
          order = /'fortran_order':\s*(True|False)/.exec(head);
    const sizes = /'shape':\s*\(([\d,\s]*)\)/.exec(head);
    if (!descr || !order || !sizes) refuse("its header has no dtype, order and shape that this page knows");
    const dtype = DESCR.indexOf(descr[2] === "b1" ? "u1" : descr[2]);
    if (dtype < 0) refuse(`dtype ${descr[2]} is none of ${DTYPES.join(" ")}`);
    const shape = sizes[1].split(",").map((s) => s.trim()).filter(Boolean).map(Number);
    const count = shape.reduce((a, b) => a * b, 1), size = SIZES[dtype];
    if (shape.length === 0 || count === 0) refuse("it is empty");
    if (shape.length > 8) refuse(`it has ${shape.length} axes; this page takes up to 8`);
    if (!(count <= limit)) refuse(`it has ${count} elements; this page takes up to ${limit}`);
    if (file.length < begin + count * size) refuse("its data is cut off");
    const bytes = file.slice(begin, begin + count * size);
    if (descr[1] === ">")
        for (let i = 0; i < bytes.length; i += size) bytes.subarray(i, i + size).reverse();
    return {dtype, shape, bytes: order[1] === "True" ? toCOrder(bytes, shape, size) : bytes};
}

function toCOrder(bytes, shape, size) {
    const sorted = new Uint8Array(bytes.length), at = shape.map(() => 0);
    for (let i = 0; i < bytes.length; i += size) {
        let from = 0;
        for (let a = shape.length - 1; a >= 0; a--) from = from * shape[a] + at[a];
        sorted.set(bytes.subarray(from * size, from * size + size), i);
        for (let a = shape.length - 1; a >= 0 && ++at[a] === shape[a]; a--) at[a] = 0;
    }
    return sorted;
}

// A picture as grey bytes: {rows, cols, grey}. The browser decodes; luma is that of Rec. 601, in integers.
export async function readPicture(file, most = 4096) {
    const refuse = () => {
        throw new Error("this file is no picture that your browser can read");
    };
    let bitmap = await createImageBitmap(file).catch(refuse);
    const scale = Math.min(1, most / Math.max(bitmap.width, bitmap.height));
    const cols = Math.max(1, Math.round(bitmap.width * scale)), rows = Math.max(1, Math.round(bitmap.height * scale));
    const canvas = new OffscreenCanvas(cols, rows), pen = canvas.getContext("2d");
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, cols, rows);
    pen.drawImage(bitmap, 0, 0, cols, rows);
    const rgba = pen.getImageData(0, 0, cols, rows).data, grey = new Uint8Array(rows * cols);
    for (let i = 0; i < grey.length; i++)
        grey[i] = (299 * rgba[4 * i] + 587 * rgba[4 * i + 1] + 114 * rgba[4 * i + 2] + 500) / 1000;
    bitmap.close();
    return {rows, cols, grey, scaled: scale < 1};
}

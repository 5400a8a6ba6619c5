// A panel draws one plane of a tensor: as cells, or as a picture where cells would be too many or too small.
// Marks (the window's frame, taps, winners, readers) lie above it and do not care which.
import { brief } from "./numbers.mjs";

export function h(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties))
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
    element.append(...children.flat().filter((c) => c != null));
    return element;
}
const svg = (tag, properties) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const name in properties) element.setAttribute(name, properties[name]);
    return element;
};

const MOST_CELLS = 1600; // cells that are elements of the page
const rgb = (text) => [1, 3, 5].map((i) => parseInt(text.trim().slice(i, i + 2), 16));
export const mix = (a, b, t) => rgb(a).map((v, i) => Math.round(v + (rgb(b)[i] - v) * t));

// Where a value lies between the least and the greatest of its plane, 0 to 1; signed planes: how far from 0.
export function scale(values, signed) {
    let least = Infinity, greatest = -Infinity;
    for (const raw of values) {
        const v = Number(raw);
        if (Number.isFinite(v)) { least = Math.min(least, v); greatest = Math.max(greatest, v); }
    }
    const most = Math.max(Math.abs(least), Math.abs(greatest)) || 1, range = greatest - least || 1;
    return (v) => (!Number.isFinite(v) ? (v > 0 ? 1 : 0) : signed ? Math.abs(v) / most : (v - least) / range);
}

export class Panel {
    constructor(host, name) {
        this.title = h("h3");
        this.grid = h("div", { class: "grid" });
        this.marks = svg("svg", { class: "marks", "aria-hidden": "true" });
        this.frame = h("div", { class: "frame", hidden: true });
        host.append(this.title, this.grid);
        this.name = name;
        this.key = "";
    }

    // shown: {rows, cols, top, left, bottom, right, beyond: [rows, cols of overhang in bottom, right], size}
    layout(shown) {
        const { rows, cols, top, left, bottom, right, size } = shown;
        this.shown = shown;
        const key = JSON.stringify(shown);
        if (key === this.key) return;
        this.key = key;
        const all = (rows + top + bottom) * (cols + left + right);
        this.picture = all > MOST_CELLS || size < 9;
        this.grid.style.setProperty("--s", `${size}px`);
        this.grid.style.setProperty("--f", `${Math.max(10, Math.min(17, size * 0.36))}px`);
        this.grid.classList.toggle("tiny", size < 22);
        this.grid.replaceChildren(this.picture ? this.makeCanvas() : this.makeCells(), this.marks, this.frame);
    }

    makeCells() {
        const { rows, cols, top, left, bottom, right, beyond, size } = this.shown;
        this.cells = [];
        this.told = [];
        const table = h("div", { class: "cells", role: "grid", "aria-label": this.name, "aria-rowcount": rows, "aria-colcount": cols });
        table.style.gridTemplateColumns = `repeat(${cols + left + right}, ${size}px)`;
        table.style.gridAutoRows = `${size}px`;
        for (let r = -top; r < rows + bottom; r++) {
            const inside = r >= 0 && r < rows, line = h("div", inside ? { role: "row", "aria-rowindex": r + 1 } : { role: "presentation" });
            line.style.display = "contents";
            for (let c = -left; c < cols + right; c++) {
                const over = r >= rows + bottom - beyond[0] || c >= cols + right - beyond[1];
                if (!inside || c < 0 || c >= cols) line.append(h("div", { class: over ? "pad over" : "pad", role: "presentation" }));
                else {
                    const cell = h("div", { class: "cell", role: "gridcell", tabindex: -1, "aria-colindex": c + 1, "data-at": `${r},${c}` });
                    this.cells.push(cell);
                    line.append(cell);
                }
            }
            table.append(line);
        }
        this.canvas = null;
        this.focusable = null;
        return table;
    }

    makeCanvas() {
        const { rows, cols, top, left, bottom, right, size } = this.shown;
        this.canvas = h("canvas", { role: "application", tabindex: 0, "aria-label": `${this.name}, ${rows} by ${cols} cells; arrow keys move, the sentence below tells`, width: cols + left + right, height: rows + top + bottom });
        this.canvas.style.width = `${(cols + left + right) * size}px`;
        this.canvas.style.height = `${(rows + top + bottom) * size}px`;
        this.cells = null;
        return this.canvas;
    }

    // values of the plane, row-major; small: a second number for each cell, or null.
    paint(values, signed, small) {
        this.values = values;
        this.signed = signed;
        this.grid.classList.toggle("signed", signed);
        const share = scale(values, signed);
        if (this.picture) return this.paintPicture(values, signed, share);
        const roomy = this.shown.size >= 34;
        this.cells.forEach((cell, i) => {
            const v = Number(values[i]), text = brief(values[i]), t = share(v).toFixed(3), odd = !Number.isFinite(v) || Object.is(v, -0);
            const other = small && roomy ? brief(small[i]) : null, state = `${text} ${t} ${v < 0} ${other}`;
            if (this.told[i] === state) return;
            this.told[i] = state;
            if (cell.firstChild) cell.firstChild.data = text;
            else cell.append(text);
            cell.style.setProperty("--t", t);
            const wide = text.length > 5 ? "font-size:10px" : "";
            if (cell.dataset.wide !== wide) { cell.dataset.wide = wide; cell.style.fontSize = wide ? `${Math.max(9, this.shown.size / text.length * 1.5)}px` : ""; }
            cell.className = `cell${v < 0 ? " minus" : ""}${odd ? " odd" : ""}`;
            if (other === null) cell.removeAttribute("data-x");
            else cell.setAttribute("data-x", other);
        });
    }

    paintPicture(values, signed, share) {
        const { rows, cols, top, left, bottom, right } = this.shown, style = getComputedStyle(document.documentElement);
        const colour = (name) => style.getPropertyValue(name), pen = this.canvas.getContext("2d");
        const width = cols + left + right, image = pen.createImageData(width, rows + top + bottom);
        const ramp = (a, b) => Array.from({ length: 256 }, (_, i) => mix(a, b, i / 255));
        const plus = signed ? ramp(colour("--card"), colour("--positive")) : ramp("#0b1a24", "#f6f2e6");
        const minus = signed ? ramp(colour("--card"), colour("--negative")) : plus, none = rgb(colour("--hatch")), odd = rgb(colour("--win"));
        for (let i = 0; i < image.data.length; i += 4) image.data.set([...none, 90], i);
        for (let r = 0; r < rows; r++)
            for (let c = 0; c < cols; c++) {
                const v = Number(values[r * cols + c]), t = Math.round(share(v) * 255);
                const to = v !== v ? odd : (v < 0 ? minus : plus)[t], at = 4 * ((r + top) * width + c + left);
                image.data[at] = to[0]; image.data[at + 1] = to[1]; image.data[at + 2] = to[2]; image.data[at + 3] = 255;
            }
        pen.putImageData(image, 0, 0);
    }

    // The cell under a pointer: [row, column], or null.
    under(event) {
        const box = this.grid.getBoundingClientRect(), { rows, cols, top, left, size } = this.shown;
        const r = Math.floor((event.clientY - box.top) / size) - top, c = Math.floor((event.clientX - box.left) / size) - left;
        return r >= 0 && r < rows && c >= 0 && c < cols ? [r, c] : null;
    }

    // Roving focus: one cell of a grid takes the tabulator key.
    offer(r, c, focus) {
        if (this.picture) return focus && this.canvas.focus();
        this.focusable?.setAttribute("tabindex", "-1");
        this.focusable = this.cells[r * this.shown.cols + c];
        this.focusable?.setAttribute("tabindex", "0");
        if (focus) this.focusable?.focus({ preventScroll: false });
    }

    select(r, c) {
        if (this.picture) return;
        this.selected?.removeAttribute("aria-selected");
        this.selected = r === null ? null : this.cells[r * this.shown.cols + c];
        this.selected?.setAttribute("aria-selected", "true");
    }

    box(r, c, rows = 1, cols = 1) {
        const { top, left, size } = this.shown;
        return { x: (c + left) * size, y: (r + top) * size, width: cols * size, height: rows * size };
    }

    // frame: [row, column, rows, columns] or null; shapes: [class, row, column, rows, columns]...
    mark(frame, shapes) {
        this.framed = frame;
        this.frame.hidden = !frame;
        if (frame) {
            const b = this.box(...frame);
            this.frame.style.transform = `translate(${b.x - 1}px, ${b.y - 1}px)`;
            this.frame.style.width = `${b.width + 3}px`;
            this.frame.style.height = `${b.height + 3}px`;
        }
        this.shapes = shapes;
        this.marks.replaceChildren(...shapes.slice(0, 2000).map(([kind, ...at]) => {
            const b = this.box(...at), inset = kind === "tap" ? 0 : kind === "reader" ? 1 : 3;
            if (kind === "dot") return svg("circle", { class: "dot", cx: b.x + b.width - 7, cy: b.y + 7, r: Math.min(4, b.width / 4) });
            return svg("rect", { class: kind, x: b.x + inset + 0.5, y: b.y + inset + 0.5, rx: kind === "tap" ? 0 : 3,
                                 width: Math.max(b.width - 2 * inset, 2), height: Math.max(b.height - 2 * inset, 2) });
        }));
    }
}

// The figure as a file: plain SVG, light colours, no style sheet.
const PLAIN = { low: "#f2f6f3", high: "#86c5cc", card: "#fffefb", negative: "#a7c4ee", positive: "#f4b79c" };
export function drawSvg(panels, sentence) {
    const gap = 48, margin = 20, cell = 40, parts = [];
    let x = margin, height = 0;
    const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    for (const panel of panels) {
        const { rows, cols, top, left, bottom, right, beyond } = panel.shown, share = scale(panel.values, panel.signed);
        const s = panel.picture ? Math.max(1, Math.floor(512 / Math.max(rows, cols))) : cell, place = (r, c) => [x + (c + left) * s, margin + 24 + (r + top) * s];
        parts.push(`<text x="${x}" y="${margin + 10}" font-size="14" fill="#566370">${escape(panel.title.textContent)}</text>`);
        for (let r = -top; r < rows + bottom; r++)
            for (let c = -left; c < cols + right; c++) {
                const [px, py] = place(r, c), i = r * cols + c, real = r >= 0 && r < rows && c >= 0 && c < cols;
                if (!real) {
                    const over = r >= rows + bottom - beyond[0] || c >= cols + right - beyond[1];
                    if (!panel.picture) parts.push(`<rect x="${px}" y="${py}" width="${s}" height="${s}" fill="${over ? "none" : "url(#hatch)"}" stroke="#b9b5a8"${over ? ' stroke-dasharray="3 3"' : ""}/>`);
                    continue;
                }
                const v = Number(panel.values[i]), t = share(v);
                const fill = panel.signed ? mix(PLAIN.card, v < 0 ? PLAIN.negative : PLAIN.positive, t) : panel.picture ? mix("#0b1a24", "#f6f2e6", t) : mix(PLAIN.low, PLAIN.high, t);
                parts.push(`<rect x="${px}" y="${py}" width="${s}" height="${s}" fill="rgb(${fill})"${panel.picture ? "" : ' stroke="#c9c5b8"'}/>`);
                if (!panel.picture) parts.push(`<text x="${px + s / 2}" y="${py + s / 2 + 5}" text-anchor="middle" font-size="${brief(panel.values[i]).length > 5 ? 10 : 14}">${brief(panel.values[i])}</text>`);
            }
        const around = (r, c, h = 1, w = 1, more = "") => { const [px, py] = place(r, c); return `<rect x="${px}" y="${py}" width="${w * s}" height="${h * s}" rx="3" ${more}/>`; };
        for (const [kind, ...at] of panel.shapes) {
            const paint = { tap: 'fill="#0a6780" fill-opacity="0.13"', winner: 'fill="none" stroke="#b13f0b" stroke-width="3"', tie: 'fill="none" stroke="#b13f0b" stroke-dasharray="3 2"', reader: 'fill="none" stroke="#0a6780" stroke-width="1.5"' }[kind];
            if (paint) parts.push(around(...at, ...[1, 1].slice(0, 4 - at.length), paint));
        }
        if (panel.framed) parts.push(around(...panel.framed, 'fill="none" stroke="#0a6780" stroke-width="3"'));
        x += (cols + left + right) * s + gap;
        height = Math.max(height, (rows + top + bottom) * s);
    }
    const width = Math.max(x - gap + margin, 480), lines = wrap(sentence, Math.floor(width / 8));
    const text = lines.map((line, i) => `<text x="${margin}" y="${margin + 24 + height + 34 + i * 22}" font-size="15" font-family="Georgia, serif">${escape(line)}</text>`);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${margin + height + 70 + lines.length * 22}" font-family="sans-serif" fill="#17222c"><defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6 6 0" stroke="#c9c5b8"/></pattern></defs><rect width="100%" height="100%" fill="#fffefb"/>${parts.join("")}${text.join("")}</svg>`;
}

function wrap(text, most) {
    const lines = [""];
    for (const word of text.split(" "))
        if ((lines.at(-1) + word).length > most) lines.push(word);
        else lines.push(`${lines.pop()} ${word}`.trim());
    return lines;
}

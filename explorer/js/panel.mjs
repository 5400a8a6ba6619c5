// A panel draws one plane of a tensor: as cells, or as a picture where cells would be too many or too small.
// Marks (the window's frame, taps, winners, readers) lie above it and do not care which.
import {brief} from "./numbers.mjs";

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

const MOST_CELLS = 1600;  // cells that keyboards and screen readers walk one by one; larger planes are one picture
const TINY = 22;          // pixels of a cell below which it shows no number
const typeSize = (size) => Math.max(10, Math.min(18, size * 0.36));
const rgb = (text) => [1, 3, 5].map((i) => parseInt(text.trim().slice(i, i + 2), 16));
export const mix = (a, b, t) => rgb(a).map((v, i) => Math.round(v + (rgb(b)[i] - v) * t));
const ramp = (a, b) => Array.from({length: 256}, (_, i) => mix(a, b, i / 255));

// Where a value lies between the least and the greatest of its plane, 0 to 1; signed planes: how far from 0.
export function scale(values, signed) {
    let least = Infinity, greatest = -Infinity;
    for (const raw of values) {
        const v = Number(raw);
        if (Number.isFinite(v)) {
            least = Math.min(least, v);
            greatest = Math.max(greatest, v);
        }
    }
    const most = Math.max(Math.abs(least), Math.abs(greatest)) || 1, range = greatest - least || 1;
    return (v) => (v !== v               ? 0
                   : !Number.isFinite(v) ? (v > 0 || signed ? 1 : 0)
                   : signed              ? Math.abs(v) / most
                                         : (v - least) / range);
}

// The style sheet's colours, as ramps of 256.
function palette(signed, picture) {
    const style = getComputedStyle(document.documentElement), colour = (name) => style.getPropertyValue(name).trim();
    const strong = picture ? "-strong" : "";  // pictures have no numbers to be read on their colours
    const plus = signed ? ramp(colour("--card"), colour(`--positive${strong}`))
        : picture ? ramp("#0b1a24", "#f6f2e6")
                  : ramp(colour("--low"), colour("--high"));
    return {
        plus,
        minus: signed ? ramp(colour("--card"), colour(`--negative${strong}`)) : plus,
        ink: colour("--ink"),
        card: colour("--card"),
        line: colour("--line"),
        edge: colour("--edge"),
        hatch: colour("--hatch"),
        win: rgb(colour("--win")),
        odd: `rgb(${mix(colour("--card"), colour("--win"), 0.18)})`,
        sans: colour("--sans")
    };
}

export class Panel {
    constructor(host, name) {
        this.title = h("h3");
        this.grid = h("div", {class: "grid"});
        this.marks = svg("svg", {class: "marks", "aria-hidden": "true"});
        this.frame = h("div", {class: "frame", hidden: true});
        host.append(this.title, this.grid);
        this.name = name;
        this.key = "";
    }

    // shown: {rows, cols, top, left, bottom, right, beyond: [rows, cols of overhang in bottom, right], size}
    layout(shown) {
        const {rows, cols, top, left, bottom, right, size} = shown, key = JSON.stringify([shown, devicePixelRatio]);
        this.shown = shown;
        if (key === this.key) return;
        this.key = key;
        const height = rows + top + bottom, width = cols + left + right, sharp = devicePixelRatio;
        this.picture = height * width > MOST_CELLS || size < 9;
        this.canvas = h("canvas",
            this.picture ? {
                role: "application",
                tabindex: 0,
                "aria-label": `${this.name}, ${rows} by ${cols} cells; arrow keys move, the sentence below tells`
            }
                         : {"aria-hidden": "true"});
        this.canvas.width = Math.round((width * size + 1) * sharp);
        this.canvas.height = Math.round((height * size + 1) * sharp);
        this.canvas.style.width = `${width * size + 1}px`;
        this.canvas.style.height = `${height * size + 1}px`;
        this.grid.style.setProperty("--s", `${size}px`);
        this.cells = [];
        this.focusable = this.selected = null;
        this.grid.replaceChildren(this.canvas, ...(this.picture ? [] : [this.makeCells()]), this.marks, this.frame);
    }

    // What keyboards and screen readers see; eyes see the canvas below. Thousands of coloured elements would be slow.
    makeCells() {
        const {rows, cols, top, left, size} = this.shown;
        const table = h("div",
            {class: "cells", role: "grid", "aria-label": this.name, "aria-rowcount": rows, "aria-colcount": cols});
        table.style.gridTemplate = `repeat(${rows}, ${size}px) / repeat(${cols}, ${size}px)`;
        table.style.left = `${left * size}px`;
        table.style.top = `${top * size}px`;
        for (let r = 0; r < rows; r++) {
            const line = h("div", {role: "row", "aria-rowindex": r + 1});
            for (let c = 0; c < cols; c++) {
                const cell = h("div",
                    {class: "cell", role: "gridcell", tabindex: -1, "aria-colindex": c + 1, "data-at": `${r},${c}`});
                this.cells.push(cell);
                line.append(cell);
            }
            table.append(line);
        }
        return table;
    }

    // values of the plane, row-major; small: a second number for each cell, or null.
    paint(values, signed, small) {
        Object.assign(this, {values, signed, small});
        this.grid.classList.toggle("signed", signed);
        const {rows, cols, top, left, bottom, right, beyond, size} = this.shown, sharp = devicePixelRatio;
        const share = scale(values, signed), look = palette(signed, this.picture), pen = this.canvas.getContext("2d");
        pen.setTransform(sharp, 0, 0, sharp, 0, 0);
        pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
        this.paintPadding(pen, look, top, left, rows, cols, bottom, right, beyond, size);
        const bend = this.picture && signed ? 0.6 : 1;  // small gradients are seen, too
        const colour = (v) => (v < 0 ? look.minus : look.plus)[Math.round(share(v) ** bend * 255)];
        if (this.picture) this.paintPicture(pen, values, colour, look);
        else this.paintCells(pen, values, colour, look, small && size >= 44 ? small : null);
        clearTimeout(this.later);
        this.later = setTimeout(() => this.cells.forEach((cell, i) => {
            const text = brief(values[i]);
            if (cell.told !== text) cell.setAttribute("aria-label", (cell.told = text));
        }),
            200);
    }

    paintCells(pen, values, colour, look, small) {
        const {cols, top, left, size} = this.shown, letters = typeSize(size), text = size >= TINY;
        pen.textAlign = "center";
        pen.textBaseline = "middle";
        pen.lineWidth = 1;
        const words = Array.from(values, brief),
              longest =
                  Math.min(5, Math.max(...words.map((w) => w.length)));  // one size of type, but for very long numbers
        values.forEach((raw, i) => {
            const v = Number(raw), x = (i % cols + left) * size, y = (Math.floor(i / cols) + top) * size,
                  odd = !Number.isFinite(v) || Object.is(v, -0);
            pen.fillStyle = odd ? look.odd : `rgb(${colour(v)})`;
            pen.fillRect(x, y, size + 1, size + 1);
            pen.strokeStyle = look.line;
            pen.strokeRect(x + 0.5, y + 0.5, size, size);
            if (!text) return;
            const fit = Math.min(1, (size - 5) / (Math.max(words[i].length, longest) * letters * 0.58));
            if (letters * fit < 8) return;  // nobody could read it
            pen.font = `${odd ? "italic bold " : ""}${(letters * fit).toFixed(1)}px ${look.sans}`;
            pen.fillStyle = look.ink;
            pen.fillText(words[i], x + size / 2 + 0.5, y + size / 2 + (small ? -3 : 1));
        });
        if (!small) return;
        pen.textAlign = "right";
        pen.font = `${Math.max(9.5, letters * 0.62)}px ${look.sans}`;
        pen.globalAlpha = 0.85;
        small.forEach((v, i) => pen.fillText(
                          brief(v), (i % cols + left + 1) * size - 6, (Math.floor(i / cols) + top + 1) * size - 10));
        pen.globalAlpha = 1;
    }

    paintPadding(pen, look, top, left, rows, cols, bottom, right, beyond, size) {
        if (!(top || left || bottom || right)) return;
        const tile = h("canvas", {width: 6, height: 6}), stroke = tile.getContext("2d");
        stroke.strokeStyle = look.hatch;
        for (const shift of [-6, 0, 6]) {
            stroke.moveTo(shift, 6);
            stroke.lineTo(shift + 6, 0);
        }
        stroke.stroke();
        const [overRows, overCols] = beyond, width = (cols + left + right - overCols) * size,
                         height = (rows + top + bottom - overRows) * size;
        pen.fillStyle = pen.createPattern(tile, "repeat");
        pen.fillRect(0, 0, width, height);
        if (this.picture) return;
        for (let r = 0; r < rows + top + bottom; r++)
            for (let c = 0; c < cols + left + right; c++) {
                const over = r * size >= height || c * size >= width;
                pen.setLineDash(over ? [3, 3] : []);
                pen.strokeStyle = over ? look.edge : look.line;
                if (r < top || c < left || r >= top + rows || c >= left + cols)
                    pen.strokeRect(c * size + 0.5, r * size + 0.5, size, size);
            }
        pen.setLineDash([]);
    }

    paintPicture(pen, values, colour, look) {
        const {rows, cols, top, left, size} = this.shown, small = h("canvas", {width: cols, height: rows}),
                                      image = new ImageData(cols, rows);
        for (let i = 0; i < rows * cols; i++) {
            const v = Number(values[i]), to = v !== v ? look.win : colour(v);
            image.data[4 * i] = to[0];
            image.data[4 * i + 1] = to[1];
            image.data[4 * i + 2] = to[2];
            image.data[4 * i + 3] = 255;
        }
        small.getContext("2d").putImageData(image, 0, 0);
        pen.imageSmoothingEnabled = false;
        pen.drawImage(small, left * size, top * size, cols * size, rows * size);
    }

    // The cell under a pointer: [row, column], or null.
    under(event) {
        const box = this.grid.getBoundingClientRect(), {rows, cols, top, left, size} = this.shown;
        const r = Math.floor((event.clientY - box.top) / size) - top,
              c = Math.floor((event.clientX - box.left) / size) - left;
        return r >= 0 && r < rows && c >= 0 && c < cols ? [r, c] : null;
    }

    // Roving focus: one cell of a grid takes the tabulator key.
    offer(r, c, focus) {
        if (this.picture) return focus && this.canvas.focus();
        this.focusable?.setAttribute("tabindex", "-1");
        this.focusable = this.cells[r * this.shown.cols + c];
        this.focusable?.setAttribute("tabindex", "0");
        if (focus) this.focusable?.focus({preventScroll: false});
    }

    select(r, c) {
        if (this.picture) return;
        this.selected?.removeAttribute("aria-selected");
        this.selected = r === null ? null : this.cells[r * this.shown.cols + c];
        this.selected?.setAttribute("aria-selected", "true");
    }

    box(r, c, rows = 1, cols = 1) {
        const {top, left, size} = this.shown;
        return {x: (c + left) * size, y: (r + top) * size, width: cols * size, height: rows * size};
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
            if (kind === "dot")
                return svg("circle", {class: "dot", cx: b.x + b.width - 7, cy: b.y + 7, r: Math.min(4, b.width / 4)});
            return svg("rect", {
                class: kind,
                x: b.x + inset + 0.5,
                y: b.y + inset + 0.5,
                rx: kind === "tap" ? 0 : 3,
                width: Math.max(b.width - 2 * inset, 2),
                height: Math.max(b.height - 2 * inset, 2)
            });
        }));
    }
}

// The figure as a file: plain SVG, light colours, no style sheet.
const PLAIN = {
    low: "#f2f6f3",
    high: "#86c5cc",
    card: "#fffefb",
    negative: "#a7c4ee",
    positive: "#f4b79c"
};
export function drawSvg(panels, sentence) {
    const gap = 48, margin = 20, cell = 40, parts = [];
    let x = margin, height = 0;
    const escape = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
    for (const panel of panels) {
        const {rows, cols, top, left, bottom, right, beyond} = panel.shown, share = scale(panel.values, panel.signed);
        const s = panel.picture ? Math.max(1, Math.floor(512 / Math.max(rows, cols))) : cell,
              place = (r, c) => [x + (c + left) * s, margin + 24 + (r + top) * s];
        parts.push(`<text x="${x}" y="${margin + 10}" font-size="14" fill="#566370">${
            escape(panel.title.textContent.replace(", yours to edit", ""))}</text>`);
        for (let r = -top; r < rows + bottom; r++)
            for (let c = -left; c < cols + right; c++) {
                const [px, py] = place(r, c), i = r * cols + c, real = r >= 0 && r < rows && c >= 0 && c < cols;
                if (!real) {
                    const over = r >= rows + bottom - beyond[0] || c >= cols + right - beyond[1];
                    if (!panel.picture)
                        parts.push(`<rect x="${px}" y="${py}" width="${s}" height="${s}" fill="${
                            over ? "none"
                                 : "url(#hatch)"}" stroke="#b9b5a8"${over ? ' stroke-dasharray="3 3"' : ""}/>`);
                    continue;
                }
                const v = Number(panel.values[i]), t = share(v);
                const fill = panel.signed ? mix(PLAIN.card, v < 0 ? PLAIN.negative : PLAIN.positive, t)
                    : panel.picture       ? mix("#0b1a24", "#f6f2e6", t)
                                          : mix(PLAIN.low, PLAIN.high, t);
                parts.push(`<rect x="${px}" y="${py}" width="${s}" height="${s}" fill="rgb(${fill})"${
                    panel.picture ? "" : ' stroke="#c9c5b8"'}/>`);
                if (!panel.picture)
                    parts.push(`<text x="${px + s / 2}" y="${py + s / 2 + 5}" text-anchor="middle" font-size="${
                        brief(panel.values[i]).length > 5 ? 10 : 14}">${brief(panel.values[i])}</text>`);
            }
        const around = (r, c, h = 1, w = 1, more = "") => {
            const [px, py] = place(r, c);
            return `<rect x="${px}" y="${py}" width="${w * s}" height="${h * s}" rx="3" ${more}/>`;
        };
        for (const [kind, ...at] of panel.shapes) {
            const paint = {
                tap: 'fill="#0a6780" fill-opacity="0.13"',
                winner: 'fill="none" stroke="#b13f0b" stroke-width="3"',
                tie: 'fill="none" stroke="#b13f0b" stroke-dasharray="3 2"',
                reader: 'fill="none" stroke="#0a6780" stroke-width="1.5"'
            }[kind];
            if (paint) parts.push(around(...at, ...[1, 1].slice(0, 4 - at.length), paint));
        }
        if (panel.framed) parts.push(around(...panel.framed, 'fill="none" stroke="#0a6780" stroke-width="3"'));
        x += (cols + left + right) * s + gap;
        height = Math.max(height, (rows + top + bottom) * s);
    }
    const width = Math.max(x - gap + margin, 480), lines = wrap(sentence, Math.floor(width / 8));
    const text = lines.map(
        (line, i) => `<text x="${margin}" y="${
            margin + 24 + height + 34 + i * 22}" font-size="15" font-family="Georgia, serif">${escape(line)}</text>`);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${
        margin + height + 70 +
        lines.length *
            22}" font-family="sans-serif" fill="#17222c"><defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse"><path d="M0 6 6 0" stroke="#c9c5b8"/></pattern></defs><rect width="100%" height="100%" fill="#fffefb"/>${
        parts.join("")}${text.join("")}</svg>`;
}

function wrap(text, most) {
    const lines = [""];
    for (const word of text.split(" "))
        if ((lines.at(-1) + word).length > most) lines.push(word);
        else lines.push(`${lines.pop()} ${word}`.trim());
    return lines;
}

// The page: a state, controls that change it, panels that show it.
import {CODES, command} from "./codes.mjs";
import {
    DTYPES,
    DX,
    DY,
    Engine,
    FORWARD,
    GX,
    GY,
    INDICES,
    JVP,
    LIMIT,
    OPS,
    TIES,
    VJP,
    WINNERS,
    workerMain,
    X,
    Y
} from "./engine.mjs";
import {explainCell, explainWindow} from "./explain.mjs";
import {readNpy, readPicture, writeNpy} from "./files.mjs";
import {fragmentOf, GALLERY} from "./gallery.mjs";
import {flatten, parts, planes, product, side, unflatten} from "./model.mjs";
import {exact, fromBase64, parseNumber, pretty, sha256} from "./numbers.mjs";
import {drawSvg, h, Panel} from "./panel.mjs";
import {SYSTEMS, whoSaysWhat} from "./peers.mjs";
import {DEFAULTS, fillTensor, formatFragment, isRule, parseFragment, tellTensor, TENSOR, VIEWS} from "./state.mjs";

const START = "max k3s2p1 f32 6x6";
const SHOWN = 256;  // rows and columns of a picture
const QUICK = {
    smooth: 4e5,
    lp: 4e5
},
      QUICK_OTHERS = 3e6;  // taps that take less than 8 ms in the page itself
const PATIENCE = 6000;     // milliseconds that a worker may take
const $ = (id) => document.getElementById(id);

const state = {
    ...parseFragment(""),
    p: START
};                 // data: x, dx and gy are rules, or bytes
let address = "";  // as it was last read or written
let good = null;   // the state that is shown
let engine, module, worker, ticket = 0, p, left, right, detail, note = "";
let pinned = false, hover = null, brush = null, playing = 0, wide = false;

// ---- Start ------------------------------------------------------------------------------------

async function start() {
    left = new Panel($("left"), "input");
    right = new Panel($("right"), "output");
    makeControls();
    makeGallery();
    listen();
    const packed = fromBase64($("wasm").textContent.trim());
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    module = await WebAssembly.compile(await new Response(stream).arrayBuffer());
    engine = new Engine(module);
    readAddress();
    document.documentElement.dataset.ready = "1";
}

function readAddress() {
    address = location.hash;
    const wanted = parseFragment(location.hash), idea = GALLERY.find((g) => g[0] === wanted.idea);
    if (["#ideas", "#stage"].includes(location.hash) && p) return;
    Object.assign(state, idea ? parseFragment(fragmentOf(idea)) : wanted);
    if (!state.p) state.p = START;
    pinned = !!(state.sel || state.cell);
    showAddress.idea = idea?.[0];
    open(location.hash.length < 2 || idea ? null : state.p);
}

// ---- From state to numbers --------------------------------------------------------------------

// Opens state.p. What was typed or dropped is kept where the new shapes have room for it.
function open(text, kept = {}) {
    $("stage").classList.remove("refused");
    const found = engine.open(state.p);
    $("problem").value = found.text ?? text ?? state.p;
    if (found.error) return refuse(found.error);
    p = found;
    state.p = p.text;
    try {
        for (const name in TENSOR) {
            if (kept[name]) restore(TENSOR[name], kept[name]);
            else fillTensor(engine, TENSOR[name], name, state[name]);
            if (kept[name] || !(state[name] instanceof Uint8Array || isRule(state[name])))
                state[name] = engine.bytes(TENSOR[name]).slice();
        }
    } catch (error) { return refuse(error.message); }
    if (state.view === "winners" && !extreme()) state.view = "value";
    if ((state.view === "vjp" || state.view === "jvp") && !p.float) state.view = "value";
    keepPlaces();
    $("trouble").textContent = "";
    $("problem").removeAttribute("aria-invalid");
    showControls();
    compute();
}

function refuse(sentence) {
    $("stage").classList.add("refused");
    $("trouble").textContent = sentence;
    $("problem").setAttribute("aria-invalid", "true");
    stop();
    Object.assign(state, good ?? {...parseFragment(""), p: START});  // the last good problem stays, dimmed
    p = engine.open(state.p);
    for (const name in TENSOR) fillTensor(engine, TENSOR[name], name, state[name]);
    keepPlaces();
    showControls();
    compute();
    return false;
}

const extreme = () => p.op === "max" || p.op === "min";

// Selections and slices that the problem does not have become ones that it has.
function keepPlaces() {
    const {xs, ys} = parts(p), inside = (at, shape) => at?.length === shape.length && at.every((v, a) => v < shape[a]);
    if (!inside(state.sel, ys)) state.sel = null;
    if (!inside(state.cell, xs)) state.cell = null;
    state.at = planes(p, state.at).place;
    if (!state.sel && !state.cell) {
        state.sel = ys.map((n) => (n - 1) >> 1);
        pinned = false;
    }
    hover = null;
    follow();
}

function passes() {
    const list = [FORWARD];
    if (extreme()) list.push(WINNERS);
    if (state.view === "vjp") list.push(VJP);
    if (state.view === "jvp") list.push(JVP);
    return list;
}

// Runs what the view needs: here if it is quick, in a worker otherwise.
function compute() {
    const mine = ++ticket, list = passes();
    if (p.work * list.length <= (QUICK[p.op] ?? QUICK_OTHERS)) {
        engine.results(list);
        $("stage").classList.remove("stale");
        return show();
    }
    $("stage").classList.add("stale");
    worker ??= new Worker(URL.createObjectURL(new Blob([$("app").textContent], {type: "text/javascript"})));
    const late = setTimeout(() => {
        end("this takes longer than a page should; the program tarn has no such limit");
    }, PATIENCE);
    const end = (sentence) => {
        clearTimeout(late);
        if (!sentence) return;
        worker?.terminate();
        worker = null;
        if (mine === ticket) { $("trouble").textContent = sentence; }
    };
    worker.onmessage = ({data}) => {
        if (data.id !== mine || mine !== ticket) return;
        end(data.error);
        if (data.error) return;
        for (const k in data.done) engine.bytes(+k).set(data.done[k]);
        $("stage").classList.remove("stale");
        show();
    };
    const tensors = Object.fromEntries(Object.values(TENSOR).map((k) => [k, engine.bytes(k).slice()]));
    worker.postMessage({id: mine, module, text: p.text, tensors, passes: list});
}

// ---- From numbers to the page -----------------------------------------------------------------

const sideX = () => side(p, state.at, "x");
const sideY = () => side(p, state.at, "y");
const values = (k) => (k === INDICES || !p.wide ? engine.numbers(k) : engine.elements(k).slice());
const plane = (k, s) => values(k).slice(s.base, s.base + s.rows * s.cols);

// What each view has in its two panels.
const CONTENT = {
    value: {left: X, right: Y, edits: "x"},
    winners: {left: X, right: INDICES, edits: "x"},
    vjp: {left: GX, right: GY, edits: "gy"},
    jvp: {left: DX, right: DY, edits: "dx"},
};
const NAMES = {
    [X]: ["x", "input"],
    [Y]: ["y", "output"],
    [DX]: ["dx", "tangent of the input"],
    [DY]: ["dy", "tangent of the output"],
    [GX]: ["gx", "gradient of the input"],
    [GY]: ["gy", "gradient of the output"],
    [INDICES]: ["index", "of each winner"]
};
const EDITED = {
    x: X,
    dx: DX,
    gy: GY
};

function show() {
    good = {...state};
    layout();
    const content = CONTENT[state.view], x = sideX(), y = sideY();
    const title = (panel, k, s) => {
        const [name, words] = NAMES[k], editable = EDITED[content.edits] === k ? ", yours to edit" : "";
        panel.title.replaceChildren(
            h("b", {}, name), ` ${words}, ${p.spatial > 1 ? `${s.rows} × ${s.cols}` : s.cols}${editable}`);
    };
    title(left, content.left, x);
    title(right, content.right, y);
    left.paint(plane(content.left, x), content.left !== X, content.left !== X ? plane(X, x) : null);
    right.paint(plane(content.right, y), content.right !== Y && content.right !== INDICES,
        content.right === GY || content.right === DY || content.right === INDICES ? plane(Y, y) : null);
    showSlices();
    point();
    clearTimeout(show.later);
    show.later = setTimeout(showRest, 60);  // tables, code and address can wait for the picture
}

// The largest cells that fit: side by side if there is room, else one above the other.
function layout() {
    const x = sideX(), y = sideY(), hidden = p.spatial > 1 ? [p.spatial - 2, p.spatial - 1] : [null, p.spatial - 1];
    const margins = hidden.map((a, i) => {
        if (a === null || p.window !== "sliding") return [0, 0, 0];
        const {lo, hi} = p.axes[a], last = engine.taps(a, parts(p).ys[a] - 1),
                   reach = last.first + last.step * (last.n - 1) - (i ? x.cols : x.rows) + 1;
        return [lo, Math.max(hi, reach), Math.max(reach - hi, 0)].map((n) => Math.min(n, 64));
    });
    const [[top, bottom, overRows], [before, behind, overCols]] = margins;
    const room = $("figure").clientWidth - 4, gap = Math.min(90, Math.max(40, room * 0.07)),
          tall = Math.max(300, Math.min(480, innerHeight * 0.46));
    const lc = x.cols + before + behind, lr = x.rows + top + bottom, most = lr > 5 || lc > 10 ? 54 : 66;
    const across = Math.min((room - gap) / (lc + Math.max(y.cols, 2)), tall / lr, tall / y.rows, most);
    const above = Math.min(room / Math.max(lc, y.cols), tall / (lr + y.rows), most),
          beside = room > 560 && across * 1.3 > above;
    $("figure").classList.toggle("beside", beside);
    $("figure").style.columnGap = `${gap}px`;
    const fitting = beside ? across
        : room > 560       ? above
                           : Math.min(room / Math.max(lc, y.cols), most),
          least = Math.min(room / Math.max(lc, y.cols) / (beside ? 2.2 : 1), 2);
    const snapped = Math.max(fitting, least) >= 2 ? Math.floor(Math.max(fitting, least)) : Math.max(fitting, least);
    // A few outputs of a large input would be dots.
    const small = Math.max(y.rows, y.cols) <= 16, rest = beside ? room - gap - lc * snapped : room;
    const size = small
        ? Math.max(
              snapped, Math.floor(Math.min(rest / Math.max(y.cols, 2), tall / y.rows, snapped < 20 ? 44 : snapped)))
        : snapped;
    left.layout({
        rows: x.rows,
        cols: x.cols,
        top,
        left: before,
        bottom,
        right: behind,
        beyond: [overRows, overCols],
        size: snapped
    });
    right.layout({rows: y.rows, cols: y.cols, top: 0, left: 0, bottom: 0, right: 0, beyond: [0, 0], size});
}

// Marks what is pointed at, and tells its story.
function point() {
    const at = hover ?? {sel: state.sel, cell: state.cell}, x = sideX(), y = sideY();
    detail = at.cell ? explainCell(engine, p, state.view, x, y, at.cell)
                     : explainWindow(engine, p, state.view, x, y, at.sel);
    const rc = (place) => (p.spatial > 1 ? place.slice(-2) : [0, place[0]]),
          hiddenSame = (place, z) => z.every((v, a) => place[a] === v);
    const shapes = [];
    let frame = null, target = null;
    if (detail.kind === "window") {
        const {top, left: before, rows, cols, bottom, right: behind} = left.shown, hidden = p.spatial - 2;
        const inside = ([r, c]) => r >= -top && c >= -before && r < rows + bottom && c < cols + behind;
        const reads = x.z.every((v, a) => {
            const s = detail.w.spans[a];
            return a >= hidden || ((v - s.first) % s.step === 0 && v >= s.first && (v - s.first) / s.step < s.n);
        });
        if (reads) {
            frame = boxOf(detail.o);
            if (detail.w.total > detail.w.taps.length && detail.w.spans.every((s) => s.step === 1))
                shapes.push(["tap", ...frame]);
            else
                for (const t of detail.w.taps)
                    if (hiddenSame(t.place, x.z) && inside(rc(t.place))) shapes.push(["tap", ...rc(t.place), 1, 1]);
        }
        for (const place of detail.reached)
            if (hiddenSame(place, x.z) && String(place) !== String(detail.winner))
                shapes.push(["tie", ...rc(place), 1, 1]);
        if (detail.winner && hiddenSame(detail.winner, x.z)) shapes.push(["winner", ...rc(detail.winner), 1, 1]);
        if (hiddenSame(detail.o, y.z)) target = [...rc(detail.o), 1, 1];
        right.mark(target, []);
        right.select(...(target ? target.slice(0, 2) : [null]));
        left.select(null);
    } else {
        const readers = detail.w.list.filter((o) => hiddenSame(o, y.z)), won = new Set(detail.won.map(String));
        for (const o of readers.slice(0, 64)) shapes.push(["reader", ...boxOf(o)]);
        frame = hiddenSame(detail.cell, x.z) ? [...rc(detail.cell), 1, 1] : null;
        right.mark(null, readers.map((o) => [won.has(String(o)) ? "winner" : "reader", ...rc(o), 1, 1]));
        right.select(null);
        left.select(...(frame ? frame.slice(0, 2) : [null]));
    }
    if (state.view === "winners" && !left.picture) {
        const index = engine.elements(INDICES), {xs} = parts(p), won = new Set();
        for (let i = 0; i < index.length; i++) won.add(Number(index[i]));
        for (let r = 0; r < x.rows; r++)
            for (let c = 0; c < x.cols; c++)
                if (won.has(flatten(x.place(r, c), xs))) shapes.push(["dot", r, c, 1, 1]);
    }
    left.mark(frame, shapes);
    offerFocus();
    drawLink(frame, target);
    tell($("sentence"), detail.sentence);
    $("order").hidden = !detail.order;
    if (detail.order) {
        tell($("order").firstElementChild, detail.clause);
        $("order").lastElementChild.textContent = detail.order;
    }
}

// Rows, columns and extent of window o on the input.
function boxOf(o) {
    const axes = p.spatial > 1 ? [p.spatial - 2, p.spatial - 1] : [p.spatial - 1];
    const spans = axes.map((a) => engine.taps(a, o[a])), extent = (s) => s.step * (s.n - 1) + 1;
    const [r, c] = spans.length > 1 ? spans : [null, spans[0]];
    return [r ? r.first : 0, c.first, r ? extent(r) : 1, extent(c)];
}

function offerFocus() {
    const rc = (place) => (p.spatial > 1 ? place.slice(-2) : [0, place[0]]);
    left.offer(...(state.cell ? rc(state.cell) : [0, 0]), false);
    right.offer(...(state.sel ? rc(state.sel) : [0, 0]), false);
}

// A beam from the window to its output.
function drawLink(frame, target) {
    const path = $("figure").querySelector(".link path"), figure = $("figure").getBoundingClientRect();
    if (!frame || !target) return path.setAttribute("d", "M0 0");
    const place = (panel, at) => {
        const box = panel.grid.getBoundingClientRect(), b = panel.box(...at);
        return {
            x: box.left - figure.left + b.x,
            y: box.top - figure.top + b.y,
            r: box.left - figure.left + b.x + b.width,
            b: box.top - figure.top + b.y + b.height
        };
    };
    const a = place(left, frame), z = place(right, target);
    path.setAttribute("d",
        z.x >= a.r ? `M${a.r} ${a.y} L${z.x} ${z.y} L${z.x} ${z.b} L${a.r} ${a.b} Z`
                   : `M${a.x} ${a.b} L${z.x} ${z.y} L${z.r} ${z.y} L${a.r} ${a.b} Z`);
}

// Sentences with **bold** and clauses.
function tell(host, text) {
    const pieces = text.split(/(\*\*.+?\*\*|\[[A-Z]\d(?:, [A-Z]\d)*\])/).filter(Boolean);
    host.replaceChildren(...pieces.flatMap((piece) => piece.startsWith("**") ? [h("b", {}, piece.slice(2, -2))]
            : /^\[[A-Z]\d/.test(piece) ? piece.slice(1, -1).split(", ").map(clauseButton)
                                       : [piece]));
}
const clauseButton = (name) => h(
    "button", {type: "button", class: "clause", "aria-label": `Clause ${name}`, onclick: () => showClause(name)}, name);
function showClause(name) {
    const dialog = $("clause");
    dialog.querySelector("h2").textContent = `Clause ${name}`;
    dialog.querySelector("p").textContent = JSON.parse($("clauses").textContent)[name] ?? "";
    dialog.showModal();
}

// What need not be there in the same frame.
function showRest() {
    const o = detail?.kind === "window" ? detail.o : state.sel ?? parts(p).ys.map((n) => n - 1);
    const index = extreme() ? Number(engine.elements(INDICES)[sideY().element(o)]) : -1,
          rows = whoSaysWhat(engine, p, o, index);
    $("who").replaceChildren(h("thead", {}, h("tr", {}, h("td"), SYSTEMS.map((name) => h("th", {scope: "col"}, name)))),
        h("tbody", {},
            rows.map(([question, cells]) => h("tr", {}, h("th", {scope: "row"}, question),
                         cells.map((c, i) => h("td", {class: c.mark === "≠" ? "differs" : ""},
                                       i ? h("b", {}, c.mark) : null, ` ${c.text}`, h("small", {}, c.source)))))));
    $("code").textContent = CODES[+document.querySelector("#codes input:checked").value][1](p);
    $("hash").textContent = sha256(writeNpy(p.dtype, p.out, engine.bytes(Y)));
    $("hash-note")
        .replaceChildren(
            "of y.npy. With x.npy from here, ", h("code", {}, command(p)), " prints the same, on any machine.");
    showAddress();
    showHint();
}

function showAddress() {
    const told = {...state};
    note = "";
    for (const name in TENSOR)
        if (state[name] instanceof Uint8Array) {
            told[name] = tellTensor(engine, TENSOR[name]);
            if (!told[name])
                note = `${
                    name} has too many values for a link: the link has the problem, not your numbers. Save it as .npy instead.`;
        }
    if (told.cell) told.sel = null;
    const fragment = formatFragment(told);
    if (location.hash !== address) return;  // somebody has just gone elsewhere: that comes first
    if (fragment !== location.hash) history.replaceState(null, "", fragment);
    address = location.hash;
    const idea = GALLERY.findIndex((g) => g[0] === showAddress.idea);
    if (idea < 0 && showAddress.last !== undefined) {
        $("idea").querySelector("h2").textContent = "Your own problem";
        $("idea").querySelector("p").textContent = "Share it by its link, or go on with the ideas.";
    }
    $("idea-back").hidden = showAddress.last === undefined && idea < 0;
    if (idea >= 0) {
        showAddress.last = idea;
        $("idea").querySelector("h2").textContent = `${idea + 1}. ${GALLERY[idea][1]}`;
        tell($("idea").querySelector("p"), GALLERY[idea][2]);
    }
}

function showHint() {
    const edits = CONTENT[state.view].edits;
    $("hint").textContent = note ||
        (brush !== null ? `Painting ${edits}: drag over its cells. Escape ends it.`
                : pinned
                ? `Pinned: Escape, or another click, lets go. Enter or typing changes a cell of ${edits}.`
                : `Point at a cell of either grid, or move with the arrow keys; a click or Space pins it. Enter or typing changes a cell of ${
                      edits}.`);
}

function showSlices() {
    const shown = planes(p, state.at), {lead} = parts(p), names = [
        ...lead.map((_, a) => (a === lead.length - 1 ? "channel"
                            : a                      ? `axis ${a}`
                                                     : "sample")),
        ...shown.zx.map((_, a) => `slice of the input${shown.hidden > 1 ? `, axis ${a}` : ""}`),
        ...shown.zy.map((_, a) => `slice of the output${shown.hidden > 1 ? `, axis ${a}` : ""}`)
    ];
    const key = shown.sizes.join();
    if (showSlices.key !== key) {
        showSlices.key = key;
        $("slices").replaceChildren(
            ...shown.sizes.flatMap((size, a) => size < 2 ? [] : [h("label", {}, `${names[a]} `, h("input", {
                type: "range",
                min: 0,
                max: size - 1,
                "data-axis": a,
                oninput: (e) => {
                    state.at[a] = +e.target.value;
                    hover = null;
                    show();
                }
            }),
                                                                    h("output"))]));
    }
    for (const input of $("slices").querySelectorAll("input")) {
        const a = +input.dataset.axis;
        input.value = state.at[a];
        input.nextElementSibling.textContent = `${state.at[a]} of ${shown.sizes[a]}`;
    }
}

// ---- Selecting, editing, playing --------------------------------------------------------------

// The slices follow the window: its own, and one that it reads, the winner's if there is one.
function follow() {
    if (!state.sel || p.spatial < 3) return;
    const shown = planes(p, state.at), l = shown.lead.length, taps = state.sel.map((o, a) => engine.taps(a, o));
    for (let a = 0; a < shown.hidden; a++) {
        const {first, step, lo, hi} = taps[a], now = state.at[l + a],
                                reads = now >= first && (now - first) % step === 0 && (now - first) / step < hi;
        if (!reads && hi > lo) state.at[l + a] = first + step * lo;
        state.at[l + shown.hidden + a] = state.sel[a];
    }
}

function select(which, place, pin) {
    const same = String(which === "left" ? state.cell : state.sel) === String(place);
    state.cell = which === "left" ? place : null;
    if (which === "right") state.sel = place;
    pinned = pin && !(same && pinned && pin === "toggle");
    hover = null;
    showHint();
    const before = String(state.at);
    if (which === "right") follow();
    if (String(state.at) !== before) show();
    else {
        point();
        clearTimeout(show.later);
        show.later = setTimeout(showRest, 150);
    }
}

const panelOf = (which) => (which === "left" ? left : right);
const sideOf = (which) => (which === "left" ? sideX() : sideY());
const editable = (which) => EDITED[CONTENT[state.view].edits] === CONTENT[state.view][which];

function put(which, r, c, value) {
    const name = CONTENT[state.view].edits, s = sideOf(which), i = s.element(s.place(r, c));
    if (p.wide && /^-?\d+$/.test(String(value).trim()))
        engine.elements(TENSOR[name])[i] = BigInt.asIntN(64, BigInt(value));
    else engine.wasm.put(TENSOR[name], i, Number(value));
    state[name] = engine.bytes(TENSOR[name]).slice();
    showAddress.idea = null;
}

function edit(which, r, c, first) {
    if (!editable(which) || panelOf(which).picture) return;
    const panel = panelOf(which), b = panel.box(r, c), k = CONTENT[state.view][which], s = sideOf(which),
          old = values(k)[s.element(s.place(r, c))];
    const input = h("input", {class: "editor", type: "text", "aria-label": `value of cell (${r}, ${c})`});
    input.value = first ?? exact(engine, engine.dtype(k), old);
    input.style.left = `${b.x}px`;
    input.style.top = `${b.y}px`;
    let done = false;
    const finish = (keep) => {
        if (done) return;
        done = true;
        const text = input.value, value = parseNumber(text);
        input.remove();
        if (keep && value !== null) {
            put(which, r, c, p.wide ? text : value);
            compute();
        } else if (keep) $("trouble").textContent = `"${text.slice(0, 30)}" is not a number; nan, inf and -0 are`;
        panel.offer(r, c, true);
    };
    input.addEventListener("keydown", (e) => {
        e.stopPropagation();
        if (e.key === "Enter" || e.key === "Tab") {
            e.preventDefault();
            finish(true);
        } else if (e.key === "Escape") finish(false);
    });
    input.addEventListener("blur", () => finish(true));
    panel.grid.append(input);
    input.focus();
    if (first === undefined) input.select();
}

const ARROWS = {
    ArrowUp: [-1, 0],
    ArrowDown: [1, 0],
    ArrowLeft: [0, -1],
    ArrowRight: [0, 1]
};
function onKey(which, event) {
    const panel = panelOf(which), s = sideOf(which), now = which === "left" ? state.cell : state.sel;
    let [r, c] = event.target.dataset?.at?.split(",").map(Number) ??
        (now ? (p.spatial > 1 ? now.slice(-2) : [0, now[0]]) : [0, 0]);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (ARROWS[event.key] || ["Home", "End", "PageUp", "PageDown"].includes(event.key)) {
        const [dr, dc] = ARROWS[event.key] ?? [0, 0];
        r = event.key === "PageUp"     ? 0
            : event.key === "PageDown" ? s.rows - 1
                                       : Math.max(0, Math.min(s.rows - 1, r + dr));
        c = event.key === "Home" ? 0 : event.key === "End" ? s.cols - 1 : Math.max(0, Math.min(s.cols - 1, c + dc));
        select(which, s.place(r, c), true);
        panel.offer(r, c, true);
    } else if (event.key === "Enter" || event.key === "F2" || event.key === " ") {
        if (editable(which) && event.key !== " ") edit(which, r, c);
        else select(which, s.place(r, c), "toggle");
    } else if (/^[0-9.\-+ni]$/.test(event.key) && editable(which)) edit(which, r, c, event.key);
    else if (event.key === "Escape") {
        pinned = false;
        setBrush(null);
        point();
    } else return;
    event.preventDefault();
}

function listenTo(which) {
    const panel = panelOf(which), grid = panel.grid;
    let down = false;
    const brushAt = (event) => {
        const at = panel.under(event);
        if (at) {
            put(which, ...at, brush);
            compute();
        }
    };
    grid.addEventListener("pointerdown", (event) => {
        if (event.target.classList.contains("editor")) return;
        if (brush !== null && editable(which)) {
            down = true;
            event.preventDefault();
            grid.setPointerCapture(event.pointerId);
            brushAt(event);
        }
    });
    grid.addEventListener("pointermove", (event) => {
        if (down) return brushAt(event);
        if (pinned || playing || event.pointerType === "touch") return;
        const at = panel.under(event);
        if (!at) return;
        const place = sideOf(which).place(...at), next = which === "left" ? {cell: place} : {sel: place};
        if (String(next.cell ?? next.sel) === String(hover?.cell ?? hover?.sel) && !!next.cell === !!hover?.cell)
            return;
        hover = next;
        point();
    });
    grid.addEventListener("pointerup", () => (down = false));
    grid.addEventListener("pointercancel", () => (down = false));
    grid.addEventListener("pointerleave", () => {
        if (hover) {
            hover = null;
            point();
        }
    });
    grid.addEventListener("click", (event) => {
        const at = panel.under(event);
        if (!at || brush !== null || event.target.classList.contains("editor")) return;
        stop();
        select(which, sideOf(which).place(...at), "toggle");
        panel.offer(...at, true);
    });
    grid.addEventListener("dblclick", (event) => {
        const at = panel.under(event);
        if (at && brush === null) {
            pinned = true;
            edit(which, ...at);
        }
    });
    grid.addEventListener("keydown", (event) => {
        if (!event.target.classList.contains("editor")) onKey(which, event);
    });
}

function step(by) {
    const {ys} = parts(p), count = product(ys), now = state.sel ? flatten(state.sel, ys) : 0;
    select("right", unflatten((now + by + count) % count, ys), true);
}
function stop() {
    clearInterval(playing);
    playing = 0;
    $("play").replaceChildren(h("span", {"aria-hidden": "true"}, "▸"), " Play");
    $("play").setAttribute("aria-label", "Play");
}
function play() {
    if (playing) return stop();
    $("play").replaceChildren(h("span", {"aria-hidden": "true"}, "❚❚"), " Pause");
    $("play").setAttribute("aria-label", "Pause");
    playing = setInterval(() => step(1), 1000 / $("speed").value);
}

function setBrush(value) {
    brush = value;
    for (const which of ["left", "right"])
        panelOf(which).grid.classList.toggle("painting", brush !== null && !!p && editable(which));
    const toggle = $("paint");
    toggle.setAttribute("aria-pressed", brush !== null);
    showHint();
}

// ---- Controls ---------------------------------------------------------------------------------

// A problem string of what the controls say; tarn judges it.
function compose(q) {
    const each = (list) => (list.every((v) => v === list[0]) ? `${list[0]}` : list.join(","));
    const sides = (list) => each(list.map((a) => (a.lo === a.hi ? `${a.lo}` : `${a.lo}:${a.hi}`)));
    const words = [q.op], all = (name) => each(q.axes.map((a) => a[name]));
    if (q.window === "sliding") words.push(`k${all("kernel")}s${all("stride")}p${sides(q.axes)}e${all("dilation")}`);
    else words.push(q.window === "adaptive" ? `a${all("out")}` : q.flat ? "flat" : "global");
    words.push(q.type, `d${q.spatial}`, q.shape.join("x"));
    if (q.last) words.push("last");
    if (q.ceil && q.window === "sliding") words.push("ceil");
    if (!q.countPad && (q.op === "avg" || q.op === "smooth")) words.push("nopad");
    if (q.divisor && q.op === "avg" && q.window === "sliding") words.push(`div=${q.divisor}`);
    if (q.op === "smooth") words.push(`beta=${q.beta}`);
    if (q.op === "lp") words.push(`p=${q.power}`);
    if (q.op === "max" || q.op === "min") words.push(`ties=${q.ties}`);
    return words.join(" ");
}

// Numbers that were typed, to be carried over to another shape or dtype.
function keep() {
    const kept = {}, {lead, xs, ys} = parts(p);
    for (const name in TENSOR)
        if (state[name] instanceof Uint8Array)
            kept[name] = {
                shape: [...lead, ...(name === "gy" ? ys : xs)],
                values: values(TENSOR[name]),
                bytes: state[name],
                dtype: p.dtype
            };
    return kept;
}
function restore(k, {shape, values: old, bytes, dtype}) {
    const {lead, xs, ys} = parts(p), now = [...lead, ...(k === GY ? ys : xs)];
    if (dtype === p.dtype && String(shape) === String(now)) return engine.bytes(k).set(bytes);
    fillTensor(engine, k, "x", "zeros");
    if (shape.length > now.length) shape = shape.slice(shape.length - now.length);
    const skip = now.length - shape.length;
    for (let i = 0; i < product(now); i++) {
        const at = unflatten(i, now).slice(skip);
        if (at.every((v, a) => v < shape[a])) engine.wasm.put(k, i, Number(old[flatten(at, shape)]));
    }
}

function change(how) {
    if (!p) return;
    const q = structuredClone(p), kept = keep();
    how(q);
    state.p = compose(q);
    showAddress.idea = null;
    open(null, kept);
}

const field = (legend, ...rows) => h("fieldset", {}, h("legend", {}, legend), rows);
const row = (label, ...inputs) => h("div", {class: "row"}, h("span", {}, label), ...inputs);
const check = (id, label, how) => h("div", {class: "row check", id: `${id}-row`},
    h("label", {}, h("input", {type: "checkbox", id, onchange: (e) => change((q) => how(q, e.target.checked))}),
        label));
function segments(host, name, options, how) {
    host.append(...options.map(
        ([value, label]) => h(
            "label", {}, h("input", {type: "radio", name, value, onchange: () => how(value)}), h("span", {}, label))));
    return host;
}
const radios = (name, label, options, how) =>
    segments(h("div", {class: "segments", role: "radiogroup", "aria-label": label, id: name}), name, options, how);

function stepper(label, least, get, set) {
    const input = h("input", {type: "number", min: least, step: 1, "aria-label": label, inputmode: "numeric"});
    const apply = (value) => {
        if (Number.isInteger(value) && Math.abs(value) < 1e15) set(value);
        else input.value = get();
    };
    const nudge = (by) => () => apply(Math.max(least, Number(input.value) + by));
    input.addEventListener("change", () => apply(Math.trunc(Number(input.value))));
    const part = (text, by) =>
        h("button", {type: "button", tabindex: -1, "aria-hidden": "true", onclick: nudge(by)}, text);
    const box = h("span", {class: "stepper"}, part("−", -1), input, part("+", 1));
    box.refresh = () => {
        input.value = get();
    };
    return box;
}

const AXIS_NAMES = {
    1: ["column"],
    2: ["row", "column"],
    3: ["depth", "row", "column"]
};
const axisName = (a, n) => AXIS_NAMES[n]?.[a] ?? `axis ${a}`;
function axisRow(label, least, get, set, together) {
    const host = h("span", {class: "axes"});
    const line = row(label, host);
    line.refresh = () => {
        const n = p.spatial, one = together && !wide;
        if (host.dataset.key !== `${n} ${one}`) {
            host.dataset.key = `${n} ${one}`;
            host.classList.toggle("many", !one && n > 1);
            host.replaceChildren(...Array.from({length: one ? 1 : n},
                (_, a) =>
                    stepper(one ? label : `${label}, ${axisName(a, n)}`, least, () => get(p, a), (v) => change((q) => {
                        for (let b = 0; b < n; b++)
                            if (one || b === a) set(q, b, v);
                    }))));
        }
        for (const box of host.children) box.refresh();
    };
    return line;
}

const refreshing = [];
const fresh = (line) => {
    refreshing.push(line);
    return line;
};
function makeControls() {
    const axes = (label, least, name) => fresh(axisRow(label, least, (q, a) => q.axes[a][name], (q, a, v) => {
        q.axes[a][name] = v;
    }, true));
    const slider = (id, label, min, max, shown, how) => h("div", {class: "row", id: `${id}-row`},
        h("label",
            { for: id
            },
            label, h("output", {id: `${id}-value`})),
        h("input", {type: "range", id, min, max, step: 0.1, oninput: (e) => change((q) => how(q, +e.target.value))}));
    $("controls").append(
        field("Operator", radios("op", "Operator", OPS.map((o) => [o, o]), (v) => change((q) => { if (q.op === v) return; q.op = v; if (v === "smooth" || v === "lp") { if (!q.float) q.type = "f32"; q.beta ||= 1; q.power ||= 2; } })),
            slider("beta", "β = ", -20, 20, 0, (q, v) => { q.beta = v === 0 ? 0.1 : v; }),
            slider("power", "p = ", 1, 21, 0, (q, v) => { q.power = v === 21 ? 1e12 : v; }),
            h("div", { class: "row", id: "ties-row" }, h("span", {}, "Ties"), radios("ties", "Tie rule", TIES.map((t) => [t, t]), (v) => change((q) => { q.ties = v; }))),
            check("count", "Padding counts", (q, on) => { q.countPad = on; }),
            h("div", { class: "row", id: "divisor-row" }, h("span", {}, "Divisor, 0 counts taps"), fresh(stepper("Divisor", 0, () => p.divisor, (v) => change((q) => { q.divisor = v; }))))),
        field("Windows", radios("window", "Windows", [["sliding", "sliding"], ["adaptive", "adaptive"], ["global", "global"]], (v) => change((q) => {
                for (const a of q.axes) if (v === "adaptive" && q.window !== v) a.out = 3;
                for (const a of q.axes) if (v === "sliding" && q.window !== v) Object.assign(a, { kernel: 2, stride: 2, dilation: 1, lo: 0, hi: 0 });
                q.window = v;
            })),
            h("div", { id: "sliding" }, axes("Kernel", 1, "kernel"), axes("Stride", 1, "stride"), axes("Padding before", 0, "lo"), axes("Padding behind", 0, "hi"), axes("Dilation", 1, "dilation")),
            h("div", { id: "adaptive" }, axes("Windows on an axis", 1, "out")),
            h("div", { class: "row check" }, h("label", {}, h("input", { type: "checkbox", id: "each", onchange: (e) => { wide = e.target.checked; showControls(); } }), "Each axis by itself")),
            check("ceil", "Ceil mode", (q, on) => { q.ceil = on; }), check("flat", "Flat: drop spatial axes", (q, on) => { q.flat = on; })),
        field("Tensor", h("div", { class: "row" }, radios("rank", "Spatial axes", [["1", "1-D"], ["2", "2-D"], ["3", "3-D"]], (v) => change((q) => reshape(q, +v))),
            h("select", { id: "dtype", "aria-label": "dtype", onchange: (e) => change((q) => { q.type = e.target.value; }) }, DTYPES.map((d) => h("option", { value: d }, d)))),
            fresh(axisRow("Size", 1, (q, a) => q.shape[q.rank - q.spatial + a], (q, a, v) => { q.shape[q.rank - q.spatial + a] = v; })),
            h("div", { class: "row" }, h("label", { for: "lead" }, "Leading axes"), h("input", { type: "text", id: "lead", placeholder: "none, or 1x3", spellcheck: "false", onchange: (e) => change((q) => {
                q.shape = [...e.target.value.split(/[x×,\s]+/).filter(Boolean).map(Number).filter(Number.isInteger), ...q.shape.slice(q.rank - q.spatial)];
            }) })),
            check("last", "Channels last", (q, on) => { q.last = on; })),
        field("Values", h("div", { class: "chips", role: "group", "aria-label": "Fill" },
            [["Random", "r"], ["Ramp", "ramp"], ["Ties", "t"], ["Noise", "n"], ["Hostile", "h"], ["Ones", "ones"], ["Zeros", "zeros"]].map(([label, rule]) =>
                h("button", { type: "button", "data-rule": rule, onclick: () => fillBy(rule) }, label))),
            h("div", { class: "chips", role: "group", "aria-label": "Brush" }, h("button", { type: "button", id: "paint", "aria-pressed": "false", onclick: () => setBrush(brush === null ? parseNumber($("ink").value) ?? 9 : null) }, "Paint"),
                h("input", { type: "text", id: "ink", "aria-label": "Value to paint", value: "9", size: 4, onchange: (e) => { if (brush !== null) setBrush(parseNumber(e.target.value) ?? 9); } }),
                ["nan", "inf", "-inf", "-0"].map((v) => h("button", { type: "button", "data-ink": v, onclick: () => useInk(v) }, pretty(v)))),
            h("label", { class: "file" }, "Drop or choose a picture or .npy", h("input", { type: "file", id: "file", accept: "image/*,.npy", onchange: (e) => { if (e.target.files[0]) take(e.target.files[0]); e.target.value = ""; } }))));
    $("controls").addEventListener("submit", (e) => e.preventDefault());
    segments($("views"), "view", [["value", "Value"], ["winners", "Winners"], ["vjp", "VJP"], ["jvp", "JVP"]], (v) => {
        state.view = v;
        hover = null;
        setBrush(null);
        compute();
        showControls();
    });
    segments($("codes"), "code", CODES.map(([name], i) => [i, name]), showRest);
    $("codes").querySelector("input").checked = true;
    $("files").append(...[["x.npy", X], ["y.npy", Y], ["index.npy", INDICES], ["gy.npy", GY], ["gx.npy", GX],
                          ["dx.npy", DX], ["dy.npy", DY]]
                          .map(([name, k]) => h("button",
                                   {type: "button", "data-tensor": k, onclick: () => saveTensor(name, k)}, name)),
        h("button", {type: "button", id: "save-svg", onclick: () => save("tarn.svg", "image/svg+xml", figure())},
            "SVG"),
        h("button", {type: "button", id: "save-png", onclick: savePng}, "PNG"));
}

function reshape(q, spatial) {
    const leading = q.rank - q.spatial, size = q.shape.slice(leading), axis = q.axes.at(-1);
    while (size.length > spatial) size.shift();
    while (size.length < spatial) size.unshift(Math.min(size[0], 4));
    while (q.axes.length > spatial) q.axes.shift();
    while (q.axes.length < spatial) q.axes.unshift({...axis, kernel: Math.min(axis.kernel, 2), lo: 0, hi: 0});
    q.shape = [...q.shape.slice(0, leading), ...size];
    q.spatial = spatial;
    state.sel = state.cell = state.at = null;
}

function showControls() {
    const choose = (name, value) => {
        for (const input of document.querySelectorAll(`input[name="${name}"]`))
            input.checked = input.value === String(value);
    };
    const when = (id, shown) => {
        $(id).hidden = !shown;
    };
    choose("op", p.op);
    choose("window", p.window);
    choose("ties", p.ties);
    choose("rank", p.spatial);
    choose("view", state.view);
    const sliding = p.window === "sliding", padded = sliding && (p.op === "avg" || p.op === "smooth");
    when("beta-row", p.op === "smooth");
    when("power-row", p.op === "lp");
    when("ties-row", extreme());
    when("count-row", padded);
    when("divisor-row", p.op === "avg" && sliding);
    when("sliding", sliding);
    when("adaptive", p.window === "adaptive");
    when("ceil-row", sliding);
    when("flat-row", p.window === "global");
    when("last-row", p.rank > p.spatial);
    const uneven = p.axes.some(
        (a) => ["kernel", "stride", "lo", "hi", "dilation", "out"].some((name) => a[name] !== p.axes[0][name]));
    if (uneven) wide = true;
    $("each").checked = wide;
    $("each").closest(".row").hidden = p.spatial < 2 || p.window === "global";
    $("ceil").checked = p.ceil;
    $("flat").checked = p.flat;
    $("count").checked = p.countPad;
    $("last").checked = p.last;
    if (document.activeElement !== $("beta")) $("beta").value = p.beta;
    if (document.activeElement !== $("power")) $("power").value = Math.min(p.power, 21);
    $("beta-value").textContent = pretty(String(p.beta));
    $("power-value").textContent = p.power > 21 ? `${p.power}, nearly ∞` : p.power;
    $("dtype").value = p.type;
    for (const option of $("dtype").options)
        option.disabled = (p.op === "smooth" || p.op === "lp") && DTYPES.indexOf(option.value) > 3;
    $("lead").value = p.shape.slice(0, p.rank - p.spatial).join("x");
    for (const line of refreshing) line.refresh();
    for (const input of document.querySelectorAll('input[name="view"]'))
        input.disabled =
            (input.value === "winners" && !extreme()) || ((input.value === "vjp" || input.value === "jvp") && !p.float);
    for (const button of $("files").querySelectorAll("[data-tensor]"))
        button.hidden = (+button.dataset.tensor === INDICES && !extreme()) ||
            (+button.dataset.tensor !== INDICES && +button.dataset.tensor > Y && !p.float);
}

// ---- Values -----------------------------------------------------------------------------------

let seed = 7;
function fillBy(rule) {
    const name = CONTENT[state.view].edits;
    state[name] = rule.length === 1 ? `${rule}${++seed}` : rule;
    showAddress.idea = null;
    fillTensor(engine, TENSOR[name], name, state[name]);
    compute();
}

// A special value goes to the pinned cell, or onto the brush.
function useInk(text) {
    const which = CONTENT[state.view].edits === "gy" ? "right" : "left",
          place = which === "left" ? state.cell : state.sel;
    $("ink").value = text;
    if (pinned && place && brush === null) {
        const s = sideOf(which), i = s.element(place), name = CONTENT[state.view].edits;
        engine.wasm.put(TENSOR[name], i, parseNumber(text));
        state[name] = engine.bytes(TENSOR[name]).slice();
        compute();
    } else setBrush(parseNumber(text));
}

async function take(file) {
    try {
        if (file.size > 64 * 2 ** 20) throw new Error(`the file has ${file.size} bytes; this page takes up to 64 MiB`);
        const head = new Uint8Array(await file.slice(0, 6).arrayBuffer());
        await (head[0] === 0x93 && head[1] === 0x4e ? takeNpy(file) : takePicture(file));
        showAddress.idea = null;
    } catch (error) { $("trouble").textContent = error.message; }
}

async function takeNpy(file) {
    const {dtype, shape, bytes} = readNpy(new Uint8Array(await file.arrayBuffer()), LIMIT);
    const q = structuredClone(p);
    q.type = DTYPES[dtype];
    if (dtype > 3 && (q.op === "smooth" || q.op === "lp"))
        throw new Error(`${q.op} takes floating types; the file has ${q.type}`);
    if (q.spatial > shape.length) reshape(q, shape.length);
    if (q.shape.length - q.spatial === 0 && shape.length > q.spatial && shape.length <= 3 && q.rank === q.spatial &&
        shape.length === 3 && shape[0] > 4)
        reshape(q, 3);
    q.shape = shape;
    state.p = compose(q);
    state.x = bytes;
    Object.assign(state, {sel: null, cell: null, at: null, dx: DEFAULTS.dx, gy: DEFAULTS.gy});
    open();
}

// A picture is pooled to what the page shows, by tarn: an adaptive average of its bytes.
async function takePicture(file) {
    const {rows, cols, grey} = await readPicture(file), factor = Math.max(rows, cols) / SHOWN;
    const r = factor > 1 ? Math.max(1, Math.round(rows / factor)) : rows,
          c = factor > 1 ? Math.max(1, Math.round(cols / factor)) : cols;
    const helper = new Engine(module), shrink = helper.open(`avg a${r},${c} u8 ${rows}x${cols}`, 2 ** 25);
    if (shrink.error) throw new Error(shrink.error);
    helper.elements(X).set(grey);
    helper.run(FORWARD);
    const small = helper.elements(Y).slice(), q = structuredClone(p);
    if (q.spatial !== 2) reshape(q, 2);
    q.shape = [r, c];
    state.p = compose(q);
    Object.assign(state, {x: "zeros", sel: null, cell: null, at: null, dx: DEFAULTS.dx, gy: DEFAULTS.gy});
    if (open() === false) return;
    engine.fill(X, Array.from(small));
    state.x = engine.bytes(X).slice();
    compute();
    if (factor > 1)
        $("trouble").textContent = `The picture has ${rows} × ${cols} cells: tarn averaged it to ${r} × ${c} first.`;
}

// ---- Taking away ------------------------------------------------------------------------------

function save(name, type, content) {
    const url = URL.createObjectURL(new Blob([content], {type}));
    h("a", {href: url, download: name}).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}
function saveTensor(name, k) {
    if (k === GX) engine.run(VJP);
    if (k === DY) engine.run(JVP);
    save(name, "application/octet-stream",
        writeNpy(engine.dtype(k), [X, DX, GX].includes(k) ? p.shape : p.out, engine.bytes(k)));
}
const figure = () => drawSvg([left, right], detail.sentence.replaceAll("**", ""));
async function savePng() {
    const image = new Image(), url = URL.createObjectURL(new Blob([figure()], {type: "image/svg+xml"}));
    image.src = url;
    await image.decode();
    const canvas = h("canvas", {width: image.width * 2, height: image.height * 2});
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(url);
    canvas.toBlob((blob) => save("tarn.png", "image/png", blob));
}
async function copy(text, said) {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        const area = h("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
    }
    $("copied").textContent = said;
    setTimeout(() => {
        $("copied").textContent = "";
    }, 2500);
}

// ---- Events -----------------------------------------------------------------------------------

function goTo(i) {
    const idea = GALLERY[(i + GALLERY.length) % GALLERY.length];
    Object.assign(state, parseFragment(fragmentOf(idea)));
    pinned = true;
    stop();
    setBrush(null);
    showAddress.idea = idea[0];
    open();
}

function makeGallery() {
    $("gallery").append(...GALLERY.map((idea, i) => {
        const text = h("p");
        tell(text, idea[2]);
        return h("li", {},
            h("a", {
                href: fragmentOf(idea),
                onclick: (e) => {
                    e.preventDefault();
                    goTo(i);
                    scrollTo({top: 0});
                }
            },
                idea[1]),
            text);
    }));
}

function listen() {
    listenTo("left");
    listenTo("right");
    let typing;
    const typed = () => {
        if (!engine || $("problem").value === state.p) return;
        const kept = p ? keep() : {};
        state.p = $("problem").value;
        showAddress.idea = null;
        open(state.p, kept);
    };
    $("problem").addEventListener("change", typed);
    $("problem").addEventListener("input", () => {
        clearTimeout(typing);
        typing = setTimeout(typed, 700);
    });
    $("back").addEventListener("click", () => {
        stop();
        step(-1);
    });
    $("next").addEventListener("click", () => {
        stop();
        step(1);
    });
    $("play").addEventListener("click", play);
    $("speed").addEventListener("input", () => {
        if (playing) {
            stop();
            play();
        }
    });
    $("share").addEventListener("click", () => {
        showRest();
        copy(location.href, "Link copied");
        $("share").textContent = "Copied";
        setTimeout(() => {
            $("share").textContent = "Copy link";
        }, 1500);
    });
    $("copy").addEventListener("click", () => copy($("code").textContent, "Copied"));
    const idea = (by) => () => goTo((showAddress.last ?? -1) + by);
    $("idea-back").addEventListener("click", idea(-1));
    $("idea-next").addEventListener("click", idea(1));
    $("theme").addEventListener("click", () => {
        const list = document.documentElement.classList,
              dark = list.contains("dark") ||
            (!list.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches);
        list.toggle("dark", !dark);
        list.toggle("light", dark);
        if (p) show();
    });
    addEventListener("hashchange", readAddress);
    addEventListener("resize", () => {
        if (p) show();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
        if (p) show();
    });
    addEventListener("dragover", (e) => {
        e.preventDefault();
        $("drop").hidden = false;
    });
    addEventListener("dragleave", (e) => {
        if (!e.relatedTarget) $("drop").hidden = true;
    });
    addEventListener("drop", (e) => {
        e.preventDefault();
        $("drop").hidden = true;
        if (e.dataTransfer.files[0] && p) take(e.dataTransfer.files[0]);
    });
}

if (typeof document === "undefined") workerMain();
else start();

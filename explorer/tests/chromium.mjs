// A browser by its own protocol, through a pipe: nothing to install but Debian's chromium.
import {spawn} from "node:child_process";
import {mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";

export async function launch(program = process.env.CHROMIUM ?? "chromium") {
    const profile = mkdtempSync(join(tmpdir(), "tarn-chromium-"));
    const flags = [
        "--headless=new", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
        "--remote-debugging-pipe", "--disable-background-networking", "--disable-component-update", "--disable-sync",
        "--disable-ipc-flooding-protection", "--force-color-profile=srgb", `--user-data-dir=${profile}`
    ];
    if (process.getuid?.() === 0) flags.push("--no-sandbox");
    const child = spawn(program, [...flags, "about:blank"], {stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"]});
    const waiting = new Map(), listeners = [];
    let next = 0, buffer = "";
    child.stdio[4].setEncoding("utf8").on("data", (data) => {
        buffer += data;
        for (let end; (end = buffer.indexOf("\0")) >= 0; buffer = buffer.slice(end + 1)) {
            const message = JSON.parse(buffer.slice(0, end)), call = waiting.get(message.id);
            waiting.delete(message.id);
            if (message.error) call?.[1](new Error(`${call[2]}: ${message.error.message}`));
            else if (call) call[0](message.result);
            else
                for (const listener of listeners) listener(message);
        }
    });
    const send = (method, params = {}, sessionId) => new Promise((done, fail) => {
        waiting.set(++next, [done, fail, method]);
        child.stdio[3].write(JSON.stringify({id: next, method, params, sessionId}) + "\0");
    });
    const close = async () => {
        await Promise.race([send("Browser.close").catch(() => {}), new Promise((done) => setTimeout(done, 2000))]);
        await new Promise((done) => (child.exitCode !== null
                                  ? done()
                                  : (child.once("exit", done), setTimeout(() => child.kill("SIGKILL"), 3000))));
        rmSync(profile, {recursive: true, force: true, maxRetries: 5});
    };
    return {send, close, on: (listener) => listeners.push(listener)};
}

const KEYS = {
    Enter: [13, "\r"],
    Tab: [9],
    Escape: [27],
    ArrowLeft: [37],
    ArrowUp: [38],
    ArrowRight: [39],
    ArrowDown: [40],
    Home: [36],
    End: [35],
    F2: [113],
    " ": [32, " "]
};

// A tab, with the few verbs that tests need. `troubles` collects errors of the console and requests to the network.
export async function open(
    browser, url, {width = 1280, height = 900, dark = false, reduced = false, touch = false} = {}) {
    const {targetId} = await browser.send("Target.createTarget", {url: "about:blank"});
    const {sessionId} = await browser.send("Target.attachToTarget", {targetId, flatten: true});
    const send = (method, params) => browser.send(method, params, sessionId), troubles = [];
    browser.on((message) => {
        if (message.sessionId !== sessionId) return;
        const {method, params} = message;
        if (method === "Runtime.exceptionThrown")
            troubles.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
        if (method === "Log.entryAdded" && params.entry.level === "error") troubles.push(params.entry.text);
        if (method === "Runtime.consoleAPICalled" && ["error", "assert"].includes(params.type))
            troubles.push(params.args.map((a) => a.value).join(" "));
        if (method === "Network.requestWillBeSent" && /^(https?|wss?|ftp):/.test(params.request.url))
            troubles.push(`request of ${params.request.url}`);
        if (method === "Page.javascriptDialogOpening") troubles.push("a dialog");
    });
    for (const domain of ["Page", "Runtime", "Log", "Network", "DOM"]) await send(`${domain}.enable`);
    await send(
        "Network.emulateNetworkConditions", {offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0});
    const size = (w, h) =>
        send("Emulation.setDeviceMetricsOverride", {width: w, height: h, deviceScaleFactor: 1, mobile: touch});
    await size(width, height);
    const look = (isDark, isReduced) => send("Emulation.setEmulatedMedia", {
        features: [
            {name: "prefers-color-scheme", value: isDark ? "dark" : "light"},
            {name: "prefers-reduced-motion", value: isReduced ? "reduce" : "no-preference"}
        ]
    });
    await look(dark, reduced);

    const evaluate = async (expression) => {
        const text = typeof expression === "function" ? `(${expression})()` : expression;
        const {result, exceptionDetails} = await send(
            "Runtime.evaluate", {expression: text, awaitPromise: true, returnByValue: true, userGesture: true});
        if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
        return result.value;
    };
    const until = async (condition, what = condition) => {
        for (let n = 0; n < 400; n++) {
            if (await evaluate(condition).catch(() => false)) return;
            await new Promise((done) => setTimeout(done, 25));
        }
        throw new Error(`waited in vain for: ${what}`);
    };
    const go = async (to) => {
        await send("Page.navigate", {url: "about:blank"});
        await send("Page.navigate", {url: to});
        await until("document.documentElement?.dataset.ready === '1'", `${to.slice(-60)} to be ready`);
    };
    const settle = (ms = 120) => new Promise((done) => setTimeout(done, ms));
    const key = async (name, modifiers = 0) => {
        const [code, text] = KEYS[name] ?? [name.toUpperCase().charCodeAt(0), name];
        const event = {key: name, code: name, windowsVirtualKeyCode: code, modifiers};
        await send("Input.dispatchKeyEvent", {type: text ? "keyDown" : "rawKeyDown", text, ...event});
        await send("Input.dispatchKeyEvent", {type: "keyUp", ...event});
    };
    const mouse = (type, x, y, more = {}) => send("Input.dispatchMouseEvent", {
        type,
        x,
        y,
        button: type === "mouseMoved" && !more.buttons ? "none" : "left",
        clickCount: type === "mouseMoved" ? 0 : 1,
        ...more
    });
    const centre = (selector) => evaluate(`(() => { const e = document.querySelector(${
        JSON.stringify(
            selector)}); e.scrollIntoView({ block: "center", behavior: "instant" }); const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()`);
    const click = async (selector, count = 1) => {
        const [x, y] = await centre(selector);
        for (let n = 1; n <= count; n++) {
            await mouse("mousePressed", x, y, {clickCount: n});
            await mouse("mouseReleased", x, y, {clickCount: n});
        }
    };
    const hover = async (selector) => mouse("mouseMoved", ...(await centre(selector)));
    const picture = async (whole = false) => {
        const {data} = await send("Page.captureScreenshot", {format: "png", captureBeyondViewport: whole});
        return Buffer.from(data, "base64");
    };
    if (url) await go(url);
    return {
        send,
        evaluate,
        until,
        go,
        key,
        mouse,
        centre,
        click,
        hover,
        picture,
        size,
        look,
        settle,
        troubles,
        close: () => browser.send("Target.closeTarget", {targetId})
    };
}

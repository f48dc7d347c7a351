// The pages' moving parts: light and dark, the mark in the contents beside the text, commands that are copied, and curves that the
// reader draws (the search: search.js). No network, no library; works from a file.
"use strict";

function setUpTheme() {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  document.querySelector(".theme").addEventListener("click", () => {
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : dark.matches;
    root.dataset.theme = isDark ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch (error) { /* private mode: for this page only */ }
  });
}

// In the contents, marks the section that is being read.
function setUpMark() {
  const links = [...document.querySelectorAll(".sidebar .sections a")];
  const target = (link) => document.getElementById(decodeURIComponent(link.hash.slice(1)));
  const headings = links.map(target).filter(Boolean);
  if (headings.length === 0) return;
  const update = () => {
    const above = headings.filter((heading) => heading.getBoundingClientRect().top < 120);
    const current = above.length - 1;
    links.forEach((link, index) => {
      if (index === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
  };
  document.addEventListener("scroll", update, { passive: true });
  update();
}

// A table or a plot that is wider than its place scrolls: by keys, too. One for screen readers alone has a pixel, and is no stop.
function setUpWideTables() {
  const tables = [...document.querySelectorAll("main :is(table, .plot)")];
  const update = () => tables.forEach((table) => {
    if (table.scrollWidth > table.clientWidth && table.clientHeight > 1) table.tabIndex = 0;
    else table.removeAttribute("tabindex");
  });
  new ResizeObserver(update).observe(document.body);
}

// ---- commands are copied without their prompts and without what they print ------------------------------------------

// What a reader types in a listing: the lines behind a prompt, or all of a script.
function commandsOf(listing) {
  if (listing.matches(".typed")) return listing.querySelector("code").textContent.trimEnd();
  const lines = [...listing.querySelectorAll(".line.typed")].map((line) => {
    const sign = line.querySelector(".sign");
    return line.textContent.slice(sign ? sign.textContent.length : 0);
  });
  return lines.join("\n");
}

// Whether the text is in the clipboard now. Where a page may not write to it (an old browser, no permission), the old way is
// tried: a field of its own is selected and copied.
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { /* not here */ }
  const field = document.createElement("textarea"), before = document.activeElement;
  field.value = text;
  field.className = "unseen";
  document.body.append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    before?.focus({ preventScroll: true });
  }
}

function setUpCopying() {
  const listings = [...document.querySelectorAll("figure.console:has(.line.typed), figure.listing.typed")];
  if (listings.length === 0) return;
  const status = document.createElement("p");
  status.setAttribute("role", "status");
  status.className = "unseen";
  document.body.append(status);
  for (const listing of listings) {
    const button = document.createElement("button"), text = commandsOf(listing);
    const what = listing.querySelectorAll(".line.typed").length > 1 ? "commands" : "command";
    Object.assign(button, { type: "button", className: "copy", textContent: "Copy" });
    button.setAttribute("aria-label", `Copy the ${what}`);
    button.addEventListener("click", async () => {
      if (!await copied(text)) return;
      button.textContent = "Copied";
      status.textContent = "Copied.";
      setTimeout(() => { button.textContent = "Copy"; status.textContent = ""; }, 2000);
    });
    listing.append(button);
  }
}

setUpTheme();
setUpMark();
setUpWideTables();
setUpCopying();

// ---- You draw it: a curve is drawn before it is shown ----------------------------------------------
//
// A box "Predict before you read on" with data-draw has the points of measured curves. The reader
// draws with pointer or arrow keys, picks a shape, or fills in a table. Then the curves appear over it
// one by one, each with a sentence on what differs: the reference run's, one's own, that of 2003; with
// the first the figure below. Kept in the browser; without JavaScript the box is the question alone.

const NS = "http://www.w3.org/2000/svg";
const WIDTH = 640, HEIGHT = 340, LEFT = 98, RIGHT = 30, TOP = 34, BOTTOM = 48;

function svgElement(name, attributes, parent) {
  const element = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (parent) parent.append(element);
  return element;
}

const TIMES = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, s: 1 };

// 41.3, "µs" -> "41 µs"; 15000, "" -> "15 000".
function said(value, unit) {
  if (TIMES[unit]) {
    const seconds = value * TIMES[unit];
    const name = Object.keys(TIMES).reverse().find((each) => seconds >= TIMES[each]) || "ns";
    value = seconds / TIMES[name];
    unit = name;
  }
  const text = value >= 100 ? Math.round(value).toLocaleString("en").replace(/,/g, "\u202f") : Number(value.toPrecision(2));
  return `${text} ${unit}`.trim();
}

// Beside an axis, where there is little room: 15000 -> "15k". A time has its unit, another number none.
function tickText(value, unit) {
  if (TIMES[unit]) return said(value, unit);
  if (value >= 1e6) return `${said(value / 1e6, "")}M`;
  return value >= 1e3 ? `${said(value / 1e3, "")}k` : said(value, "");
}

// An axis: from values to 0..1 and back, and where its ticks are.
function axis(values, roomBelow, roomAbove, logarithmic) {
  const least = Math.min(...values), most = Math.max(...values);
  const log = logarithmic && least > 0;
  const low = log ? Math.log10(least) - roomBelow : Math.min(0, least);
  const high = log ? Math.log10(most) + roomAbove : most * (1 + roomAbove);
  const ticks = [];
  if (log) for (let power = Math.ceil(low - 1e-9); power <= high + 1e-9; power++) ticks.push(10 ** power);
  else for (let part = 0; part <= 4; part++) ticks.push(low + (part * (high - low)) / 4);
  return {
    ticks,
    place: (value) => ((log ? Math.log10(Math.max(value, 10 ** low)) : value) - low) / (high - low),
    value: (place) => (log ? 10 ** (low + place * (high - low)) : low + place * (high - low)),
  };
}

function times(a, b) {
  const factor = Math.max(a / b, b / a);
  return factor < 1.25 ? "as good as it gets" : `${said(factor, "")} times ${a > b ? "too much" : "too little"}`;
}

// One sentence or two, from the points alone.
function difference(data, line, guess) {
  const known = guess.map((value, index) => (value === null ? -1 : index)).filter((index) => index >= 0);
  if (known.length === 0) return "";
  const first = known[0], last = known[known.length - 1];
  let text = `at ${said(line.x[last], "")} you drew ${said(guess[last], data.unit)} and ` +
    `${said(line.y[last], data.unit)} was measured: ${times(guess[last], line.y[last])}.`;
  const ends = (from, to, s) => {
    const factor = to / from;
    if (factor > 1.25) return `grow${s} ${said(factor, "")}-fold`;
    return factor < 0.8 ? `fall${s} to 1/${said(1 / factor, "")}` : `stay${s} flat`;
  };
  if (last > first) {
    text += ` From end to end you let it ${ends(guess[first], guess[last], "")}; measured, it ` +
      `${ends(line.y[first], line.y[last], "s")}.`;
  }
  const above = known.map((index) => guess[index] > line.y[index]);
  const crossing = above.findIndex((each, place) => place > 0 && each !== above[place - 1]);
  if (crossing > 0) text += ` The two cross at about ${said(line.x[known[crossing]], "")}.`;
  return text;
}

// The y of a line at an x between its points.
function at(line, x) {
  const right = Math.max(1, line.x.findIndex((each) => each >= x));
  const part = (x - line.x[right - 1]) / (line.x[right] - line.x[right - 1]);
  return line.y[right - 1] + part * (line.y[right] - line.y[right - 1]);
}

// How a line differs from the first one, where both end.
function besides(data, line, first) {
  const x = Math.min(line.x[line.x.length - 1], first.x[first.x.length - 1]);
  const there = at(line, x), here = at(first, x), factor = Math.max(there / here, here / there);
  const than = factor < 1.1 ? "as" : there > here ? `${said(factor, "")} times that` : `1/${said(factor, "")} of that`;
  const who = line.whose === "here" ? "On your machine" : `In ${line.whose}`;
  return `${who}: ${said(there, data.unit)} at ${said(x, "")}, ${than} in the reference run.`;
}

const SHAPES = { "flat": 0, "slower than in proportion": 0.5, "in proportion": 1, "falling": -0.5 };

// Whether these can be points over `xs`: a browser may keep those of an older edition, or damaged ones.
const canBeDrawn = (y, xs) => Array.isArray(y) && y.length === xs.length
  && y.every((each) => each === null || (Number.isFinite(each) && each >= 0));

function setUpDrawing(box, number) {
  const data = JSON.parse(box.dataset.draw);
  const key = `drawn:${location.pathname.split("/").pop()}:${number}`;
  const first = data.lines[0], xs = first.x;
  const nothing = () => ({ y: xs.map(() => null), shown: 0 });
  let kept = nothing();
  try {
    const old = JSON.parse(localStorage.getItem(key));
    if (old && canBeDrawn(old.y, xs)) kept = { y: old.y, shown: Math.max(0, Math.trunc(old.shown) || 0) };
  } catch { /* nothing is kept, or nothing can be */ }
  const far = Math.min(...xs) > 0 && Math.max(...xs) / Math.min(...xs) >= 50;
  const across = axis(xs, 0, 0, far);
  // Room for a guess that is wrong by far; more above a curve that is flat.
  const all = data.lines.flatMap((line) => line.y);
  const up = axis(all, 1.3, Math.max(...all) / Math.min(...all) < 10 ? 2.7 : 1.3, true);
  const px = (x) => LEFT + across.place(x) * (WIDTH - LEFT - RIGHT);
  const py = (y) => HEIGHT - BOTTOM - up.place(y) * (HEIGHT - TOP - BOTTOM);

  const area = document.createElement("div");
  area.className = "drawing";
  const svg = svgElement("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`, tabindex: 0, role: "application",
    "aria-label": `Draw ${data.yTitle} over ${data.xTitle}. Left and right choose a point, up and down move it; below is the same as a table.`,
  });
  for (const tick of up.ticks) {
    svgElement("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: py(tick), y2: py(tick) }, svg);
    svgElement("text", { x: LEFT - 8, y: py(tick) + 5, "text-anchor": "end" }, svg).textContent = tickText(tick, data.unit);
  }
  for (const tick of across.ticks) {
    svgElement("line", { class: "grid", x1: px(tick), x2: px(tick), y1: TOP, y2: HEIGHT - BOTTOM }, svg);
    svgElement("text", { x: px(tick), y: HEIGHT - BOTTOM + 20, "text-anchor": "middle" }, svg).textContent = tickText(tick, "");
  }
  svgElement("text", { x: 4, y: 20 }, svg).textContent = TIMES[data.unit] ? data.yTitle : data.unit || data.yTitle;
  svgElement("text", { x: WIDTH - RIGHT, y: HEIGHT - 8, "text-anchor": "end" }, svg).textContent = data.xTitle;
  const measured = data.lines.map((line) => {
    const group = svgElement("g", { class: `measured ${line.whose.split(",")[0]}` }, svg);
    const from = Math.max(xs[0], line.x[0]), to = Math.min(xs[xs.length - 1], line.x[line.x.length - 1]);
    const points = [from, ...line.x.filter((x) => x > from && x < to), to].map((x) => [x, at(line, x)]);
    svgElement("polyline", { points: points.map(([x, y]) => `${px(x)},${py(y)}`).join(" ") }, group);
    const [x, y] = points[points.length - 1];
    svgElement("text", { x: px(x) - 4, y: py(y) - 8, "text-anchor": "end" }, group).textContent = line.whose;
    return group;
  });
  const line = svgElement("polyline", { class: "guess" }, svg);
  const dots = xs.map((x) => svgElement("circle", { class: "guess", r: 4, cx: px(x) }, svg));
  const cursor = svgElement("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM }, svg);
  let place = 0;

  const status = document.createElement("p");
  status.setAttribute("role", "status");
  const tell = (text) => { status.textContent = text.replace(/\b(\d\d[a-z]?)-(?=[a-z])/g, "$1-\u2060"); }; // 13-uring stays on one line
  const show = document.createElement("button");
  const again = document.createElement("button");
  again.textContent = "Draw again";
  const shapes = document.createElement("p");
  shapes.append("Draw, or begin with a shape: ", ...Object.entries(SHAPES).map(([name, exponent]) => {
    const button = document.createElement("button");
    button.textContent = name;
    button.addEventListener("click", () => { pick(exponent); keep(); });
    return button;
  }));
  const details = document.createElement("details");
  details.innerHTML = "<summary>The points as a table</summary>";
  const table = document.createElement("table");
  table.createTHead().insertRow().innerHTML = "<th scope=col></th><th scope=col>your guess</th><th scope=col>measured</th>";
  table.rows[0].cells[0].textContent = data.xTitle;
  const inputs = xs.map((x, index) => {
    const row = table.insertRow();
    row.insertCell().textContent = said(x, "");
    const input = document.createElement("input");
    Object.assign(input, { type: "number", step: "any", min: 0 });
    input.setAttribute("aria-label", `${data.yTitle} at ${said(x, "")}, in ${data.unit || "numbers"}`);
    input.addEventListener("change", () => { set(index, input.valueAsNumber >= 0 ? input.valueAsNumber : null); keep(); });
    row.insertCell().append(input);
    row.insertCell();
    return input;
  });
  details.append(table);

  const rest = []; // of its section: the finding, the figure and the text would give the answer away
  for (let each = box.nextElementSibling; each && !each.matches("h2, h3, section, .predict"); each = each.nextElementSibling) rest.push(each);

  function set(index, value) {
    kept.y[index] = value;
    draw();
  }
  function pick(exponent) {
    const start = kept.y[0] ?? up.value(exponent < 0 ? 0.8 : exponent > 0 ? 0.2 : 0.5);
    const unit = xs.find((x) => x > 0);
    kept.y = xs.map((x) => up.value(Math.min(1, Math.max(0, up.place(start * (Math.max(x, unit) / unit) ** exponent)))));
    draw();
  }
  function keep() {
    try { localStorage.setItem(key, JSON.stringify(kept)); } catch { /* it is drawn all the same */ }
    document.dispatchEvent(new CustomEvent("drawn", { detail: { number, ...kept } }));
  }
  function draw() {
    const some = kept.y.map((y, index) => [xs[index], y]).filter(([, y]) => y !== null);
    line.setAttribute("points", some.map(([x, y]) => `${px(x)},${py(y)}`).join(" "));
    dots.forEach((dot, index) => {
      dot.style.display = kept.y[index] === null ? "none" : "";
      if (kept.y[index] !== null) dot.setAttribute("cy", py(kept.y[index]));
    });
    cursor.setAttribute("x1", px(xs[place]));
    cursor.setAttribute("x2", px(xs[place]));
    inputs.forEach((input, index) => {
      if (input !== document.activeElement) input.value = kept.y[index] === null ? "" : Number(kept.y[index].toPrecision(3));
      table.rows[index + 1].cells[2].textContent = kept.shown ? said(first.y[index], data.unit) : "";
    });
    measured.forEach((group, index) => { group.style.display = index < kept.shown ? "" : "none"; });
    for (const each of rest) each.classList.toggle("undrawn", !kept.shown);
    const next = data.lines[kept.shown];
    show.hidden = !next;
    if (!kept.shown) show.textContent = some.length ? "Show what was measured" : "Show it without a guess";
    else if (next) show.textContent = next.whose === "here" ? "And on this machine?" : "And in 2003?";
    again.hidden = !kept.shown;
    shapes.hidden = kept.shown > 0;
    const whose = first.whose === "here" ? "On your machine" : "In the reference run";
    const told = [`${whose}: ${difference(data, first, kept.y)}`, ...data.lines.slice(1).map((line) => besides(data, line, first))];
    if (!kept.shown) tell(`Draw ${data.yTitle} over ${data.xTitle}.`);
    else {
      const measure = !next && !data.lines.some((line) => line.whose === "here") ? ` And on your machine? ${data.measure}, then make book.` : "";
      tell(told.slice(0, kept.shown).join(" ") + measure);
    }
  }
  function point(event, before) {
    const frame = svg.getBoundingClientRect();
    const x = ((event.clientX - frame.left) / frame.width) * WIDTH, y = ((event.clientY - frame.top) / frame.height) * HEIGHT;
    const now = xs.reduce((best, each, index) => (Math.abs(px(each) - x) < Math.abs(px(xs[best]) - x) ? index : best), 0);
    const height = Math.min(1, Math.max(0, (HEIGHT - BOTTOM - y) / (HEIGHT - TOP - BOTTOM)));
    const from = before === null ? now : before;
    const old = kept.y[from] === null ? height : up.place(kept.y[from]);
    for (let index = Math.min(from, now); index <= Math.max(from, now); index++) {
      const part = from === now ? 1 : (index - from) / (now - from);
      kept.y[index] = up.value(index === now ? height : old + part * (height - old));
    }
    place = now;
    draw();
    return now;
  }
  let before = null;
  svg.addEventListener("pointerdown", (event) => {
    if (kept.shown) return;
    svg.setPointerCapture(event.pointerId);
    before = point(event, null);
  });
  svg.addEventListener("pointermove", (event) => { if (before !== null) before = point(event, before); });
  svg.addEventListener("pointerup", () => { if (before !== null) keep(); before = null; });
  svg.addEventListener("pointercancel", () => { before = null; });
  svg.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 0.02], ArrowDown: [0, -0.02] }[event.key];
    if (!moves || kept.shown || event.altKey || event.ctrlKey || event.metaKey) return; // the browser's: Alt and left leads back
    event.preventDefault();
    place = Math.min(xs.length - 1, Math.max(0, place + moves[0]));
    if (moves[1]) {
      const old = kept.y[place] ?? kept.y.slice(0, place).findLast((each) => each !== null) ?? up.value(0.5);
      kept.y[place] = up.value(Math.min(1, Math.max(0, up.place(old) + moves[1])));
      keep();
    }
    draw();
    const value = kept.y[place];
    status.textContent = `${said(xs[place], "")}: ${value === null ? "nothing yet" : said(value, data.unit)}`;
  });
  show.addEventListener("click", () => { kept.shown += 1; keep(); draw(); });
  again.addEventListener("click", () => { kept = nothing(); keep(); draw(); });
  document.addEventListener("guessed", (event) => { // at the terminal: quest/learn/live.js knows
    const y = event.detail[number];
    if (!canBeDrawn(y, xs) || kept.shown || kept.y.some((each) => each !== null)) return;
    kept.y = y;
    draw();
  });
  area.append(svg, shapes, status, show, again, details);
  box.append(area);
  draw();
}

document.querySelectorAll("div.predict[data-draw]").forEach(setUpDrawing);

// Runs in a page of the book; returns a line for each fault.
const problems = [];
const root = document.documentElement;
const ids = new Set();
let level = 0;

if (root.scrollWidth > window.innerWidth + 1) {
  const wide = [...document.querySelectorAll("body *")].filter((element) =>
    element.getBoundingClientRect().right > window.innerWidth + 1 && !element.closest("pre, table"));
  const culprit = wide.length ? wide[wide.length - 1].outerHTML.slice(0, 80) : "?";
  problems.push("is wider than the window: " + culprit);
}
for (const image of document.images) {
  const name = image.src.slice(-40);
  if (!image.complete || image.naturalWidth === 0) problems.push("missing figure " + name);
  if (!image.alt.trim()) problems.push("no alternative text: " + name);
}
if (!root.lang) problems.push("no language");
if (document.querySelectorAll("h1").length < 1) problems.push("no h1");
for (const heading of document.querySelectorAll("main h1, main h2, main h3, main h4")) {
  const next = Number(heading.tagName[1]);
  if (next > level + 1) problems.push("heading out of order: " + heading.textContent.slice(0, 40));
  level = next;
}
for (const element of document.querySelectorAll("[id]")) {
  if (ids.has(element.id)) problems.push("doubled id " + element.id);
  ids.add(element.id);
}
for (const link of document.querySelectorAll('a[href^="#"]')) {
  const id = decodeURIComponent(link.getAttribute("href").slice(1));
  if (id && !ids.has(id)) problems.push("link to nowhere: #" + id);
}
for (const label of document.querySelectorAll(".drawing svg > text")) {
  const box = label.getBBox();
  if (box.x < 0 || box.y < 0 || box.x + box.width > label.ownerSVGElement.viewBox.baseVal.width)
    problems.push("label of a drawing cut: " + label.textContent);
}
// What scrolls sideways does so by keys.
for (const one of document.querySelectorAll("main :is(table, pre, div, figure)")) {
  if (one.clientHeight <= 1 || one.scrollWidth <= one.clientWidth + 1 || one.tabIndex >= 0) continue;
  const scrolls = ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
  if (scrolls && !one.querySelector("a[href], button, input, [tabindex='0']")) problems.push("scrolls, and cannot be focused: " + one.outerHTML.slice(0, 80));
}
for (const one of document.querySelectorAll("details")) {
  if (!one.querySelector(":scope > summary")?.textContent.trim()) problems.push("details without a summary: " + one.outerHTML.slice(0, 80));
}
// What asks does not look like what answers.
const look = (one) => ["borderLeftStyle", "borderTopStyle", "borderLeftColor"].map((name) => getComputedStyle(one)[name]).join();
const asking = new Set([...document.querySelectorAll(".predict")].map(look));
for (const one of document.querySelectorAll(".outcome")) {
  if (asking.has(look(one)) || one.firstElementChild.textContent.trim() !== "Answer") problems.push("an answer that looks like a question: " + one.textContent.slice(0, 40));
}
for (const one of document.querySelectorAll("main p > strong:first-child")) {
  if (one.textContent === "Answer.") problems.push("an answer without a box: " + one.parentNode.textContent.slice(0, 40));
}
// A short name is on one line.
const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT), part = new Range();
while (texts.nextNode()) {
  const text = texts.currentNode, place = text.parentElement;
  if (!place.closest("p, li, td, th, dd") || place.closest("pre, svg, .player")) continue;
  for (const { 0: name, index } of text.data.matchAll(place.closest("code") ? /\S*-\S*/g : /(?<![\w\/-])\d\d[a-z]?-[a-z][\w-]*/g)) {
    part.setStart(text, index);
    part.setEnd(text, index + name.length);
    const tops = [...part.getClientRects()].map((line) => line.top);
    if (name.length <= 24 && Math.max(...tops) > Math.min(...tops) + 5) problems.push(`is broken: ${name}, in ${place.outerHTML.slice(0, 70)}`);
  }
}
// At 390 px a file of a server stands above what it does, and a plot that scrolls says so.
for (const cell of document.querySelectorAll("section.files td")) {
  if (window.innerWidth < 700 && cell.clientWidth < 200) problems.push("squeezed: " + cell.textContent);
}
for (const plot of document.querySelectorAll(".plot")) {
  const hint = getComputedStyle(plot, "::after").content.includes("scroll");
  if (plot.clientWidth && hint !== plot.scrollWidth > plot.clientWidth) problems.push(`scrolls ${hint ? "not, and says so" : "and does not say so"}: ` + plot.innerHTML.slice(0, 60));
}
if (document.querySelector("main").textContent.trim().length < 80) problems.push("is empty");
return problems;

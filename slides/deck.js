// Starts reveal.js, and lights up listings step by step: a listing with data-steps is followed by
// one invisible fragment for each step, and shows the step of the last visible one; behind them may stand a sentence for each.
//
//   deck.html?speaker              opens the speaker view (S does it too)
//   deck.html?dark                 dark, for a dark room (D turns it over)
//   deck.html?view=print           a page for each slide
//   deck.html?view=print&handout   the same, each slide with its minutes and notes, on A4
"use strict";

const query = new URLSearchParams(location.search);
const printing = query.get("view") === "print" || query.has("print-pdf");
// Whoever prints by a program (quest/book/paper.py) has to wait: the pages come after the load event.
if (printing) document.documentElement.dataset.printing = "wait";
// A deck is light, whatever the system wants.
document.documentElement.dataset.theme = "light";

function showStep(listing) {
  let step = 0;
  let next = listing.nextElementSibling;
  for (; next && next.matches(".step"); next = next.nextElementSibling) {
    if (next.classList.contains("visible")) step = Number(next.dataset.step);
  }
  listing.classList.toggle("stepping", step > 0);
  for (const line of listing.querySelectorAll(".line")) {
    line.classList.toggle("lit", line.classList.contains("step-" + step));
    line.classList.toggle("told", [...line.classList].some((name) => name.startsWith("step-") && Number(name.slice(5)) <= step));
  }
  if (next?.matches(".says")) {
    for (const [index, sentence] of [...next.children].entries()) sentence.classList.toggle("now", index + 1 === step);
  }
}

function showSteps() {
  for (const listing of document.querySelectorAll(".listing[data-steps]")) showStep(listing);
}

// Stands after the page size that reveal.js puts into the document, and wins; a named page would not.
const PAPER = "@page { size: A4; margin: 16mm 18mm 14mm; }";

// A sheet for each page that reveal.js has made: when the slide comes, the slide, what to say.
function makeHandout() {
  const pages = [...document.querySelectorAll(".pdf-page")];
  let section = "";
  let minute = 0;
  document.documentElement.classList.add("handout");
  document.head.append(Object.assign(document.createElement("style"), { textContent: PAPER }));
  for (const [index, page] of pages.entries()) {
    const slide = page.querySelector("section");
    if (slide.matches(".level1, .title-slide")) section = slide.querySelector("h1").textContent;
    const start = minute;
    minute = Math.round(100 * (minute + Number(slide.dataset.minutes))) / 100;
    const sheet = document.createElement("div");
    sheet.className = "sheet";
    sheet.innerHTML = '<p class="when"><span></span><span></span></p><div class="frame"></div>';
    const [name, time] = sheet.querySelectorAll("span");
    name.textContent = section;
    time.textContent = `slide ${index + 1} of ${pages.length} · ${slide.dataset.minutes} min (minute ${start} to ${minute})`;
    page.replaceWith(sheet);
    sheet.querySelector(".frame").append(page);
    sheet.append(...slide.querySelectorAll("aside.notes"));
  }
}

// On paper it is light in any case: theme.css.
function turnOver() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  for (const demo of Demos.values()) demo.recolour();
}
if (query.has("dark")) turnOver();

// The window is the browser's to refuse when nobody has pressed a key: then the key is named.
function openSpeakerView() {
  try {
    Reveal.getPlugin("notes").open();
  } catch (error) {
    const hint = document.createElement("p");
    hint.className = "speaker-hint";
    hint.textContent = "The browser has kept the speaker view from opening: press S.";
    document.body.append(hint);
    addEventListener("keydown", () => hint.remove(), { once: true });
  }
}

// A presenter's remote begins a show with F5, which would load the page anew: the demo would start again and
// the speaker view lose its deck. It fills the screen, as F does; Ctrl-R loads the page anew.
addEventListener("keydown", (event) => {
  if (event.key !== "F5" || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  if (!document.fullscreenElement) document.documentElement.requestFullscreen().catch(() => { /* refused */ });
});

Reveal.on("pdf-ready", () => {
  if (query.has("handout")) makeHandout();
  document.documentElement.dataset.printing = "ready";
});
// The speaker view shows the deck by the same address, with "receiver" in it.
Reveal.on("ready", () => {
  if (query.has("speaker") && !query.has("receiver")) openSpeakerView();
});

for (const event of ["ready", "slidechanged", "fragmentshown", "fragmenthidden"]) {
  Reveal.on(event, showSteps);
}

Reveal.initialize({
  width: 1280,
  height: 720,
  margin: printing ? 0 : 0.02,
  center: false,
  hash: true,
  navigationMode: "linear",
  controls: false,
  slideNumber: "c/t",
  transition: "none",
  backgroundTransition: "none",
  pdfSeparateFragments: false,
  pdfMaxPagesPerSlide: 1,
  keyboard: { 68: turnOver }, // D; all other keys stay as they are
  defaultTiming: 60, // without it the speaker view paces nothing, whatever data-timing says
  plugins: [RevealNotes, RevealSearch, RevealZoom],
});

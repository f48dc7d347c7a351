// Small machines: models of one mechanism each, which a reader can touch. This file has what they share: it gives a machine in the
// page its controls, and on a slide it lets the fragments move it. Each other file of this folder is one machine:
//
//   machines.add("name", {
//     title,                 what the drawing is called where it is not seen
//     start,                 the state it rests in, a plain object
//     controls: [            what the reader moves
//       { name, label, values: [...], show(value, state) },   a slider, for state[name]
//       { name, label },                                      a box to tick
//       { action, label },                                    a button: act(state, action)
//     ],
//     changed(state),        makes a state whole after a slider or a box; may be left out
//     act(state, action),    the state after a button
//     next(state),           the state one step later, null at the end: gives the buttons step, play and again
//     again(state),          the state from which it plays
//     model(state),          what follows from the state, in numbers: nothing of the page
//     draw(state, measured), [height, the inside of an <svg> that is 640 wide]; measured: points [[load in per cent, stay], ...], or none
//     say(state),            one or two sentences: what is seen
//     steps: [...],          states, one after another on a slide
//   });
//
// No function changes the state that it is given. Without a script the drawing of `start` stands in the page: stills.txt, which
// python3 -m tests.book.machines writes anew.
"use strict";

const machines = (() => {
const CALM = matchMedia("(prefers-reduced-motion: reduce)");
const FRAME_MS = 60;

// ---- drawing -------------------------------------------------------------------------------------------------------------

const SIGNS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (words) => String(words).replace(/[&<>"]/g, (sign) => SIGNS[sign]);
const round = (value) => Number(value.toFixed(1));
const tag = (name, kind, places, rest = "/>") =>
  `<${name} class="${kind}"${Object.entries(places).map(([key, value]) => ` ${key}="${typeof value === "number" ? round(value) : value}"`).join("")}${rest}`;
const text = (x, y, words, kind = "t") => tag("text", kind, { x, y }, `>${escape(words)}</text>`);
const rect = (x, y, width, height, kind, rx = 0) => tag("rect", kind, { x, y, width, height, ...(rx && { rx }) });
const circle = (cx, cy, r, kind) => tag("circle", kind, { cx, cy, r });
const path = (d, kind, more = {}) => tag("path", kind, { d, ...more });
// Through these places: [[x, y], ...].
const way = (places) => "M" + places.map((place) => place.map(round).join(" ")).join("L");
// 10000 as the book writes it, with a space that does not break.
const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u00a0");
// Random numbers from 0 up to 1, the same in each run.
const random = (seed) => () => {
  seed = (seed + 0x6d2b79f5) | 0;
  let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
  mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
  return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
};

function picture(machine, state, measured = []) {
  const [height, inside] = machine.draw(state, measured);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 ${height}" role="img" aria-label="${escape(machine.title)}" `
    + `data-steps="${machine.steps.length}">${inside}</svg>`;
}
const still = (machine) =>
  `<div class="picture">${picture(machine, machine.start)}</div>\n<p class="say">${escape(machine.say(machine.start))}</p>\n`;

// ---- a machine in the page -----------------------------------------------------------------------------------------------

const make = (name, of = {}, ...children) => {
  const element = Object.assign(document.createElement(name), of);
  element.append(...children);
  return element;
};

// Each control is an element and a function that shows a state in it.
function slider({ label, name, values, show = count }, change) {
  const input = make("input", { type: "range", min: 0, max: values.length - 1, step: 1 }), value = make("span", { className: "value" });
  value.ariaHidden = "true";
  input.oninput = () => change(name, values[Number(input.value)]);
  return [make("label", { className: "slider" }, make("span", {}, label), input, value), (state) => {
    const shown = show(state[name], state), at = values.indexOf(state[name]);
    if (Number(input.value) !== at) input.value = at;
    value.textContent = shown;
    input.setAttribute("aria-valuetext", shown);
  }];
}
function box({ label, name }, change) {
  const input = make("input", { type: "checkbox" });
  input.onchange = () => change(name, input.checked);
  return [make("label", { className: "tick" }, input, label), (state) => { input.checked = state[name]; }];
}
const button = (label, onclick, name = "") => make("button", { type: "button", className: name, onclick }, label);

function mount(root, machine) {
  const place = root.querySelector(".picture"), say = root.querySelector(".say"), shows = [];
  const measured = JSON.parse(root.dataset.measured ?? "[]");
  let state = machine.start, shown = "", timer = 0, playing = null;

  const go = (to) => {
    state = to;
    const drawn = picture(machine, state, measured), said = machine.say(state);
    if (drawn !== shown) place.innerHTML = shown = drawn;
    if (said !== say.textContent) say.textContent = said;
    for (const show of shows) show(state);
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    if (playing) playing.textContent = "▶ play";
    say.setAttribute("aria-live", "polite");
  };
  const change = (name, value) => {
    stop();
    const to = { ...state, [name]: value };
    go(machine.changed ? machine.changed(to) : to);
  };
  // At its end it begins anew.
  const step = () => go(machine.next(state) ?? machine.again(state));
  const play = () => {
    if (timer) return stop();
    if (!machine.next(state)) go(machine.again(state));
    say.setAttribute("aria-live", "off"); // else each of its frames is read out
    playing.textContent = "■ stop";
    timer = setInterval(() => {
      const to = machine.next(state);
      if (to) go(to);
      if (!to || !machine.next(to)) stop();
    }, machine.frame ?? FRAME_MS);
  };

  if (!root.classList.contains("slide")) {
    const bar = make("div", { className: "controls" });
    for (const control of machine.controls) {
      if (control.action) {
        bar.append(button(control.label, () => { stop(); go(machine.act(state, control.action)); }));
        continue;
      }
      const [element, show] = control.values ? slider(control, change) : box(control, change);
      bar.append(element);
      shows.push(show);
    }
    if (machine.next) {
      bar.append(button("step", () => { stop(); step(); }));
      // Where no motion is wanted it goes step by step.
      if (!CALM.matches) bar.append(playing = button("▶ play", play, "play"));
    }
    bar.append(button("as it was", () => { stop(); go(machine.start); }, "reset"));
    place.after(bar);
    new IntersectionObserver((seen) => { if (timer && !seen.at(-1).isIntersecting) stop(); }).observe(root);
  }
  say.setAttribute("aria-live", "polite");
  go(state);
  root.classList.add("live");
  return { root, machine, go, get state() { return state; } };
}

// ---- on slides: what moves the deck moves the machine. On paper stands the last step. --------------------------------------

function follow({ root, machine, go }) {
  const passed = root.closest("section").querySelectorAll(".moment.fragment.visible").length;
  const last = machine.steps.length - 1;
  go(machine.steps[document.documentElement.dataset.printing ? last : Math.min(passed, last)]);
}

const known = {}, live = [];
function add(name, machine) {
  known[name] = machine;
  const mounted = [...document.querySelectorAll(`.machine[data-machine="${name}"]`)].map((root) => mount(root, machine));
  live.push(...mounted);
  const onSlides = mounted.filter(({ root }) => root.classList.contains("slide"));
  if (!onSlides.length) return;
  for (const event of ["ready", "slidechanged", "fragmentshown", "fragmenthidden"]) Reveal.on(event, () => setTimeout(() => onSlides.forEach(follow)));
}

return { add, known, live, picture, still, text, rect, circle, path, way, count, random };
})();

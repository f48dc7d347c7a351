// The first page's picture plays: one clock for all rows. It rests where its point is seen, and nothing moves by itself.
"use strict";

for (const front of document.querySelectorAll(".front")) {
  const { end, rest, seconds } = front.dataset;
  const button = front.querySelector("button"), clock = front.querySelector(".clock");
  const rows = [...front.querySelectorAll(".squares")].map((box) => ({
    box, states: box.dataset.states.split(" ").map((state) => state.split(":")).map(([ms, signs]) => [Number(ms), signs]), shown: null,
  }));
  const square = (sign, first) => {
    const letter = /[a-z]/i.test(sign) ? sign.toUpperCase() : "";
    const kind = sign === "." ? "" : sign === "-" || sign === letter ? "busy" : "one";
    return Object.assign(document.createElement("i"), { className: `sq ${kind} ${letter}${first ? " first" : ""}`, textContent: letter || (first ? "m" : "") });
  };
  const show = (ms) => {
    front.style.setProperty("--at", 100 * ms / end + "%");
    clock.textContent = `now: ${Math.round(ms)} ms`;
    for (const row of rows) {
      const signs = row.states.findLast(([from]) => from <= ms)[1];
      if (signs === row.shown) continue;
      row.shown = signs;
      row.box.replaceChildren(...[...signs].map((sign, at) => square(sign, at === 0 && signs.length > 1)));
    }
  };
  let began = 0, frame = 0;
  const words = (text) => { button.textContent = text; };
  const still = button.textContent;
  const stop = () => {
    cancelAnimationFrame(frame);
    frame = 0;
    words(still);
    show(Number(rest));
  };
  const tick = (now) => {
    began ||= now;
    const ms = (now - began) / 1000 / seconds * end;
    if (ms >= end) { show(Number(end)); frame = setTimeout(stop, 1200); return; }
    show(ms);
    frame = requestAnimationFrame(tick);
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    if (frame) { clearTimeout(frame); return stop(); }
    began = 0;
    words("■ stop");
    // Without motion: the picture before, in the middle, at the end.
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      const stops = [end / 8, Number(rest), Number(end)];
      const next = () => { const ms = stops.shift(); if (ms === undefined) return stop(); show(ms); frame = setTimeout(next, 2000); };
      return next();
    }
    frame = requestAnimationFrame(tick);
  });
}

// Starts reveal.js, and lights up listings step by step: a listing with data-steps is followed by
// one invisible fragment for each step, and shows the step of the last visible one.
"use strict";

function showStep(listing) {
  let step = 0;
  let next = listing.nextElementSibling;
  for (; next && next.matches(".step"); next = next.nextElementSibling) {
    if (next.classList.contains("visible")) step = Number(next.dataset.step);
  }
  listing.classList.toggle("stepping", step > 0);
  for (const line of listing.querySelectorAll(".line")) {
    line.classList.toggle("lit", line.classList.contains("step-" + step));
  }
}

function showSteps() {
  for (const listing of document.querySelectorAll(".listing[data-steps]")) showStep(listing);
}

for (const event of ["ready", "slidechanged", "fragmentshown", "fragmenthidden"]) {
  Reveal.on(event, showSteps);
}

Reveal.initialize({
  width: 1280,
  height: 720,
  margin: 0.02,
  center: false,
  hash: true,
  navigationMode: "linear",
  controls: false,
  slideNumber: "c/t",
  transition: "none",
  backgroundTransition: "none",
  pdfSeparateFragments: false,
  scrollActivationWidth: 0,
  plugins: [RevealNotes, RevealSearch, RevealZoom],
});

// Runs in the deck, on the slide that is shown or given; returns a line for each fault. A slide is
// 1280 x 720 in its own units, whatever the window; the foot lies in the lowest 40.
const slide = arguments[0] ?? Reveal.getCurrentSlide();
const problems = [];
const box = slide.getBoundingClientRect();
const scale = box.width / 1280;
const hidden = "aside.notes, figure.figure:not(.captioned) > figcaption, .step, .moment, .player :is(.code, .strip, .says) *, math, svg";
const content = [...slide.querySelectorAll("*")].filter((element) =>
  !element.closest(hidden) && element.getClientRects().length);

// The text may run out of its box, or be cut off inside it.
function isWide(element) {
  const rect = element.getBoundingClientRect();
  return rect.right > box.right + 1 || rect.left < box.left - 1
    || !element.closest(".player") && (element.matches("pre, p, li, h1, h2, h3, td, th, div") && element.scrollWidth > element.clientWidth + 1
    || element.matches("pre") && element.scrollHeight > element.clientHeight + 1);
}

function isContent(element) {
  return !element.matches("h1, h2") && (element.matches("img, pre") || element.textContent.trim());
}

// A machine is drawn on the slide itself: 18 of its 640 units are the smallest letter.
for (const drawing of slide.querySelectorAll(".machine svg")) {
  const shown = drawing.getBoundingClientRect(), { width, height } = drawing.viewBox.baseVal;
  const size = 18 * Math.min(shown.width / width, shown.height / height) / scale;
  if (size < 21.5) problems.push(`machine with text of ${size.toFixed(1)}px`);
  if (shown.bottom > box.bottom - 40 * scale + 1) problems.push("machine too high");
}
const bottom = box.bottom - 40 * scale + 1;
const high = content.find((element) => element.getBoundingClientRect().bottom > bottom);
const wide = content.find(isWide);
if (high) problems.push("is too high: " + high.outerHTML.slice(0, 60));
if (wide) problems.push("is too wide: " + wide.outerHTML.slice(0, 60));
// A thousand bytes, or 1024: two units on one slide look like one.
if (/\bKiB\b/.test(slide.textContent) && /\bkB\b/.test(slide.textContent)) problems.push("has kB and KiB");
// The smallest text of a drawing as it lies on the slide.
function smallest(image, shown) {
  const source = decodeURIComponent(image.src.slice(image.src.indexOf(",") + 1));
  const drawing = new DOMParser().parseFromString(source, "image/svg+xml").documentElement;
  const unit = image.naturalWidth / drawing.viewBox.baseVal.width;
  const fit = Math.min(shown.width / image.naturalWidth, shown.height / image.naturalHeight);
  const general = drawing.querySelector("style")?.textContent.match(/svg \{ font: ([\d.]+)px/)?.[1] ?? 16;
  const sizes = [...drawing.querySelectorAll("text")].filter((text) => text.textContent.trim())
    .map((text) => parseFloat((text.closest("[font-size]") ?? drawing).getAttribute("font-size") ?? general));
  return Math.min(...sizes) * unit * fit / scale;
}

for (const image of slide.querySelectorAll("img")) {
  const shown = image.getBoundingClientRect();
  if (!image.complete || image.naturalWidth === 0) problems.push("missing figure " + image.alt);
  else if (shown.height < 120 * scale) problems.push("figure squeezed: " + image.alt);
  else if (smallest(image, shown) < 21.5) {
    problems.push(`figure with text of ${smallest(image, shown).toFixed(1)}px: ` + image.alt);
  }
}
// A picture that is a part of the slide: its words lie on it, and can be read.
for (const picture of slide.querySelectorAll("svg.wall")) {
  const unit = picture.getScreenCTM().a / scale;
  for (const text of picture.querySelectorAll("text")) {
    const place = text.getBoundingClientRect(), size = parseFloat(getComputedStyle(text).fontSize) * unit;
    if (size < 21.5) problems.push(`picture with text of ${size.toFixed(1)}px: ${text.textContent}`);
    if (place.right > box.right + 1 || place.left < box.left - 1 || place.bottom > bottom) problems.push("leaves the slide: " + text.textContent);
  }
  if (!picture.getAttribute("aria-label")) problems.push("picture without a name");
}
// What is to be read from the last row. Listings side by side are to be compared, not read.
const small = content.find((element) => {
  const size = parseFloat(getComputedStyle(element).fontSize);
  const text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  return text && size < (element.closest(".player") ? 21.5 : element.closest("pre") && !element.closest(".column, .diff") ? 28 : 19)
    && !element.closest(".ref-label, figcaption, .unit, .not-drawn, sup, sub");
});
if (small) problems.push(`has text of ${getComputedStyle(small).fontSize}: ` + small.outerHTML.slice(0, 60));
// The text of a slide has one size, 34; a rule for one kind of slide must not reach the others.
const shrunk = content.find((element) => element.matches("p, li") && element.textContent.trim()
  && parseFloat(getComputedStyle(element).fontSize) < 33.5
  && !element.closest(".player, .machine, .demo, .box, .run, .expect, .predict, figure, table") && !slide.querySelector(".last"));
if (shrunk) problems.push(`is shrunk to ${getComputedStyle(shrunk).fontSize}: ` + shrunk.outerHTML.slice(0, 60));
// A section's first slide and a statement may be a title and nothing else.
if (!slide.matches(".level1, .statement") && !content.some(isContent)) problems.push("is empty");
if (!slide.textContent.trim()) problems.push("is empty");
if (!slide.querySelector("aside.notes")) problems.push("has no notes");
return problems;

// The pages' three moving parts: light and dark, search, and the mark in the contents beside the
// text. No network, no library; works from a file.
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

// Every word has to occur; a word in a title counts ten times one in the text.
function findSections(words) {
  const hits = [];
  for (const [page, id, title, section, text] of window.BOOK_INDEX) {
    const heading = (title + " " + section).toLowerCase();
    const body = text.toLowerCase();
    let score = 0;
    for (const word of words) {
      const found = (heading.includes(word) ? 10 : 0) + Math.min(body.split(word).length - 1, 5);
      score = found && score >= 0 ? score + found : -1;
    }
    if (score > 0) hits.push({ score, page, id, title, section, text });
  }
  return hits.sort((a, b) => b.score - a.score).slice(0, 12);
}

// The words around the first hit, the hit itself in <mark>. Built from text nodes: nothing of it is
// parsed as HTML.
function excerpt(text, word) {
  const line = document.createElement("span");
  const at = text.toLowerCase().indexOf(word);
  if (at < 0) { line.textContent = text.slice(0, 90); return line; }
  const from = Math.max(0, text.lastIndexOf(" ", Math.max(0, at - 40)) + 1);
  const mark = document.createElement("mark");
  mark.textContent = text.slice(at, at + word.length);
  const end = at + word.length;
  const before = (from > 0 ? "… " : "") + text.slice(from, at);
  line.append(before, mark, text.slice(end, end + 60) + " …");
  return line;
}

function showHits(output, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  output.replaceChildren();
  if (words.length === 0 || words.join("").length < 2) return;
  const hits = findSections(words);
  for (const hit of hits) {
    const link = document.createElement("a");
    const title = document.createElement("strong");
    link.className = "hit";
    link.href = hit.page + (hit.id ? "#" + hit.id : "");
    title.textContent = hit.section ? hit.title + ": " + hit.section : hit.title;
    link.append(title, excerpt(hit.text, words[0]));
    output.append(link);
  }
  if (hits.length === 0) {
    const none = document.createElement("div");
    none.className = "none";
    none.textContent = "Not found.";
    output.append(none);
  }
}

function setUpSearch() {
  const form = document.querySelector(".search");
  if (!form || !window.BOOK_INDEX) return;
  const input = form.querySelector("input");
  const output = form.querySelector("output");
  input.addEventListener("input", () => showHits(output, input.value));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const first = output.querySelector("a");
    if (first) first.click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input")) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape" && event.target === input) {
      input.value = "";
      showHits(output, "");
    }
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

setUpTheme();
setUpSearch();
setUpMark();

// The search of the book's pages. Its index (search-index.js, 0.7 MB) is loaded when a reader first asks for it, by a
// script element: so it works from a file, without a network. With lunr (lunr.js, if the build has found it) words
// are found by their stems; while its index is being made, and where lunr is not there, by their letters.
"use strict";

const MOST_HITS = 12;

// ---- by letters --------------------------------------------------------------------------------------------------------

// Every word has to occur; a word in a title counts ten times one in the text.
function findByLetters(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = [];
  for (const section of window.BOOK_INDEX) {
    const heading = (section[2] + " " + section[3]).toLowerCase();
    const body = section[4].toLowerCase();
    let score = 0;
    for (const word of words) {
      const found = (heading.includes(word) ? 10 : 0) + Math.min(body.split(word).length - 1, 5);
      score = found && score >= 0 ? score + found : -1;
    }
    if (score > 0) hits.push({ score, section });
  }
  return hits.sort((a, b) => b.score - a.score).map((hit) => hit.section);
}

// Where the words begin and end in a text: [[from, to], ...], in order.
function lettersIn(text, query) {
  const lower = text.toLowerCase(), found = [];
  for (const word of query.toLowerCase().split(/\s+/).filter(Boolean)) {
    for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + word.length)) found.push([at, at + word.length]);
  }
  return found.sort((a, b) => a[0] - b[0]);
}

// ---- by stems: lunr ----------------------------------------------------------------------------------------------------

// Words as the book has them: epoll_wait is one, "time-out" is two and is found as "timeout", too.
const WORD = /[\p{L}\p{N}_]+/gu, HYPHENED = /[\p{L}\p{N}_]+(?:-[\p{L}\p{N}_]+)+/gu;

function wordsOf(text) {
  const lower = text.toLowerCase();
  const joined = [...lower.matchAll(HYPHENED)].map(([word]) => word.replace(/-/g, ""));
  return [...lower.matchAll(WORD)].map(([word]) => word).concat(joined);
}

const stems = new Map();

function stemOf(word) {
  if (!stems.has(word)) stems.set(word, lunr.stemmer(new lunr.Token(word)).toString());
  return stems.get(word);
}

const isCommon = (word) => lunr.stopWordFilter(new lunr.Token(word)) === undefined;

// A word and its stem: the beginning of a word that is being typed is not always that of its stem.
const wordAndStem = (token) => {
  const word = token.toString(), stem = stemOf(word);
  if (isCommon(word)) return undefined;
  return stem === word ? token : [token, token.clone().update(() => stem)];
};

let stemIndex = null;

// In slices, so that the page goes on answering; `then` is called when the index is there.
function buildStemIndex(then) {
  const builder = new lunr.Builder();
  lunr.Pipeline.registerFunction(wordAndStem, "wordAndStem");
  builder.pipeline.add(wordAndStem);
  builder.tokenizer = (text) => wordsOf(text).map((word) => new lunr.Token(word, {}));
  builder.ref("at");
  builder.field("section", { boost: 12 });
  builder.field("title", { boost: 4 });
  builder.field("text");
  builder.b(0.5);
  let at = 0;
  const slice = () => {
    for (const end = performance.now() + 12; at < window.BOOK_INDEX.length && performance.now() < end; at++) {
      const [, , title, section, text] = window.BOOK_INDEX[at];
      builder.add({ at, title, section, text });
    }
    if (at < window.BOOK_INDEX.length) return setTimeout(slice);
    stemIndex = builder.build();
    then();
  };
  slice();
}

// Section -> score, of one word: itself and its stem, else what begins like it, else what is one letter away.
function scoresOf(word) {
  const terms = (add) => new Map(stemIndex.query(add).map(({ ref, score }) => [Number(ref), score]));
  const AFTER = lunr.Query.wildcard.TRAILING;
  const found = terms((query) => {
    query.term(word, { usePipeline: false, boost: 4 });
    if (stemOf(word) !== word) query.term(stemOf(word), { usePipeline: false, boost: 4 });
    if (word.length > 2) query.term(word, { usePipeline: false, wildcard: AFTER });
  });
  if (found.size > 0 || word.length < 5) return found;
  return terms((query) => query.term(word, { usePipeline: false, editDistance: 1 }));
}

// Sections with all of the words, the best first.
function findByStems(query) {
  const asked = [...new Set(query.toLowerCase().match(WORD) || [])];
  const words = asked.filter((word) => !isCommon(word));
  if (words.length === 0) return findByLetters(query);
  const [first, ...rest] = words.map(scoresOf);
  const hits = [...first.keys()].filter((at) => rest.every((scores) => scores.has(at)));
  const score = (at) => [first, ...rest].reduce((sum, scores) => sum + scores.get(at), 0);
  return hits.map((at) => [score(at), at]).sort((a, b) => b[0] - a[0]).map(([, at]) => window.BOOK_INDEX[at]);
}

function stemsIn(text, query) {
  const asked = (query.toLowerCase().match(WORD) || []).filter((word) => !isCommon(word));
  const wanted = new Set(asked.map(stemOf));
  const fits = (word) => wanted.has(stemOf(word)) || asked.some((one) => one.length > 2 && word.startsWith(one));
  const found = [...text.matchAll(WORD)].filter(([word]) => fits(word.toLowerCase()));
  return found.map((match) => [match.index, match.index + match[0].length]);
}

// ---- what is shown -----------------------------------------------------------------------------------------------------

const sectionsWith = (query) => (stemIndex ? findByStems(query) : findByLetters(query));
const wordsIn = (text, query) => (stemIndex ? stemsIn(text, query) : lettersIn(text, query));

// The part of the text with most of the words, these in <mark>. Built from text nodes: nothing of it is parsed as HTML.
function excerpt(text, query) {
  const LENGTH = 150, found = wordsIn(text, query), line = document.createElement("span");
  const within = ([from]) => found.filter(([begin, end]) => begin >= from && end <= from + LENGTH - 40).length;
  const best = found.reduce((most, each) => (within(each) > within(most) ? each : most), found[0] || [0, 0]);
  const start = best[0] <= 40 ? 0 : text.lastIndexOf(" ", best[0] - 30) + 1;
  const cut = text.indexOf(" ", start + LENGTH), end = cut < 0 ? text.length : cut;
  let at = start;
  if (start > 0) line.append("… ");
  for (const [from, to] of found.filter(([begin, stop]) => begin >= start && stop <= end)) {
    if (from < at) continue; // two words that were asked for may overlap
    const mark = document.createElement("mark");
    mark.textContent = text.slice(from, to);
    line.append(text.slice(at, from), mark);
    at = to;
  }
  line.append(text.slice(at, end) + (end < text.length ? " …" : ""));
  return line;
}

function hitOf([page, id, title, section, text], query) {
  const item = document.createElement("li"), link = document.createElement("a"), name = document.createElement("strong");
  link.className = "hit";
  link.href = page + (id ? "#" + id : "");
  name.textContent = section ? `${title}: ${section}` : title;
  link.append(name, excerpt(text, query));
  item.append(link);
  return item;
}

function showHits(form, query) {
  const status = form.querySelector("[role=status]"), list = form.querySelector("ol");
  list.replaceChildren();
  status.textContent = "";
  if (query.trim().length < 2) return;
  if (!window.BOOK_INDEX) {
    const isMissing = form.dataset.index === "missing";
    status.textContent = isMissing ? "There is no index here: search-index.js is missing." : "The index is being read.";
    return;
  }
  const hits = sectionsWith(query);
  list.append(...hits.slice(0, MOST_HITS).map((section) => hitOf(section, query)));
  if (hits.length === 0) status.textContent = "Not found.";
  else if (hits.length === 1) status.textContent = "One section.";
  else if (hits.length <= MOST_HITS) status.textContent = `${hits.length} sections.`;
  else status.textContent = `${hits.length} sections; the ${MOST_HITS} that fit best:`;
}

// Loads a script beside the page; those that are asked for first run first.
function loadScript(name, onload, onerror) {
  const script = document.createElement("script");
  Object.assign(script, { src: name, async: false, onload, onerror });
  document.head.append(script);
}

// Loads the index once, and shows again what was asked meanwhile.
function loadIndex(form) {
  if (form.dataset.index) return;
  form.dataset.index = "asked";
  const again = (state) => {
    const { value } = form.querySelector("input");
    form.dataset.index = state; // tests wait for it
    if (value) showHits(form, value);
  };
  loadScript("lunr.js");
  loadScript("search-index.js", () => {
    again(window.lunr ? "letters" : "whole");
    if (window.lunr) buildStemIndex(() => again("whole"));
  }, () => again("missing"));
}

function setUpSearch(form) {
  const input = form.querySelector("input"), menu = document.querySelector(".menu");
  const links = () => [...form.querySelectorAll(".hit")];
  const open = () => {
    if (!input.checkVisibility()) menu.open = true; // on a phone the search stands in the menu
    input.focus();
    input.select();
  };
  input.addEventListener("focus", () => loadIndex(form), { once: true });
  input.addEventListener("input", () => { loadIndex(form); showHits(form, input.value); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (links().length > 0) links()[0].click();
  });
  document.querySelector(".bar .find").addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    const asked = event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
    if (asked || ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "f")) {
      event.preventDefault();
      open();
    }
  });
  form.addEventListener("keydown", (event) => {
    const at = links().indexOf(document.activeElement), step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (at + step < 0) input.focus();
      else links()[at + step]?.focus();
    } else if (event.key === "Escape") {
      event.preventDefault();
      input.value = "";
      showHits(form, "");
      input.focus();
    }
  });
}

const searchForm = document.querySelector("form.search");
if (searchForm) setUpSearch(searchForm);

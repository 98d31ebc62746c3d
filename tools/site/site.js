// Search without a server, a button to copy code, and where the reader is. Without it all pages can be read all the same.
"use strict";

const root = document.currentScript.dataset.root;
const box = document.querySelector(".search");
const input = box.querySelector("input");
const list = document.getElementById("found");
const SHOWN = 12;
let asked = null;

const loaded = () => asked ??= new Promise((done, failed) => {
  const script = document.createElement("script");
  script.src = `${root}/search.js`;
  script.onload = () => done(window.fencerowPages.map(([at, page, heading, text]) =>
    ({ at, page, heading, text, words: `${page} ${heading} ${text}`.toLowerCase(), near: `${page} ${heading} ${at}`.toLowerCase(), own: heading.toLowerCase() })));
  script.onerror = failed;
  document.head.append(script);
});

// Each word must be there. A word in the heading counts more than in the page's title, and that more than in the text.
function worth(part, words, phrase) {
  let sum = part.own === phrase ? 100 : part.words.includes(phrase) ? 10 : 0;
  for (const word of words) {
    if (!part.words.includes(word)) return 0;
    const starts = new RegExp(`(^|[^a-z0-9])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`);
    sum += starts.test(part.own) ? 30 : starts.test(part.near) ? 12 : starts.test(part.words) ? 3 : 1;
  }
  return sum + (part.at.includes("#") ? 0 : 2);
}

function cut(text, words) {
  const low = text.toLowerCase();
  const first = Math.min(...words.map((word) => low.indexOf(word)).filter((at) => at >= 0), Infinity);
  const from = first === Infinity ? 0 : Math.max(0, text.lastIndexOf(" ", Math.max(0, first - 40)) + 1);
  return (from ? "… " : "") + text.slice(from, from + 150) + (from + 150 < text.length ? " …" : "");
}

function marked(text, words) {
  const holder = document.createElement("small");
  const known = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "gi");
  text.split(known).forEach((piece, at) => {
    if (at % 2) holder.append(Object.assign(document.createElement("mark"), { textContent: piece }));
    else holder.append(piece);
  });
  return holder;
}

function shown(parts, words) {
  list.replaceChildren(...parts.map((part, at) => {
    const link = Object.assign(document.createElement("a"), { href: `${root}/${part.at}`, tabIndex: -1 });
    link.append(part.heading === part.page ? part.page : `${part.page} › ${part.heading}`, marked(cut(part.text, words), words));
    const item = Object.assign(document.createElement("li"), { id: `found-${at}` });
    item.setAttribute("role", "option");
    item.append(link);
    return item;
  }));
  if (!parts.length) {
    const nothing = Object.assign(document.createElement("li"), { className: "nothing", textContent: "Nothing was found." });
    nothing.setAttribute("role", "option");
    list.append(nothing);
  } else choose(0);
  open(true);
}

function open(yes) {
  list.hidden = !yes;
  input.setAttribute("aria-expanded", String(yes));
  if (!yes) input.removeAttribute("aria-activedescendant");
}

function choose(at) {
  const items = [...list.querySelectorAll("li[id]")];
  if (!items.length) return;
  const wanted = (at + items.length) % items.length;
  items.forEach((item, each) => item.setAttribute("aria-selected", String(each === wanted)));
  items[wanted].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", items[wanted].id);
}

async function search() {
  const phrase = input.value.trim().toLowerCase();
  if (phrase.length < 2) return open(false);
  const words = phrase.split(/\s+/);
  const parts = await loaded();
  if (input.value.trim().toLowerCase() !== phrase) return;
  const best = parts.map((part) => [worth(part, words, phrase), part]).filter(([sum]) => sum > 0);
  best.sort((one, other) => other[0] - one[0]);
  shown(best.slice(0, SHOWN).map(([, part]) => part), words);
}

box.hidden = false;
input.addEventListener("focus", loaded, { once: true });
input.addEventListener("input", search);
input.addEventListener("keydown", (event) => {
  const now = [...list.querySelectorAll("li[id]")].findIndex((item) => item.getAttribute("aria-selected") === "true");
  if (event.key === "ArrowDown") choose(now + 1);
  else if (event.key === "ArrowUp") choose(now - 1);
  else if (event.key === "Enter") list.querySelector('[aria-selected="true"] a')?.click();
  else if (event.key === "Escape") { open(false); return; }
  else return;
  event.preventDefault();
});
document.addEventListener("click", (event) => { if (!box.contains(event.target)) open(false); else if (event.target.closest("a")) open(false); });
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea")) return;
  event.preventDefault();
  input.focus();
});

for (const block of document.querySelectorAll("article pre")) {
  const holder = Object.assign(document.createElement("div"), { className: "code" });
  block.replaceWith(holder);
  const copy = Object.assign(document.createElement("button"), { className: "copy", type: "button", textContent: "Copy" });
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });
  holder.append(block, copy);
}

for (const heading of document.querySelectorAll("article :is(h2, h3, h4)[id]")) {
  const link = Object.assign(document.createElement("a"), { className: "anchor", href: `#${heading.id}`, textContent: "#" });
  link.setAttribute("aria-label", "A link to this part");
  heading.append(link);
}

const links = new Map([...document.querySelectorAll("aside a")].map((link) => [decodeURIComponent(link.hash.slice(1)), link]));
if (links.size) {
  const heads = [...document.querySelectorAll("article :is(h2, h3)[id]")];
  const here = () => {
    const above = heads.filter((head) => head.getBoundingClientRect().top < 120);
    links.forEach((link) => link.removeAttribute("aria-current"));
    links.get(above.at(-1)?.id)?.setAttribute("aria-current", "true");
  };
  let waits = false;
  addEventListener("scroll", () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => { waits = false; here(); });
  }, { passive: true });
  here();
}
document.querySelector("#pages [aria-current]")?.scrollIntoView({ block: "nearest" });

// The sources of an answer: a list of passages, with the words that the answer rests on highlighted.

import { label } from "./labels.js";

export function numbered(citations) {
  const documents = new Map();
  return citations.map((citation) => {
    const key = citation.document_id || citation.id;
    if (!documents.has(key)) documents.set(key, documents.size + 1);
    return { ...citation, number: citation.number || documents.get(key) };
  });
}

// What stands in the text for the marker of these ids; null where it is no marker of this answer.
export function citeWith(citations, list) {
  const known = new Map(citations.map((citation) => [citation.id, citation]));
  return (ids) => {
    const found = ids.map((id) => known.get(id));
    if (!found.length || found.some((citation) => !citation)) return null;
    const out = document.createDocumentFragment();
    for (const citation of found) out.append(marker(citation, list));
    return out;
  };
}

function marker(citation, list) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "marker";
  button.textContent = citation.number;
  button.title = citation.title;
  button.setAttribute("aria-label", label("cited", { number: citation.number, title: citation.title }));
  button.addEventListener("click", () => {
    const item = [...list.querySelectorAll("details")].find((node) => node.dataset.id === citation.id);
    if (!item) return;
    item.open = true;
    item.querySelector("summary").focus();
    item.scrollIntoView({ block: "nearest" });
  });
  return button;
}

export function sourceList(citations) {
  const section = document.createElement("section");
  section.className = "sources";
  if (!citations.length) return section;
  const title = document.createElement("h3");
  title.textContent = label("sources");
  const list = document.createElement("ul");
  for (const citation of citations) list.append(item(citation));
  section.append(title, list);
  return section;
}

function item(citation) {
  const details = document.createElement("details");
  details.dataset.id = citation.id;
  const summary = document.createElement("summary");
  const number = document.createElement("span");
  number.className = "number";
  number.textContent = citation.number;
  const place = document.createElement("span");
  place.dir = "auto";
  place.textContent = placeOf(citation);
  summary.append(number, place);
  const told = citation.stale ? "stale" : citation.support;
  if (told === "weak" || told === "unsupported") {
    const badge = document.createElement("span");
    badge.className = `badge ${told}`;
    badge.textContent = label(told);
    summary.append(badge);
  }
  details.append(summary, citation.stale ? note(label("stale")) : passage(citation));
  if (citation.source) details.append(note([citation.source, citation.page ? label("page", citation) : ""].filter(Boolean).join(", ")));
  const out = document.createElement("li");
  out.append(details);
  return out;
}

function placeOf(citation) {
  const heading = citation.heading || "";
  const inside = heading.startsWith(`${citation.title} > `) ? heading.slice(citation.title.length + 3) : heading;
  const place = inside && inside !== citation.title ? `${citation.title} › ${inside.replaceAll(" > ", " › ")}` : citation.title;
  return place || citation.source;
}

function note(text) {
  const out = document.createElement("p");
  out.className = "quiet";
  out.dir = "auto";
  out.textContent = text;
  return out;
}

// Offsets count characters, not the halves that JavaScript counts.
function passage(citation) {
  const characters = Array.from(citation.text || "");
  const out = document.createElement("blockquote");
  out.dir = "auto";
  let at = 0;
  for (const quote of [...(citation.quotes || [])].sort((one, other) => one.start - other.start)) {
    const start = Math.max(at, quote.start - citation.start);
    const end = Math.min(characters.length, quote.end - citation.start);
    if (end <= start) continue;
    const mark = document.createElement("mark");
    mark.textContent = characters.slice(start, end).join("");
    out.append(characters.slice(at, start).join(""), mark);
    at = end;
  }
  out.append(characters.slice(at).join(""));
  return out;
}

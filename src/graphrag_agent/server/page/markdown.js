// Markdown as DOM nodes: paragraphs, headings, lists, quotes, code, bold, emphasis. Everything else is text.
// No HTML is ever parsed, and links stay text: an answer quotes documents that strangers wrote.

const FENCE = /^\s*(```+|~~~+)/;
const ITEM = /^(\s*)(?:[-*+]|(\d{1,9})[.)])\s+(.*)$/;
const HEADING = /^(#{1,6})\s+(.*)$/;
const INLINE = /(`+)([^`]|[^`][\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]*?\S)\*\*|(?<![\w*])\*(?=[^\s*])([^*\n]*?[^\s*])\*(?![\w*])|\[([^\[\]\n]{2,200})\]/g;
const MAX_NESTED = 8;

// `cite(ids)` gives nodes for the marker of these ids, or null where it is none.
export function renderMarkdown(text, cite = () => null) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  const out = document.createDocumentFragment();
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    if (!line.trim()) at += 1;
    else if (FENCE.test(line)) at = codeBlock(lines, at, out);
    else if (HEADING.test(line)) {
      const [, marks, words] = HEADING.exec(line);
      out.append(element(`h${Math.min(6, marks.length + 2)}`, inline(words, cite)));
      at += 1;
    } else if (ITEM.test(line)) at = list(lines, at, out, cite);
    else if (/^\s*>/.test(line)) at = quote(lines, at, out, cite);
    else at = paragraph(lines, at, out, cite);
  }
  return out;
}

function codeBlock(lines, start, out) {
  const fence = FENCE.exec(lines[start])[1];
  let end = start + 1;
  while (end < lines.length && !lines[end].trim().startsWith(fence)) end += 1;
  const code = document.createElement("code");
  code.textContent = lines.slice(start + 1, end).join("\n");
  out.append(element("pre", code));
  return end + 1;
}

function list(lines, start, out, cite, depth = 0) {
  const [, indent, number] = ITEM.exec(lines[start]);
  const node = document.createElement(number ? "ol" : "ul");
  if (number && Number(number) !== 1) node.start = Number(number);
  let at = start;
  let item = null;
  while (at < lines.length) {
    const found = ITEM.exec(lines[at]);
    if (found && found[1].length > indent.length + 1 && item && depth < MAX_NESTED) at = list(lines, at, item, cite, depth + 1);
    else if (found && found[1].length >= indent.length && Boolean(found[2]) === Boolean(number)) {
      item = element("li", inline(found[3], cite));
      node.append(item);
      at += 1;
    } else if (!found && item && lines[at].trim() && /^\s/.test(lines[at])) {
      item.append(" ", inline(lines[at].trim(), cite));
      at += 1;
    } else break;
  }
  out.append(node);
  return at;
}

function quote(lines, start, out, cite) {
  let end = start;
  while (end < lines.length && /^\s*>/.test(lines[end])) end += 1;
  const words = lines.slice(start, end).map((line) => line.replace(/^\s*>\s?/, "")).join("\n");
  out.append(element("blockquote", element("p", inline(words, cite))));
  return end;
}

function paragraph(lines, start, out, cite) {
  let end = start + 1;
  while (end < lines.length && lines[end].trim() && ![FENCE, HEADING, ITEM, /^\s*>/].some((kind) => kind.test(lines[end]))) end += 1;
  out.append(element("p", inline(lines.slice(start, end).join("\n"), cite)));
  return end;
}

function inline(text, cite, depth = 0) {
  const out = document.createDocumentFragment();
  let last = 0;
  for (const found of text.matchAll(INLINE)) {
    const [whole, ticks, code, strong, emphasis, marker] = found;
    const node = ticks ? codeOrMarker(code, cite) : marker ? cite(idsOf(marker)) : styled(strong, emphasis, cite, depth);
    if (!node) continue;
    out.append(text.slice(last, found.index), node);
    last = found.index + whole.length;
  }
  out.append(text.slice(last));
  return out;
}

function codeOrMarker(code, cite) {
  const lone = /^\[([^\[\]\n]{2,200})\]$/.exec(code.trim());
  return (lone && cite(idsOf(lone[1]))) || element("code", code.replace(/^ ([\s\S]*) $/, "$1"));
}

function styled(strong, emphasis, cite, depth) {
  const words = strong ?? emphasis;
  return element(strong === undefined ? "em" : "strong", depth < MAX_NESTED ? inline(words, cite, depth + 1) : words);
}

function idsOf(marker) {
  return marker.split(/[,;，、\s]+/).filter(Boolean).map((id) => id.toLowerCase());
}

function element(name, ...children) {
  const node = document.createElement(name);
  node.append(...children);
  return node;
}

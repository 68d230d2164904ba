// The page: a conversation, its turn that runs, and the list of conversations.

import { call, follow, Problem, setToken } from "./api.js";
import { applyLabels, chooseLocale, currentLocale, errorText, label } from "./labels.js";
import { renderMarkdown } from "./markdown.js";
import { citeWith, numbered, sourceList } from "./sources.js";

const at = (id) => document.getElementById(id);
const state = { thread: "", running: null, next: "", said: {} };

// ---- messages

function button(text, act) {
  const out = document.createElement("button");
  out.type = "button";
  out.className = "plain";
  out.textContent = text;
  out.addEventListener("click", act);
  return out;
}

function bubble(role) {
  const out = document.createElement("article");
  out.className = role;
  const who = document.createElement("h2");
  who.className = "hidden";
  who.textContent = label(role === "user" ? "you" : "answer");
  const body = document.createElement("div");
  body.className = "body";
  body.dir = "auto";
  const foot = document.createElement("div");
  foot.className = "actions";
  out.append(who, body, foot);
  at("messages").append(out);
  at("welcome").hidden = true;
  return { node: out, body, foot };
}

function showQuestion(message) {
  const shown = bubble("user");
  shown.body.textContent = message.text;
  if (message.ending === "cancelled") shown.foot.append(quiet(label("stopped")));
  if (message.id) {
    shown.foot.append(button(label("edit"), () => edit(message, shown)));
    if (message.ending === "cancelled") shown.foot.append(button(label("regenerate"), () => regenerate(message.id, shown.node)));
  }
  shown.node.dataset.id = message.id || "";
  return shown;
}

function showAnswer(message, shown = bubble("assistant")) {
  const citations = numbered(message.citations || []);
  const sources = sourceList(citations);
  shown.body.replaceChildren(renderMarkdown(message.text, citeWith(citations, sources)));
  shown.node.querySelector(".sources")?.remove();
  shown.foot.before(sources);
  shown.foot.replaceChildren();
  const ending = message.outcome?.ending;
  if (ending && ending !== "answered") shown.foot.append(quiet(label(ending === "cancelled" ? "stopped" : "incomplete")));
  shown.foot.append(button(label("regenerate"), () => regenerate(message.id, questionBefore(shown.node))));
}

function quiet(text) {
  const out = document.createElement("span");
  out.className = "quiet";
  out.textContent = text;
  return out;
}

function questionBefore(node) {
  let found = node;
  while (found && !found.classList.contains("user")) found = found.previousElementSibling;
  return found;
}

function removeAfter(node) {
  while (node?.nextElementSibling) node.nextElementSibling.remove();
}

function isAtEnd() {
  const log = at("messages");
  return log.scrollHeight - log.scrollTop - log.clientHeight < 80;
}

function toEnd() {
  const log = at("messages");
  log.scrollTop = log.scrollHeight;
}

// Keys that an input method takes: Safari ends its composition before the key comes, and tells 229 only.
function isComposing(event) {
  return event.isComposing || event.keyCode === 229;
}

// ---- the turn that runs

async function run(method, path, body, answer) {
  if (state.running) return;
  showError(null);
  const turn = { abort: new AbortController(), text: "", message: "", citations: [], searches: new Map(), answer, isDrawn: true };
  state.running = turn;
  setBusy(true);
  status("waiting");
  try {
    await follow(method, path, body, (event) => takeEvent(turn, event), turn.abort.signal);
    await listThreads();
  } catch (error) {
    if (error.name === "AbortError") return;
    showError(error);
    if (turn.refused && turn.question) turn.refused();
    else if (!(await redraw())) leaveOff(turn);
  } finally {
    if (state.running === turn) {
      state.running = null;
      setBusy(false);
      if (at("status").dataset.kind !== "done") status("");
    }
  }
}

// What can't be read again stays as it is, and looks as if nothing goes on.
function leaveOff(turn) {
  turn.answer?.body.classList.remove("pending");
  for (const { step } of turn.searches.values()) if (step.className === "running") step.className = "failed";
}

function takeEvent(turn, event) {
  if (event.type === "turn_started") begin(turn, event);
  else if (event.type === "thinking_delta") status("thinking");
  else if (event.type === "text_delta") write(turn, event);
  else if (event.type === "tool_start") search(turn, event);
  else if (event.type === "tool_end") searched(turn, event);
  else if (event.type === "answer") {
    turn.isReady = true;
    turn.ready = event;
  } else if (event.type === "turn_ended") end(turn, event);
  else if (event.type === "client_tools") showError(new Problem("other", label("clientTools")));
  else if (event.type === "error") throw new Problem("other", event.message);
}

function begin(turn, event) {
  turn.thread = event.thread;
  if (!state.thread) {
    state.thread = event.thread;
    history.replaceState(null, "", hashOf(event.thread));
  }
  if (turn.question) {
    turn.question.node.remove();
    turn.question = null;
  }
  turn.questionId = event.question_id;
  const drawn = [...document.querySelectorAll("article.user")].find((node) => node.dataset.id === event.question_id);
  if (drawn && !turn.hasQuestion) {  // of the branch that this turn replaces
    removeAfter(drawn);
    drawn.remove();
  }
  if (event.question && !turn.hasQuestion) showQuestion({ id: event.question_id, text: event.question, ending: "" });
  turn.answer = turn.answer || bubble("assistant");
  turn.answer.body.classList.add("pending");
  toEnd();
}

function write(turn, event) {
  status("writing");
  if (turn.message !== event.message_id) turn.text = "";
  turn.message = event.message_id;
  turn.text += event.text;
  if (!turn.isDrawn) return;
  turn.isDrawn = false;
  requestAnimationFrame(() => {
    turn.isDrawn = true;
    if (turn.isShown) return;
    const wasAtEnd = isAtEnd();
    turn.answer.body.replaceChildren(renderMarkdown(turn.text));
    if (wasAtEnd) toEnd();
  });
}

function search(turn, event) {
  const query = event.arguments?.query;
  const words = query ? label("searching", { query }) : label("working", { name: event.name });
  status(query ? "searching" : "working", { query, name: event.name });
  if (!turn.steps) {
    turn.steps = document.createElement("ul");
    turn.steps.className = "steps";
    turn.steps.setAttribute("aria-label", label("searches"));
    turn.answer.body.before(turn.steps);
  }
  const step = document.createElement("li");
  const text = document.createElement("span");
  text.dir = "auto";
  text.textContent = words;
  step.className = "running";
  step.append(text);
  turn.steps.append(step);
  turn.searches.set(event.id, { step, isSearch: Boolean(query) });
  toEnd();
}

function searched(turn, event) {
  const { step, isSearch } = turn.searches.get(event.id) || {};
  if (!step) return;
  step.className = event.is_error ? "failed" : "ended";
  if (!event.is_error && !event.found && !isSearch) return status("waiting");  // it worked, and was to find nothing
  const name = event.is_error ? "failed" : event.found ? "found" : "nothing";
  step.append(` — ${label(name, { count: event.found })}`);
  status(name, { count: event.found });
}

function end(turn, event) {
  turn.isShown = true;
  const wasAtEnd = isAtEnd();
  turn.answer.body.classList.remove("pending");
  if (turn.ready) {
    showAnswer({ id: turn.ready.message_id, text: turn.ready.text, citations: turn.ready.citations, outcome: event.outcome }, turn.answer);
    status("done", {}, "done");
  } else {
    turn.answer.node.remove();
    const last = [...at("messages").querySelectorAll(".user")].pop();
    last?.querySelector(".actions").prepend(quiet(label("stopped")));
    const asked = turn.questionId;
    if (last && asked) last.querySelector(".actions").append(button(label("regenerate"), () => regenerate(asked, last)));
    status("stopped", {}, "done");
  }
  if (wasAtEnd) toEnd();
}

function ask(question) {
  const shown = showQuestion({ text: question, ending: "" });
  toEnd();
  const body = { question, stream: true, context: { locale: currentLocale() } };
  if (state.thread) body.thread = state.thread;
  const refused = () => {
    shown.node.remove();
    at("question").value = at("question").value || question;
    at("welcome").hidden = at("messages").childElementCount > 0;
  };
  run("POST", "api/turns", body, null);
  state.running.question = shown;
  state.running.refused = refused;
}

function messagePath(id, verb) {
  return `api/threads/${encodeURIComponent(state.thread)}/messages/${encodeURIComponent(id)}/${verb}`;
}

function regenerate(id, question) {
  if (state.running) return;
  removeAfter(question);
  run("POST", messagePath(id, "regenerate"), { stream: true, context: { locale: currentLocale() } }, bubble("assistant"));
  state.running.hasQuestion = true;
}

function edit(message, shown) {
  if (state.running) return;
  const form = document.createElement("form");
  const box = document.createElement("textarea");
  box.value = message.text;
  box.dir = "auto";
  box.setAttribute("aria-label", label("edit"));
  const save = button(label("save"), () => form.requestSubmit());
  const cancel = button(label("cancel"), () => close());
  const actions = document.createElement("div");
  actions.className = "actions";
  actions.append(save, cancel);
  form.append(box, actions);
  const close = () => {
    form.replaceWith(shown.body);
    shown.foot.hidden = false;
    shown.foot.querySelector("button")?.focus();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = box.value.trim();
    if (!text || state.running) return;
    removeAfter(shown.node);
    shown.node.remove();
    run("POST", messagePath(message.id, "edit"), { text, stream: true, context: { locale: currentLocale() } }, null);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !isComposing(event)) close();
    else if (event.key === "Enter" && !event.shiftKey && !isComposing(event)) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  shown.body.replaceWith(form);
  shown.foot.hidden = true;
  box.focus();
}

async function stop() {
  const turn = state.running;
  if (!turn) return;
  if (!turn.thread) return turn.abort.abort();
  try {
    await call("POST", `api/threads/${encodeURIComponent(turn.thread)}/stop`, {});
  } catch (error) {
    showError(error);
  }
}

function setBusy(isBusy) {
  at("send").hidden = isBusy;
  at("stop").hidden = !isBusy;
  document.body.classList.toggle("busy", isBusy);
  at("messages").setAttribute("aria-busy", String(isBusy));
  if (isBusy) at("stop").focus({ preventScroll: true });
  else at("question").focus({ preventScroll: true });
}

function status(name, values = {}, kind = "") {
  state.said = { name, values, kind };
  showStatus();
}

function showStatus() {
  const { name, values, kind } = state.said;
  at("status").textContent = name ? label(name, values) : "";
  at("status").dataset.kind = kind || "";
}

function showError(error) {
  const place = at("error");
  place.hidden = !error;
  if (!error) return;
  place.textContent = errorText(error instanceof Problem ? error : { code: "other", message: "" });
  if (error.code === "unauthorized") askForToken();
}

// ---- conversations

async function listThreads(isMore = false) {
  const page = await call("GET", `api/threads?limit=30${isMore ? `&after=${encodeURIComponent(state.next)}` : ""}`);
  const list = at("thread-list");
  if (!isMore) list.replaceChildren();
  for (const thread of page.threads) list.append(threadItem(thread));
  state.next = page.next;
  at("more-threads").hidden = !page.next;
  at("no-threads").hidden = list.childElementCount > 0;
}

function threadItem(thread) {
  const title = thread.title || label("untitled");
  const open = button(title, () => openThread(thread.id));
  open.className = "thread";
  open.dir = "auto";
  if (thread.id === state.thread) open.setAttribute("aria-current", "true");
  const remove = button("×", () => removeThread(thread.id, title));
  remove.className = "remove";
  remove.title = label("remove", { title });
  remove.setAttribute("aria-label", label("remove", { title }));
  const out = document.createElement("li");
  out.append(open, remove);
  return out;
}

async function removeThread(id, title) {
  if (!confirm(label("confirmRemove", { title }))) return;
  try {
    await call("DELETE", `api/threads/${encodeURIComponent(id)}`);
    if (id === state.thread) newThread();
    await listThreads();
  } catch (error) {
    showError(error);
  }
}

function clear() {
  state.running?.abort.abort();
  state.running = null;
  setBusy(false);
  status("");
  showError(null);
  at("messages").replaceChildren();
  at("welcome").hidden = false;
}

function newThread() {
  clear();
  state.thread = "";
  history.replaceState(null, "", location.pathname);
  for (const node of document.querySelectorAll(".thread[aria-current]")) node.removeAttribute("aria-current");
  closeList();
}

async function openThread(id) {
  clear();
  state.thread = id;
  closeList();
  history.replaceState(null, "", hashOf(id));
  try {
    const told = await call("GET", `api/threads/${encodeURIComponent(id)}`);
    if (state.thread !== id) return;
    draw(told.messages);
    await listThreads();
    if (told.running_turn && state.thread === id) {
      run("GET", `api/turns/${encodeURIComponent(told.running_turn)}/events`, null, null);
    }
  } catch (error) {
    if (error.code === "unknown_thread") newThread();
    showError(error);
  }
}

async function redraw() {
  const told = await call("GET", `api/threads/${encodeURIComponent(state.thread)}`).catch(() => null);
  if (!told || told.id !== state.thread) return false;
  at("messages").replaceChildren();
  draw(told.messages);
  return true;
}

function draw(messages) {
  for (const message of messages) {
    if (message.role === "user") showQuestion(message);
    else showAnswer(message);
  }
  at("welcome").hidden = messages.length > 0;
  toEnd();
}

function hashOf(thread) {
  return `#${encodeURIComponent(thread)}`;
}

function threadIn(hash) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);  // typed by hand, with a percent sign
  }
}

function closeList() {
  at("threads").classList.remove("open");
  at("toggle-threads").setAttribute("aria-expanded", "false");
}

// ---- start

function askForToken() {
  if (!at("token-dialog").open) at("token-dialog").showModal();
  at("token").focus();
}

function relabel() {
  applyLabels();
  showStatus();
  if (!state.running && state.thread) redraw();
}

async function start() {
  try {
    await listThreads();
    if (location.hash.length > 1) await openThread(threadIn(location.hash));
  } catch (error) {
    showError(error);
  }
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const question = at("question").value.trim();
  if (!question || state.running) return;
  at("question").value = "";
  ask(question);
});
at("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !isComposing(event)) {
    event.preventDefault();
    at("ask").requestSubmit();
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !isComposing(event) && state.running && !at("token-dialog").open) stop();
});
at("stop").addEventListener("click", stop);
at("new-thread").addEventListener("click", () => {
  newThread();
  at("question").focus();
});
at("more-threads").addEventListener("click", () => listThreads(true).catch(showError));
at("toggle-threads").addEventListener("click", () => {
  const isOpen = at("threads").classList.toggle("open");
  at("toggle-threads").setAttribute("aria-expanded", String(isOpen));
});
at("locale").addEventListener("change", (event) => {
  localStorage.setItem("locale", chooseLocale([event.target.value]));
  relabel();
  listThreads().catch(showError);
});
at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(at("token").value.trim());
  at("token").value = "";
  at("token-dialog").close();
  showError(null);
  start();
});

at("locale").value = chooseLocale([localStorage.getItem("locale") || "", ...navigator.languages]);
applyLabels();
start();

// Requests to the server, and its event streams.

const RETRIES = 4;

export class Problem extends Error {
  constructor(code, message, status = 0) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

export function setToken(token) {
  if (token) sessionStorage.setItem("token", token);
  else sessionStorage.removeItem("token");
}

function headers(more = {}) {
  const token = sessionStorage.getItem("token");
  return { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...more };
}

async function send(method, path, body, signal, more = {}) {
  const options = { method, signal, headers: headers(more), credentials: "omit" };
  if (method === "POST") {
    options.body = JSON.stringify(body || {});
    options.headers["Content-Type"] = "application/json";
  }
  let reply;
  try {
    reply = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("network", "");
  }
  if (reply.ok) return reply;
  const told = await reply.json().catch(() => ({}));
  throw new Problem(told.error?.code || "other", told.error?.message || `HTTP ${reply.status}`, reply.status);
}

export async function call(method, path, body) {
  const reply = await send(method, path, body);
  return reply.status === 204 ? null : reply.json();
}

// Calls `take` with each event of the turn; a connection that breaks is taken up where it was. Only tries that bring
// nothing count: a proxy may cut a long turn many times.
export async function follow(method, path, body, take, signal) {
  let last = "";
  let ended = false;
  let tries = 0;
  const note = (event) => {
    last = event.event_id || last;
    ended = ["turn_ended", "error", "client_tools"].includes(event.type);
    take(event);
  };
  while (!ended) {
    const before = last;
    try {
      const again = `api/turns/${encodeURIComponent(last.split(":")[0])}/events`;
      const reply = last
        ? await send("GET", again, null, signal, { "Last-Event-ID": last })
        : await send(method, path, body, signal);
      await read(reply, note);
      if (!ended && !last) throw new Problem("network", "");
    } catch (error) {
      const isCut = error.name !== "AbortError" && (!(error instanceof Problem) || error.code === "network");
      if (!isCut || !last) throw isCut ? new Problem("network", "") : error;
    }
    if (ended) return;
    tries = last === before ? tries + 1 : 0;
    if (tries >= RETRIES) throw new Problem("network", "");
    await new Promise((resolve) => setTimeout(resolve, 300 * 2 ** tries));
  }
}

async function read(reply, take) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const messages = rest.split("\n\n");
    rest = messages.pop();
    for (const message of messages) {
      const data = message.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trimStart());
      if (data.length) take(JSON.parse(data.join("\n")));
    }
  }
}

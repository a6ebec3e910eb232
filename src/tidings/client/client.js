/**
 * A Tidings service from browsers and Node 20+. One ES module, no dependencies.
 *
 *     import { Client } from "./client.js";
 *     const client = new Client("http://127.0.0.1:8090", { key: "tk_..." });
 *     const following = client.subscribe({ sql: "SELECT * FROM stocks WHERE price < 500" }, (change) => console.log(change));
 *     for await (const change of client.subscribe({ id: "cheap" })) console.log(change.seq, change.changes);
 *     const view = await client.view("cheap");      // view.rows is the answer now
 *
 * In a browser give it tokens instead of a key, and a function that gets a new one, as they last minutes:
 *     const client = new Client(location.origin, { token: async () => (await fetch("/token")).text() });
 *
 * Streams are read with fetch, because EventSource cannot send headers. A broken connection is made again, and goes on where it
 * was: each change is given out once, in order. Subscriptions that one call names share a connection.
 *
 * @typedef {{op: "insert"|"update"|"delete", row: Object<string, any>, old?: Object<string, any>}} RowChange
 * @typedef {{subscription: string, seq: number, snapshot: boolean, changes: RowChange[], tx?: string}} Change
 * @typedef {{name: string, data: string, id: string}} ServerEvent
 */

const SECONDS_MAX = 10;
const SILENCE_MS = 40000; // The service says something at least every 15 seconds.
const PASSING = [408, 410, 429];

/** A request was refused (status as in HTTP), or got no answer (status 0). */
export class ServiceError extends Error {
  constructor(status, said, retryAfterSeconds = 0) {
    const { error, what, detail = "", hint = "", at = null, request_id: requestId = "" } = said;
    super(what + (detail ? ` (${detail})` : "") + (hint ? `; ${hint}` : ""));
    Object.assign(this, { name: "ServiceError", status, error, what, detail, hint, at, requestId, retryAfterSeconds });
  }
}

async function errorOf(response) {
  const text = await response.text();
  let said = { error: "unknown", what: `HTTP ${response.status}`, detail: text.slice(0, 200) };
  try {
    const found = JSON.parse(text);
    if (typeof found?.error === "string") said = found;
  } catch {} // A proxy may answer with something else.
  return new ServiceError(response.status, said, Number(response.headers.get("retry-after")) || 0);
}

function unreachable(url, cause) {
  const detail = String(cause?.cause?.message ?? cause?.message ?? cause);
  return new ServiceError(0, { error: "unreachable", what: `no answer from ${url}`, detail });
}

/** Server-sent events: text in, events out, wherever it was cut. Lines end with LF, CR or CRLF. */
export class EventParser {
  #rest = "";
  #isFirst = true;
  #isBehindCr = false;
  #id = "";
  #name = "";
  #data = [];
  /** @type {number|null} */
  retryMs = null;

  /** @param {string} text @returns {ServerEvent[]} */
  feed(text) {
    if (!text) return [];
    if (this.#isBehindCr && text.startsWith("\n")) text = text.slice(1);
    this.#isBehindCr = text.endsWith("\r");
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop();
    return lines.map((line) => this.#take(line)).filter(Boolean);
  }

  #take(line) {
    if (this.#isFirst && line.startsWith("\ufeff")) line = line.slice(1);
    this.#isFirst = false;
    if (!line) {
      const event = this.#data.length ? { name: this.#name || "message", data: this.#data.join("\n"), id: this.#id } : null;
      [this.#name, this.#data] = ["", []];
      return event;
    }
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#name = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^[0-9]+$/.test(value)) this.retryMs = Number(value);
    return null;
  }
}

/** Which events are new, and from where to go on. As `tidings.client.following` in Python, where the rules are explained. */
export class Following {
  #had = new Map();
  #awaited = new Set();
  #parts = new Map();

  /** @param {string[]} ids @param {string|null} after */
  constructor(ids, after = null) {
    this.ids = [...new Set(ids)];
    this.position = after;
    this.passed = 0;
    /** @type {Map<string, string>} */
    this.ended = new Map();
    this.isTorn = false;
  }

  get isOver() { return this.ids.length === 0; }

  opened() {
    this.isTorn = false;
    this.#parts.clear();
    this.#awaited = new Set(this.position === null ? this.ids : []);
  }

  /** @param {ServerEvent} event @returns {Change|null} */
  take(event) {
    if (this.isTorn) return null;
    let found = null;
    if (["snapshot", "change"].includes(event.name)) found = this.#tell(JSON.parse(event.data));
    else if (["progress", "reset", "end"].includes(event.name)) this.#note(event.name, JSON.parse(event.data));
    if (event.id && !this.isTorn) {
      this.position = event.id;
      this.passed = Math.max(this.passed, Number(event.id.slice(event.id.lastIndexOf("-") + 1)) || 0);
    }
    return found;
  }

  #note(name, data) {
    if (name === "progress") this.passed = Math.max(this.passed, data.seq);
    else if (name === "end") {
      if (!this.ids.includes(data.subscription)) return;
      this.ids = this.ids.filter((id) => id !== data.subscription);
      this.ended.set(data.subscription, data.why);
    } else {
      if (data.why !== "edited") {
        this.#had.delete(data.subscription);
        this.#awaited.add(data.subscription);
      }
      if (data.why === "new_epoch") this.passed = 0;
    }
  }

  #tell(data) {
    const id = data.subscription;
    if (!this.ids.includes(id)) return null;
    if (!data.part) this.#parts.delete(id);
    const changes = this.#parts.get(id) ?? [];
    for (const change of data.changes) changes.push(change);
    this.#parts.set(id, changes);
    if (data.more) return null;
    this.#parts.delete(id);
    const had = this.#had.get(id);
    let isNew = had === undefined || data.seq > had;
    if (data.snapshot && this.#awaited.delete(id)) isNew = data.seq !== had;
    else if (isNew && had !== undefined && data.net_from !== undefined && data.net_from < had) {
      this.isTorn = true; // A net change from before what this client has cannot be added to that.
      this.position = null;
      return null;
    }
    if (!isNew) return null;
    this.#had.set(id, data.seq);
    const { part, more, ...whole } = data;
    return { ...whole, changes };
  }
}

/** Text of a row with its keys in one order: rows that are equal have equal texts. */
function textOf(value) {
  if (Array.isArray(value)) return `[${value.map(textOf).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${textOf(value[key])}`).join(",")}}`;
}

/** The answer of one subscription, kept up to date. `onchange(view)` is called after each change. */
export class View {
  #bag = new Map();

  constructor({ id, sql = "", order = null }) {
    Object.assign(this, { id, sql, order, seq: 0, following: null });
    /** @type {string|null} Why the subscription has ended. */
    this.ended = null;
    /** @type {ServiceError|null} What ended the following. */
    this.error = null;
    /** @type {((view: View) => void)|null} */
    this.onchange = null;
  }

  /** @returns {Object<string, any>[]} */
  get rows() {
    const found = [...this.#bag.values()].flatMap(({ row, count }) => Array(count).fill(row));
    const by = this.order?.by;
    if (by === undefined || !found.every((row) => by in row)) return found;
    const sign = this.order.descending ? -1 : 1;
    return found.sort((a, b) => (a[by] < b[by] ? -sign : a[by] > b[by] ? sign : 0));
  }

  /** @param {Change} change */
  fold(change) {
    if (change.snapshot) this.#bag.clear();
    for (const { op, row, old } of change.changes) {
      const gone = op === "delete" ? row : old;
      if (gone !== undefined) this.#add(gone, -1);
      if (op !== "delete") this.#add(row, 1);
    }
    this.seq = change.seq;
    this.onchange?.(this);
  }

  #add(row, count) {
    const text = textOf(row);
    const now = (this.#bag.get(text)?.count ?? 0) + count;
    now ? this.#bag.set(text, { row, count: now }) : this.#bag.delete(text);
  }

  close() { return this.following?.close(); }
}

/** Changes of subscriptions: async iteration, or a callback. `close()` ends it; `done` settles when it has ended. */
export class Follower {
  #client;
  #abort = new AbortController();
  #failures = 0;
  #firstSeconds = 0.2;
  #hasBeenOpen = false;
  #made = [];

  constructor(client, what, onChange) {
    this.#client = client;
    this.what = what;
    /** @type {Following|null} */
    this.state = null;
    this.done = null;
    if (onChange) {
      this.done = this.#run(onChange);
      this.done.catch(() => {}); // Whoever awaits `done` gets the error; nobody has to.
    }
  }

  /** Where to go on later, with `after`. */
  get position() { return this.state?.position ?? null; }

  async #run(onChange) { for await (const change of this) onChange(change); }

  async close() {
    this.#abort.abort();
    const [made] = this.#made.splice(0);
    if (made !== undefined) await this.#client.drop(made);
  }

  async *[Symbol.asyncIterator]() {
    try {
      await this.#begin();
      while (!this.state.isOver && !this.#abort.signal.aborted) {
        yield* this.#connection();
        if (!this.state.isOver && !this.state.isTorn) await this.#wait(this.#cutSeconds());
      }
    } finally {
      await this.close();
    }
  }

  async #begin() {
    const { sql, id, ids, params, after } = this.what;
    if (sql !== undefined) {
      // One without an id has no other use: it goes by itself if this page dies.
      const made = await this.#client.create(sql, { id, params, ...(id === undefined && { idle_seconds: 3600 }) });
      if (id === undefined) this.#made.push(made.id);
      this.state = new Following([made.id]);
    } else this.state = new Following(ids ?? [id], after ?? null);
  }

  /** One connection, until it is cut. Throws if there is no use in another one. */
  async *#connection() {
    const cut = new AbortController();
    const end = () => cut.abort();
    this.#abort.signal.addEventListener("abort", end);
    let timer = setTimeout(end, SILENCE_MS);
    try {
      const response = await this.#open(cut.signal);
      if (response === null) return;
      this.#hasBeenOpen = true;
      this.state.opened();
      const parser = new EventParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      while (!this.state.isOver && !this.state.isTorn) {
        const { done, value } = await reader.read().catch(() => ({ done: true }));
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(end, SILENCE_MS);
        for (const event of parser.feed(value)) {
          this.#failures = 0;
          if (parser.retryMs !== null) this.#firstSeconds = Math.min(parser.retryMs / 1000, SECONDS_MAX);
          const change = this.state.take(event);
          if (this.#abort.signal.aborted) return;
          if (change) yield change;
        }
      }
    } finally {
      clearTimeout(timer);
      this.#abort.signal.removeEventListener("abort", end);
      cut.abort();
    }
  }

  async #open(signal) {
    const { ids, position } = this.state;
    const query = new URLSearchParams(ids.map((id) => ["subscription", id]));
    const resumed = position === null ? {} : { "last-event-id": position };
    const headers = { accept: "text/event-stream", ...this.#client.headers, ...resumed };
    const address = this.#client.address(`/v1/stream?${query}`);
    const answer = address.then((url) => fetch(url, { headers, signal, cache: "no-store" }));
    const error = await answer
      .then((response) => (response.ok ? null : errorOf(response)))
      .catch((cause) => unreachable(this.#client.url, cause));
    if (error === null) return answer;
    if (this.#abort.signal.aborted) return null;
    if (error.status === 410 && position !== null) return (this.state.position = null); // Begin anew.
    const isRefusal = error.status >= 400 && error.status < 500 && !PASSING.includes(error.status);
    if (isRefusal || !this.#hasBeenOpen) throw error;
    await this.#wait(Math.min(error.retryAfterSeconds, 60));
    return null;
  }

  #cutSeconds() {
    const most = Math.min(SECONDS_MAX, this.#firstSeconds * 2 ** Math.min(this.#failures++, 20));
    return most * (0.5 + Math.random() / 2);
  }

  #wait(seconds) {
    if (!seconds || this.#abort.signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, seconds * 1000);
      this.#abort.signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
    });
  }
}

/** A Tidings service. Answers are objects with the fields of the HTTP contract; refusals are a `ServiceError`. */
export class Client {
  #token;

  /** @param {string} url @param {{key?: string, token?: string|(() => string|Promise<string>)}} options key: an API key or a JWT;
   *  token: of POST /v1/tokens, or a function that gets one: asked before each request, so also when a stream is opened again */
  constructor(url, { key, token } = {}) {
    this.url = url.replace(/\/+$/, "");
    this.headers = key ? { authorization: `Bearer ${key}` } : {};
    this.#token = token;
  }

  /** The URL of a path, with a token if there is one. */
  async address(path) {
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    return this.url + path + (token ? `${path.includes("?") ? "&" : "?"}token=${encodeURIComponent(token)}` : "");
  }

  async #ask(method, path, body, headers = {}) {
    const isText = typeof body === "string";
    const type = body === undefined ? {} : { "content-type": isText ? "application/x-ndjson" : "application/json" };
    const content = body === undefined || isText ? body : JSON.stringify(body);
    const options = { method, headers: { ...this.headers, ...type, ...headers }, body: content };
    const answer = this.address(path).then((url) => fetch(url, options));
    const response = await answer.catch((cause) => Promise.reject(unreachable(this.url, cause)));
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  async #json(...request) { return (await this.#ask(...request)).json(); }

  /** settings: id, params, targets, every_seconds, idle_seconds, metadata. Without an id the service makes one. */
  create(sql, settings = {}) { return this.#json("POST", "/v1/subscriptions", { sql, ...settings }); }
  /** Replaces a subscription as a whole. version: refused (412) if it is no longer this one. */
  edit(id, sql, { version, ...settings } = {}) {
    const match = version === undefined ? {} : { "if-match": `"${version}"` };
    return this.#json("PUT", pathOf(id), { sql, ...settings }, match);
  }
  get(id) { return this.#json("GET", pathOf(id)); }
  /** One page: `{subscriptions, next}`. query: limit, after, family, state. */
  list(query = {}) { return this.#json("GET", `/v1/subscriptions?${new URLSearchParams(query)}`); }
  drop(id) { return this.#json("DELETE", pathOf(id)); }
  explain(sql, params) { return this.#json("POST", "/v1/explain", { sql, params }); }
  /** @returns {Promise<{position: string, seq: number, rows: Object<string, any>[]}>} */
  rows(id) { return this.#json("GET", `${pathOf(id)}/rows`); }
  /** query: after, limit, wait_seconds */
  changes(id, query = {}) { return this.#json("GET", `${pathOf(id)}/changes?${new URLSearchParams(query)}`); }
  token(ids, ttlSeconds = 300) { return this.#json("POST", "/v1/tokens", { subscriptions: ids, ttl_seconds: ttlSeconds }); }
  /** Records as lines of changes.jsonl have them, in one request. */
  feed(records, producer) {
    const query = producer === undefined ? "" : `?${new URLSearchParams({ producer })}`;
    return this.#json("POST", `/v1/changes${query}`, ndjson(records));
  }
  /** Lines `{id, sql}` or `{id, drop: true}`; an answer for each. */
  async bulk(lines) {
    const text = await (await this.#ask("POST", "/v1/bulk", ndjson(lines))).text();
    return text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
  }

  /**
   * Follows a query, or subscriptions that exist. A query without an id is dropped when the follower is closed.
   * @param {{sql?: string, params?: any, id?: string, ids?: string[], after?: string}} what
   * @param {((change: Change) => void)=} onChange without it, iterate: `for await (const change of follower)`
   */
  subscribe(what, onChange) {
    return new Follower(this, what, onChange);
  }

  /** The answer of a subscription, kept up to date until `view.close()`. Resolves with its first rows. With a token, which may
   *  read nothing but rows, `sql` is empty, and rows of a query with ORDER BY come in no order. */
  async view(id) {
    const view = new View(this.#token ? { id } : await this.get(id));
    await new Promise((resolve, reject) => {
      view.following = this.subscribe({ id }, (change) => (view.fold(change), resolve()));
      const ended = () => ((view.ended = view.following.state.ended.get(id) ?? null), view.onchange?.(view), resolve());
      view.following.done.then(ended, (error) => ((view.error = error), view.onchange?.(view), reject(error)));
    });
    return view;
  }
}

const pathOf = (id) => `/v1/subscriptions/${encodeURIComponent(id)}`;
const ndjson = (records) => records.map((record) => `${JSON.stringify(record)}\n`).join("");

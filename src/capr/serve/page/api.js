// The one way to the server: the token, problem documents, and a server that is gone.

const KEY = "capr-token";

/** What the server says is wrong: the fact, and the fix. `status` 0: it could not be reached. */
export class Problem extends Error {
  constructor(status, title, fact = "", fix = "", wait = 0) {
    super(fact || title);
    Object.assign(this, { status, title, fact, fix, wait });
  }
}

let declined = 0; // how often somebody had no token to give
let askForToken = async () => null; // gives a token, or null; see token.js
let heard = () => {}; // told whether the server was reached; see banner.js
export const connect = (handlers) => ({ askForToken = askForToken, heard = heard } = handlers);

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => sessionStorage.setItem(KEY, value),
  drop: () => sessionStorage.removeItem(KEY),
};

export const get = (path, options) => call("GET", path, undefined, options);
export const post = (path, body, options) => call("POST", path, body, options);
export const remove = (path, options) => call("DELETE", path, undefined, options);

/** The address of a document; its id is one part of it, whatever it holds. */
export const documentPath = (id, rest = "") => `api/documents/${encodeURIComponent(id)}${rest}`;

async function call(method, path, body, options = {}) {
  const response = await authorised(method, path, body, options);
  if (options.file) return { blob: await whole(response.blob()), name: fileName(response) };
  if (response.status === 204) return null;
  return whole(response.json());
}

/** The response to an allowed request; a refused one asks for a token until there is a right one, or none. */
async function authorised(method, path, body, options) {
  const before = declined;
  for (;;) {
    const sent = token.get();
    const response = await reached(method, path, body, sent, options.signal);
    if (response.ok) return response;
    const problem = await problemOf(response);
    if (response.status !== 401 || options.quiet) throw problem;
    if (token.get() !== sent) continue; // another request has got a new one meanwhile
    token.drop();
    if (declined !== before) throw problem; // asked and declined while this one was on its way
    if (await askForToken(sent ? problem.fact || problem.title : "")) continue;
    declined += 1;
    throw problem;
  }
}

async function reached(method, path, body, sent, signal) {
  const headers = { Accept: "application/json" };
  if (sent) headers.Authorization = `Bearer ${sent}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const request = { method, headers, signal, cache: "no-store", credentials: "same-origin" };
  if (body !== undefined) request.body = JSON.stringify(body);
  const response = await whole(fetch(path, request));
  heard(true);
  return response;
}

/** What a promise of the network gives; a network that failed is a problem like others. */
async function whole(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    heard(false);
    throw new Problem(0, "The server cannot be reached", "", "Check the connection, then try again.");
  }
}

async function problemOf(response) {
  let said = {};
  try {
    said = await response.json();
  } catch {
    // a proxy's page, say: the status has to do
  }
  const title = said.title || `The server answered ${response.status}`;
  const wait = Number.parseInt(response.headers.get("Retry-After") ?? "", 10) || 0;
  const fields = Array.isArray(said.errors) ? said.errors.map((one) => `${one.field}: ${one.problem}`) : [];
  const fact = [textOf(said.detail), ...fields].filter(Boolean).join("; ");
  return new Problem(response.status, title, fact, textOf(said.fix), wait);
}

const textOf = (value) => (typeof value === "string" ? value : value ? JSON.stringify(value) : "");

function fileName(response) {
  const found = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") ?? "");
  return found ? found[1] : "capr";
}

/** Only the last of many requests counts: a new one ends the one before. */
export class Latest {
  #running = null;

  async run(action) {
    this.#running?.abort();
    const mine = (this.#running = new AbortController());
    try {
      const given = await action(mine.signal);
      return mine === this.#running ? given : undefined;
    } catch (error) {
      if (mine !== this.#running || error.name === "AbortError") return undefined;
      throw error;
    }
  }

  stop() {
    this.#running?.abort();
    this.#running = null;
  }
}

// Requests to the server: the token, problem documents, and a server that cannot be reached.

const KEY = "capr-token";

/** A problem that the server reports, with the fact and the fix. `status` is 0 if the server cannot be reached. */
export class Problem extends Error {
  constructor(status, title, fact = "", fix = "", wait = 0) {
    super(fact || title);
    Object.assign(this, { status, title, fact, fix, wait });
  }
}

let declined = 0; // number of token dialogs that were cancelled
let askForToken = async () => null; // resolves to a token, or null; see token.js
let reportReached = () => {}; // called with whether a request reached the server; see banner.js
export const connect = (handlers) => ({ askForToken = askForToken, reportReached = reportReached } = handlers);

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => sessionStorage.setItem(KEY, value),
  drop: () => sessionStorage.removeItem(KEY),
};

export const get = (path, options) => call("GET", path, undefined, options);
export const post = (path, body, options) => call("POST", path, body, options);
export const remove = (path, options) => call("DELETE", path, undefined, options);

/** Return the path of a document in the API. */
export const documentPath = (id, rest = "") => `api/documents/${encodeURIComponent(id)}${rest}`;

async function call(method, path, body, options = {}) {
  const response = await send(method, path, body, options);
  if (options.file) return { blob: await fromNetwork(response.blob()), name: fileName(response) };
  if (response.status === 204) return null;
  return fromNetwork(response.json());
}

/** Send a request. If it needs a token, ask for one, until the request succeeds or the user cancels. */
async function send(method, path, body, options) {
  const declinedBefore = declined;
  for (;;) {
    const sentToken = token.get();
    const response = await fetchResponse(method, path, body, sentToken, options.signal);
    if (response.ok) return response;
    const problem = await problemOf(response);
    if (response.status !== 401 || options.quiet) throw problem;
    if (token.get() !== sentToken) continue; // another request has a new token by now
    token.drop();
    if (declined !== declinedBefore) throw problem; // the user cancelled while this request was under way
    if (await askForToken(sentToken ? problem.fact || problem.title : "")) continue;
    declined += 1;
    throw problem;
  }
}

async function fetchResponse(method, path, body, sentToken, signal) {
  const headers = { Accept: "application/json" };
  if (sentToken) headers.Authorization = `Bearer ${sentToken}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const request = { method, headers, signal, cache: "no-store", credentials: "same-origin" };
  if (body !== undefined) request.body = JSON.stringify(body);
  const response = await fromNetwork(fetch(path, request));
  reportReached(true);
  return response;
}

/** Await a promise of the network, and turn a failed connection into a `Problem`. */
async function fromNetwork(promise) {
  try {
    return await promise;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    reportReached(false);
    throw new Problem(0, "The server cannot be reached", "", "Check the connection, then try again.");
  }
}

async function problemOf(response) {
  let record = {};
  try {
    record = await response.json();
  } catch {
    // not JSON, for example the page of a proxy: only the status is known
  }
  const title = record.title || `The server answered ${response.status}`;
  const wait = Number.parseInt(response.headers.get("Retry-After") ?? "", 10) || 0;
  const fields = Array.isArray(record.errors) ? record.errors.map((error) => `${error.field}: ${error.problem}`) : [];
  const fact = [textOf(record.detail), ...fields].filter(Boolean).join("; ");
  return new Problem(response.status, title, fact, textOf(record.fix), wait);
}

const textOf = (value) => (typeof value === "string" ? value : value ? JSON.stringify(value) : "");

function fileName(response) {
  const match = /filename="?([^";]+)"?/.exec(response.headers.get("Content-Disposition") ?? "");
  return match ? match[1] : "capr";
}

/** Runs requests of which only the latest counts: a new request aborts the one before. */
export class Latest {
  #running = null;

  async run(action) {
    this.#running?.abort();
    const controller = (this.#running = new AbortController());
    try {
      const result = await action(controller.signal);
      return controller === this.#running ? result : undefined;
    } catch (error) {
      if (controller !== this.#running || error.name === "AbortError") return undefined;
      throw error;
    }
  }

  stop() {
    this.#running?.abort();
    this.#running = null;
  }
}
